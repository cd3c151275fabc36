//! A queue that sends as fast as it can, or that swallows what arrives, on a core of its own: a queue enters,
//! a count that grows leaves. Generators are measured with these, ours and others.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};

use rights::system_calls::{Duty, give_up};

use super::{BURST, Member, Receive, Transmit};
use crate::Error;
use crate::build_rate::pin;
use crate::builder::{Builder, Stamp};
use crate::live::monotonic;
use crate::xdp::precedence;

/// A port at work. Dropping it ends that.
pub struct Stream {
    frames: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<(), Error>>>,
    /// Whether the other end is there. It has the port, which is closed after the thread has ended.
    is_up: Box<dyn Fn() -> bool + Send>,
}

impl Stream {
    /// Sends what `builder` builds by `queue`, whose other end is there, from `core`; counts the frames that
    /// left. `is_up` has the port.
    ///
    /// # Errors
    /// When there can be no thread for that.
    pub(crate) fn source(
        mut queue: impl Transmit,
        member: impl Member,
        mut builder: Builder,
        core: usize,
        is_up: impl Fn() -> bool + Send + 'static,
    ) -> Result<Self, Error> {
        Self::start(member, core, is_up, move || send_burst(&mut builder, &mut queue))
    }

    /// Receives by `queue` on `core`, drops and counts the frames.
    ///
    /// # Errors
    /// As [`Stream::source`].
    pub(crate) fn sink(
        mut queue: impl Receive,
        member: impl Member,
        core: usize,
        is_up: impl Fn() -> bool + Send + 'static,
    ) -> Result<Self, Error> {
        Self::start(member, core, is_up, move || Ok(swallow(&mut queue)))
    }

    /// Does `work` over and over; it says each time how many frames that were.
    fn start(
        member: impl Member,
        core: usize,
        is_up: impl Fn() -> bool + Send + 'static,
        mut work: impl FnMut() -> Result<usize, Error> + Send + 'static,
    ) -> Result<Self, Error> {
        let (frames, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let others = thread::available_parallelism().is_ok_and(|online| online.get() > 2);
        let (counted, stopped) = (Arc::clone(&frames), Arc::clone(&stop));
        let thread = thread::Builder::new()
            .name(format!("stream-{core}"))
            .spawn(move || {
                pin(core)?;
                let _pass = member.enter()?;
                let _turns = precedence::in_turns(others)?;
                // It has opened all that it needs. Where the kernel filters no calls, `linerate doctor` says so.
                let _ = give_up(Duty::Frames);
                let mut sum = 0;
                while !stopped.load(Ordering::Relaxed) {
                    sum += work()? as u64;
                    counted.store(sum, Ordering::Relaxed);
                }
                Ok(())
            })
            .map_err(|error| Error::Failed(format!("cannot start a thread: {error}")))?;
        Ok(Self { frames, stop, thread: Some(thread), is_up: Box::new(is_up) })
    }

    /// The frames so far.
    #[must_use]
    pub fn frames(&self) -> u64 {
        self.frames.load(Ordering::Relaxed)
    }

    /// Whether the other end of the port is there, where that is known.
    #[must_use]
    pub fn is_up(&self) -> bool {
        (self.is_up)()
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

/// Builds a burst in `queue` as fast as it can and sends it; says how many frames left.
#[inline]
pub(super) fn send_burst(builder: &mut Builder, queue: &mut impl Transmit) -> Result<usize, Error> {
    let stamp = Stamp { interval: 0, departure: monotonic()? };
    let mut built = 0;
    while built < BURST
        && let Some(upcoming) = builder.upcoming()
        && let Some(place) = queue.place(built, upcoming.length)
    {
        builder.build(place, stamp);
        built += 1;
    }
    let taken = queue.send(built);
    Ok(taken - queue.dropped().unsent().count_ones() as usize)
}

/// Gives back what has arrived at `queue`, and says how many frames that were.
#[inline]
pub(super) fn swallow(queue: &mut impl Receive) -> usize {
    let received = queue.receive();
    queue.release();
    received
}
