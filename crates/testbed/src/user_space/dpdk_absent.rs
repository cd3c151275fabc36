//! In place of ports of DPDK, where this program was built without it: they are refused.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Result;
use engine::Engine;
use engine::listening::Listener;
use engine::replay::Carrier;
use memif::Socket;
use traffic::FrameTable;
use wording::usage::misuse;

use super::link::{Link, Watch};

/// What keeps this program from reaching any port of DPDK.
pub const ABSENT: &str = "--engine dpdk needs DPDK, which this linerate was built without: build it with --features dpdk, or \
     give --engine memif";

/// There are none.
pub enum Ports {}

impl Ports {
    /// Refuses ports at these sockets.
    ///
    /// # Errors
    /// Always, with the remedy.
    pub fn to(_: &[Socket; 2], _: usize, _: usize) -> Result<Self> {
        Err(misuse(ABSENT))
    }

    /// Refuses both ends of a memif.
    ///
    /// # Errors
    /// Always, with the remedy.
    pub fn of_a_cable(_: usize, _: usize) -> Result<Self> {
        Err(misuse(ABSENT))
    }

    /// Refuses ports of these names.
    ///
    /// # Errors
    /// Always, with the remedy.
    pub fn named(_: [String; 2], _: usize, _: u8) -> Result<Self> {
        Err(misuse(ABSENT))
    }
}

/// Refuses to count at these ports.
///
/// # Errors
/// Always, with the remedy.
pub fn listen(_: &[String], _: &[usize], _: u8) -> Result<Box<dyn Listener>> {
    Err(misuse(ABSENT))
}

impl Link for Ports {
    fn start_engine(
        &self,
        _: &FrameTable,
        _: [&[usize]; 2],
        _: &Arc<AtomicBool>,
    ) -> Result<(Box<dyn Engine>, Watch)> {
        match *self {}
    }

    fn carrier(&self, _: usize) -> Result<Box<dyn Carrier>> {
        match *self {}
    }

    fn devices(&self) -> &[String; 2] {
        match *self {}
    }
}
