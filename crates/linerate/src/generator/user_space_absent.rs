//! In place of generators in user space, where this program was built without DPDK: they are refused.

use anyhow::{Result, bail};

use super::ground::Started;
use super::program::{Program, Task};
use crate::args::Device;
use crate::testbed::Testbed;

/// What keeps programs in user space from being measured.
const ABSENT: &str = "generators in user space need DPDK, which this linerate was built without: build it with \
                      --features dpdk";

pub fn refusal() -> Option<String> {
    Some(ABSENT.to_owned())
}

pub fn testbed(device: Device, _: &dyn Program) -> Device {
    device
}

pub fn device(_: &Testbed) -> String {
    String::new()
}

pub fn start(_: &'static dyn Program, _: &Task, _: &Testbed) -> Result<Started<'static>> {
    bail!(ABSENT)
}
