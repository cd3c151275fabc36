//! Ports of DPDK where it was not built in: there are none, since no configuration can name one.

use anyhow::{Result, bail};

use crate::control::config::Config;
use crate::control::show::hardware::{Link, Lost};
use crate::device::Queues;

/// No ports.
pub(super) struct Ports;

impl Ports {
    pub fn start(_: &Config) -> Result<Self> {
        Ok(Self)
    }

    pub fn open(&self, name: &str) -> Result<(End, Queues)> {
        bail!("{name} is no port of DPDK, which this fastpath was built without")
    }
}

/// There is none.
pub(super) enum End {}

impl End {
    pub fn poll(&mut self) -> Option<String> {
        match *self {}
    }

    pub fn link(&self) -> Link {
        match *self {}
    }

    pub fn lost(&self) -> Option<Lost> {
        match *self {}
    }

    pub fn most_mtu(&self) -> u16 {
        match *self {}
    }
}
