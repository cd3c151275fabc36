//! Ports of DPDK that send as fast as they can, or swallow what arrives.

use std::sync::Arc;

use dpdk::{Burst, Dpdk, Pool};
use traffic::FrameTable;

use super::engine::{Receiving, Sending};
use super::setup::{Opened, port_config, wait_for_links};
use crate::Error;
use crate::builder::Builder;
use crate::user_space::{Stream, longest, room};

/// What a pool has: a driver may keep two queues full, and bursts are stocked.
const FRAMES: u32 = 4095;

/// Sends the frames of `table` by `device`, whose other end is there, from `core`; counts those that the port
/// took.
///
/// # Errors
/// When the device cannot be opened, or the core not used.
pub fn source(dpdk: &Arc<Dpdk>, device: &str, table: &FrameTable, core: usize) -> Result<Stream, Error> {
    let mut pool = Pool::new(dpdk, FRAMES, room(longest(table)) as u16, None)?;
    pool.fill(table.fill);
    let opened = Opened::new(dpdk, device, &port_config(1, longest(table)), &pool)?;
    wait_for_links([&opened])?;
    let Opened { queues, port } = opened;
    let queue = queues.send.into_iter().next().ok_or_else(no_queue)?;
    let queue = Sending::new(queue, pool, Burst::new(dpdk));
    let is_up = move || port.link().is_none_or(|link| link.up);
    Stream::source(queue, Arc::clone(dpdk), Builder::new(table, 0, 1), core, is_up)
}

/// Receives frames of up to `longest` bytes, without FCS, from `device` on `core`, drops and counts them.
///
/// # Errors
/// As [`source`].
pub fn sink(dpdk: &Arc<Dpdk>, device: &str, longest: usize, core: usize) -> Result<Stream, Error> {
    let pool = Pool::new(dpdk, FRAMES, room(longest) as u16, None)?;
    let Opened { queues, port } = Opened::new(dpdk, device, &port_config(1, longest), &pool)?;
    let queue = queues.receive.into_iter().next().ok_or_else(no_queue)?;
    let queue = Receiving::new(queue, Burst::new(dpdk));
    Stream::sink(queue, Arc::clone(dpdk), core, move || port.link().is_none_or(|link| link.up))
}

fn no_queue() -> Error {
    Error::Failed("a port has no queue; this is a defect".into())
}
