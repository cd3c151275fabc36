//! In place of ports of DPDK, where this program was built without it: they are refused.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Result;
use engine::Engine;
use engine::replay::Carrier;
use lab::dut::Passed;
use lab::{InterfaceCounters, NapiThread, Placement, Port};
use results::record::{self, NodeRuntimes};
use traffic::FrameTable;

use crate::args::{Device, misuse};

/// What keeps this program from reaching any device in user space.
const ABSENT: &str =
    "--engine dpdk needs DPDK, which this linerate was built without: build it with --features dpdk";

/// There is none.
pub enum UserSpace {}

/// There is none.
pub enum Cable {}

impl UserSpace {
    pub fn open(_: &Device, _: &Placement, _: usize) -> Result<Self> {
        Err(misuse(ABSENT))
    }

    pub fn ports(&self) -> &[Port; 2] {
        match *self {}
    }

    pub fn start_engine(&self, _: &FrameTable, _: &[usize], _: &Arc<AtomicBool>) -> Result<Box<dyn Engine>> {
        match *self {}
    }

    pub fn interface_counters(&self) -> Result<Vec<InterfaceCounters>> {
        match *self {}
    }

    pub fn carrier(&self, _: usize) -> Result<Box<dyn Carrier>> {
        match *self {}
    }

    pub fn dut_name(&self) -> &str {
        match *self {}
    }

    pub fn describe_dut(&self) -> record::Dut {
        match *self {}
    }

    pub fn nodes(&self) -> Result<NodeRuntimes> {
        match *self {}
    }

    pub fn cable(&self) -> Result<Option<Cable>> {
        match *self {}
    }

    pub fn has_own_dut(&self) -> bool {
        match *self {}
    }

    pub fn dut_threads(&self) -> Vec<NapiThread> {
        match *self {}
    }

    pub fn counted(&self) -> Option<[Passed; 2]> {
        match *self {}
    }

    pub fn kind_of_ports(&self) -> String {
        match *self {}
    }
}

impl Cable {
    pub fn start_engine(&self, _: &FrameTable, _: &[usize], _: &Arc<AtomicBool>) -> Result<Box<dyn Engine>> {
        match *self {}
    }
}

/// What keeps any load test by DPDK from being run.
pub fn refusal(_: Option<&str>) -> Option<String> {
    Some(ABSENT.to_owned())
}
