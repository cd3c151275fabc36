//! How fast frames are built and handed to a driver: onto a port that drops them, and through shared
//! memory to a sink.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use dpdk::{Burst, Dpdk, Pool, RxQueue, TxQueue};
use traffic::FrameTable;

use super::setup::{Opened, port_config, wait_for_links};
use crate::Error;
use crate::build_rate::{BURST, Built, on_each, pin};
use crate::builder::{Builder, Stamp};
use crate::live::monotonic;
use crate::user_space::{longest, room, socket_name};
use crate::xdp::precedence;

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
    send(dpdk, table, cores, duration, &pools, queues.send)
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
    if sinks.len() < cores.len() {
        return Err(Error::Refused(format!(
            "{} cores that send need as many that receive, and there are {}: use fewer cores",
            cores.len(),
            sinks.len()
        )));
    }
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
    let stop = AtomicBool::new(false);
    let others = thread::available_parallelism().is_ok_and(|online| online.get() > 2 * cores.len());
    thread::scope(|scope| {
        let stop = &stop;
        let sinks: Vec<_> = far.queues.receive.into_iter().zip(sinks).collect();
        let sinks: Vec<_> = sinks
            .into_iter()
            .map(|(queue, core)| scope.spawn(move || sink(queue, *core, others, stop)))
            .collect();
        let sent = send(dpdk, table, cores, duration, senders, near.queues.send);
        stop.store(true, Ordering::Relaxed);
        let received = sinks.into_iter().map(|sink| {
            sink.join().unwrap_or_else(|_| Err(Error::Failed("a thread panicked; this is a defect".into())))
        });
        let received: Result<Vec<Built>, Error> = received.collect();
        sent.and(received)
    })
}

/// Receives and drops frames until told to stop. The time counts from the first frame to the last.
fn sink(mut queue: RxQueue, core: usize, others: bool, stop: &AtomicBool) -> Result<Built, Error> {
    pin(core)?;
    let _thread = queue.dpdk().register_thread()?;
    let _turns = precedence::in_turns(others)?;
    let mut burst = Burst::new(queue.dpdk());
    let mut frames = 0;
    let mut first = None;
    let mut last = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        let received = queue.receive(&mut burst, BURST);
        if received > 0 {
            last = Instant::now();
            // The first burst's frames arrived before the clock began.
            match first {
                None => first = Some(last),
                Some(_) => frames += received as u64,
            }
            burst.clear();
        }
    }
    Ok(Built { frames, seconds: first.map_or(0.0, |first| (last - first).as_secs_f64()) })
}

/// Builds and sends until time is up; counts what the port took.
fn send(
    dpdk: &Arc<Dpdk>,
    table: &FrameTable,
    cores: &[usize],
    duration: Duration,
    pools: &[Pool],
    queues: Vec<TxQueue>,
) -> Result<Vec<Built>, Error> {
    let queues: Vec<_> = queues.into_iter().map(|queue| Mutex::new(Some(queue))).collect();
    on_each(table, cores, duration, |place, mut builder| {
        let queue = queues.get(place).and_then(|queue| queue.lock().ok()?.take());
        let mut queue = queue.ok_or_else(|| Error::Failed("a queue is missing; this is a defect".into()))?;
        let thread = dpdk.register_thread()?;
        let mut burst = Burst::new(dpdk);
        let pool = pools[place].clone();
        Ok(move || {
            let _registered = &thread;
            burst.stock(&pool, BURST);
            build(&mut builder, &mut burst, Stamp { interval: 0, departure: monotonic()? });
            let count = burst.len();
            Ok(queue.send(&mut burst, count))
        })
    })
}

/// Builds a frame in each buffer of `burst`.
fn build(builder: &mut Builder, burst: &mut Burst, stamp: Stamp) {
    for index in 0..burst.len() {
        let Some(upcoming) = builder.upcoming() else { return };
        let Some(buffer) = burst.buffer(index, upcoming.length) else { return };
        builder.build(buffer, stamp);
    }
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
