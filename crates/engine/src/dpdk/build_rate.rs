//! How fast frames are built and handed to a driver: onto a port that drops them, and through shared
//! memory to a sink.

use std::sync::Arc;
use std::time::Duration;

use dpdk::{Burst, Dpdk, Pool, TxQueue};
use traffic::FrameTable;

use super::engine::{Receiving, Sending};
use super::setup::{Opened, port_config, wait_for_links};
use crate::Error;
use crate::build_rate::Built;
use crate::user_space::build_rate::{send, send_to_sinks};
use crate::user_space::{longest, room, socket_name};

/// What a pool has: a driver may keep two queues full, and bursts are stocked.
const FRAMES: u32 = 4095;

/// Builds frames as [`crate::build_rate::in_memory`], and sends them by a `net_null`, which drops them.
///
/// # Errors
/// When the port cannot be opened, or a core not used.
pub fn onto_null(
    dpdk: &Arc<Dpdk>,
    table: &FrameTable,
    cores: &[usize],
    duration: Duration,
) -> Result<Vec<Built>, Error> {
    let pools = pools(dpdk, table, cores.len())?;
    let config = port_config(cores.len(), longest(table));
    let Opened { queues, port: _port } = Opened::new(dpdk, "net_null_sink", &config, &pools[0])?;
    send(table, cores, duration, sending(dpdk, queues.send, &pools), dpdk)
}

/// Builds frames on each of `cores` and sends them through a `net_memif` to as many `sinks`, which
/// count and drop them. Says what came through for each core that received.
///
/// # Errors
/// As [`onto_null`]; when the two ends do not find each other; when there are fewer sinks than cores.
pub fn through_memif(
    dpdk: &Arc<Dpdk>,
    table: &FrameTable,
    cores: &[usize],
    sinks: &[usize],
    duration: Duration,
) -> Result<Vec<Built>, Error> {
    let pools = pools(dpdk, table, 2 * cores.len())?;
    let (senders, receivers) = pools.split_at(cores.len());
    let config = port_config(cores.len(), longest(table));
    let room = room(longest(table));
    let socket = socket_name();
    let end = |role: &str, pool| {
        let socket = format!("socket={socket},socket-abstract=yes");
        let device = format!("net_memif_{role},role={role},id=0,bsize={room},rsize=10,{socket}");
        Opened::new(dpdk, &device, &config, pool)
    };
    let (near, far) = (end("server", &senders[0])?, end("client", &receivers[0])?);
    wait_for_links([&near, &far])?;
    let receive = far.queues.receive.into_iter().map(|queue| Receiving::new(queue, Burst::new(dpdk)));
    let queues = (sending(dpdk, near.queues.send, senders), receive.collect());
    send_to_sinks(table, cores, sinks, duration, queues, dpdk)
}

/// What each core sends by, with a pool of its own.
fn sending(dpdk: &Arc<Dpdk>, queues: Vec<TxQueue>, pools: &[Pool]) -> Vec<Sending> {
    let queues = queues.into_iter().zip(pools);
    queues.map(|(queue, pool)| Sending::new(queue, pool.clone(), Burst::new(dpdk))).collect()
}

fn pools(dpdk: &Arc<Dpdk>, table: &FrameTable, count: usize) -> Result<Vec<Pool>, Error> {
    let room = room(longest(table)) as u16;
    let pool = |_| {
        let mut pool = Pool::new(dpdk, FRAMES, room, None)?;
        pool.fill(table.fill);
        Ok(pool)
    };
    (0..count).map(pool).collect()
}
