//! A port that sends as fast as it can, or that swallows what arrives, on a core of its own: a device
//! enters, a count that grows leaves. Generators are measured with these, ours and others.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};

use dpdk::{Burst, Dpdk, Pool, Port};
use traffic::FrameTable;

use super::setup::{Opened, longest, port_config, wait_for_links};
use crate::Error;
use crate::build_rate::{BURST, pin};
use crate::builder::{Builder, Stamp};
use crate::live::monotonic;
use crate::user_space::room;
use crate::xdp::precedence;

/// What a pool has: a driver may keep two queues full, and bursts are stocked.
const FRAMES: u32 = 4095;

/// A port at work. Dropping it ends that.
#[derive(Debug)]
pub struct Stream {
    frames: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<(), Error>>>,
    /// Closed after the thread has ended.
    opened: Port,
}

impl Stream {
    /// Sends the frames of `table` by `device`, whose other end is there, from `core`; counts those that
    /// the port took.
    ///
    /// # Errors
    /// When the device cannot be opened, or the core not used.
    pub fn source(dpdk: &Arc<Dpdk>, device: &str, table: &FrameTable, core: usize) -> Result<Self, Error> {
        let mut pool = Pool::new(dpdk, FRAMES, room(longest(table)) as u16, None)?;
        pool.fill(table.fill);
        let opened = Opened::new(dpdk, device, &port_config(1, longest(table)), &pool)?;
        wait_for_links([&opened])?;
        let Opened { queues, port } = opened;
        let mut builder = Builder::new(table, 0, 1);
        let mut burst = Burst::new(dpdk);
        Self::start(dpdk, port, core, queues.send.into_iter().next(), move |queue| {
            burst.stock(&pool, BURST);
            let stamp = Stamp { interval: 0, departure: monotonic()? };
            for index in 0..burst.len() {
                let Some(upcoming) = builder.upcoming() else { break };
                let Some(buffer) = burst.buffer(index, upcoming.length) else { break };
                builder.build(buffer, stamp);
            }
            let count = burst.len();
            Ok(queue.send(&mut burst, count))
        })
    }

    /// Receives frames of up to `longest` bytes, without FCS, from `device` on `core`, drops and counts them.
    ///
    /// # Errors
    /// As [`Stream::source`].
    pub fn sink(dpdk: &Arc<Dpdk>, device: &str, longest: usize, core: usize) -> Result<Self, Error> {
        let pool = Pool::new(dpdk, FRAMES, room(longest) as u16, None)?;
        let Opened { queues, port } = Opened::new(dpdk, device, &port_config(1, longest), &pool)?;
        let mut burst = Burst::new(dpdk);
        Self::start(dpdk, port, core, queues.receive.into_iter().next(), move |queue| {
            let received = queue.receive(&mut burst, BURST);
            burst.clear();
            Ok(received)
        })
    }

    /// Does `work` with `queue` over and over; it says each time how many frames that were.
    fn start<Queue: Send + 'static>(
        dpdk: &Arc<Dpdk>,
        port: Port,
        core: usize,
        queue: Option<Queue>,
        mut work: impl FnMut(&mut Queue) -> Result<usize, Error> + Send + 'static,
    ) -> Result<Self, Error> {
        let mut queue = queue.ok_or_else(|| Error::Failed("a port has no queue; this is a defect".into()))?;
        let (frames, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let others = thread::available_parallelism().is_ok_and(|online| online.get() > 2);
        let (counted, stopped, dpdk) = (Arc::clone(&frames), Arc::clone(&stop), Arc::clone(dpdk));
        let thread = thread::Builder::new()
            .name(format!("dpdk-{core}"))
            .spawn(move || {
                pin(core)?;
                let _registered = dpdk.register_thread()?;
                let _turns = precedence::in_turns(others)?;
                let mut sum = 0;
                while !stopped.load(Ordering::Relaxed) {
                    sum += work(&mut queue)? as u64;
                    counted.store(sum, Ordering::Relaxed);
                }
                Ok(())
            })
            .map_err(|error| Error::Failed(format!("cannot start a thread: {error}")))?;
        Ok(Self { frames, stop, thread: Some(thread), opened: port })
    }

    /// The frames so far.
    #[must_use]
    pub fn frames(&self) -> u64 {
        self.frames.load(Ordering::Relaxed)
    }

    /// Whether the other end of the port is there, where that is known.
    #[must_use]
    pub fn is_up(&self) -> bool {
        self.opened.link().is_none_or(|link| link.up)
    }

    /// Ends it, and says how it went.
    ///
    /// # Errors
    /// Why it ended before.
    pub fn finish(&mut self) -> Result<(), Error> {
        self.stop.store(true, Ordering::Relaxed);
        let Some(thread) = self.thread.take() else { return Ok(()) };
        thread.join().unwrap_or_else(|_| Err(Error::Failed("a thread panicked; this is a defect".into())))
    }

    /// Whether it still works.
    ///
    /// # Errors
    /// Why it does not.
    pub fn check(&mut self) -> Result<(), Error> {
        if self.thread.as_ref().is_some_and(JoinHandle::is_finished) { self.finish() } else { Ok(()) }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let _ = self.finish();
    }
}
