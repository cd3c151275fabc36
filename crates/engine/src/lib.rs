//! Sends a frame table at a set rate and counts what returns.
//!
//! A [`traffic::FrameTable`] and rates enter; [`Counts`] per interval leave. All engines share
//! one trait: the kernel one (`xdp`), those in user space (`af_xdp`, `memif`, and `dpdk`, a feature) and
//! [`simulated`], a device of known capacity in virtual time, on which strategies are tested without a kernel.
//!
//! The load is a sequence of *intervals*, each of a constant rate or one burst. Every frame carries
//! the number of its interval, so the counts of an interval are exact however late its frames return.

pub mod af_xdp;
pub mod apart;
pub mod build_rate;
pub mod builder;
#[cfg(feature = "dpdk")]
pub mod dpdk;
pub mod headway;
pub mod listening;
pub mod live;
pub mod memif;
pub mod order;
pub mod pacing;
pub mod replay;
pub mod simulated;
pub mod user_space;
pub mod xdp;

mod refusal;
mod timeline;
mod untaken;

use std::time::Duration;

pub use apart::StreamTotals;
pub use headway::Headway;
use stats::Histogram;
pub use timeline::{Bin, Bins, Timeline};
pub use untaken::Untaken;
pub use xsk::Others;

/// Why an engine could not go on.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The user asked to stop (Ctrl-C): what was counted so far stands.
    #[error("interrupted")]
    Interrupted,
    /// The engine cannot do what was asked; the text names cause and remedy.
    #[error("{0}")]
    Refused(String),
    /// A port cannot be used; the text names cause and remedy.
    #[error("{0}")]
    Port(String),
    /// The kernel or a worker failed; the text names cause and remedy.
    #[error("{0}")]
    Failed(String),
}

/// How fast frames leave, per direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Load {
    /// Nothing leaves.
    Idle,
    /// This many frames a second in each direction: evenly spaced, or as the table's bursts have it
    /// ([`traffic::FrameTable::times`]), and then in the mean.
    Rate(f64),
    /// Exactly so many frames in each direction, evenly spaced, then nothing: the bursts of
    /// RFC 2544 section 26.4. The interval must be some milliseconds longer than `frames / pps`,
    /// since a burst begins a millisecond later: frames that have not left by its end are unsent.
    Burst {
        /// Frames a second in each direction while it lasts.
        pps: f64,
        /// Frames in each direction.
        frames: u64,
    },
    /// As fast as the tester can.
    Max,
}

/// Some rows of the frame table, over and over, evenly spaced: a part of a longer schedule.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Part {
    /// The first of the rows.
    pub first: u64,
    /// How many rows take turns: no fewer than the engine has workers.
    pub rows: u64,
    /// Exactly so many frames leave, in all directions together, then nothing.
    pub frames: u64,
    /// Frames a second, in all directions together.
    pub pps: f64,
}

/// What an interval is asked to be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Order {
    /// A load of the whole table.
    Load(Load),
    /// Some rows of it.
    Part(Part),
}

/// Names one interval: they count up from 0 in the order of [`Engine::begin`].
pub type Interval = u64;

/// What happened to one direction's frames of one interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counts {
    /// Frames that should have left by the set rate and the interval's length so far, which is
    /// the one that the tester really kept to.
    /// With [`Load::Max`] the same as `offered`; with [`Load::Burst`] its frames, from the start. Of a [`Part`]
    /// those that have left or are unsent.
    pub intended: f64,
    /// Frames that left the tester: the port's driver took them.
    pub offered: u64,
    /// Bytes of those, FCS included.
    pub offered_bytes: u64,
    /// Frames of this interval that came back at the other port, duplicates not counted twice.
    pub forwarded: u64,
    /// Bytes of those, FCS included.
    pub forwarded_bytes: u64,
    /// Frames that the tester gave up, because they were too late or the port did not take them.
    pub unsent: u64,
    /// Those of them that the port did not take.
    pub untaken: Untaken,
    /// Shortest, longest and summed time between departure and return, in nanoseconds.
    pub latency_min: u64,
    /// See `latency_min`.
    pub latency_max: u64,
    /// See `latency_min`.
    pub latency_sum: u64,
}

/// What happened in one direction since the engine started.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Totals {
    /// Frames that left the tester: the port's driver took them.
    pub offered: u64,
    /// Those of them that the device's full receive queue refused, where a port hands frames to that
    /// queue itself (a veth pair) and the engine counts them.
    pub refused: Option<u64>,
    /// Frames that came back at the other port, duplicates not counted twice.
    pub forwarded: u64,
    /// Frames that the tester gave up, because they were too late or the port did not take them.
    pub unsent: u64,
    /// Those of them that the port did not take.
    pub untaken: Untaken,
    /// Frames that came back more than once, counted once for each further time.
    pub duplicates: u64,
    /// Frames that came back after a frame that left later.
    pub reordered: u64,
    /// Our frames that came back at the port they left by.
    pub returned: u64,
    /// Frames at this direction's receiving port that are not ours; passed to the kernel.
    pub foreign: u64,
    /// How late departures were against their schedule, in nanoseconds.
    pub lateness: Histogram,
    /// Time between departure and return, in nanoseconds.
    pub latency: Histogram,
}

/// What an engine can do.
#[derive(Clone, Debug, PartialEq)]
pub struct Capabilities {
    /// Its name, as in `--engine`.
    pub name: &'static str,
    /// The largest frame it sends, FCS included.
    pub max_frame_size: usize,
    /// What its clocks cannot see of a latency, in words.
    pub unseen: &'static [&'static str],
}

/// What no engine tells of latencies, in words: [`Totals`] hold a distribution and no pairs.
pub const UNTOLD: [&str; 2] = [
    "percentiles are from buckets 3 % wide; minimum, mean and maximum are exact",
    "the difference between consecutive frames (IPDV, RFC 5481 section 4.1) is not known: the engine keeps a distribution, not pairs",
];

/// Sends one frame table and counts what returns. One engine serves one run.
pub trait Engine {
    /// What this engine can do.
    fn capabilities(&self) -> Capabilities;

    /// The directions it sends in: 1 or 2.
    fn directions(&self) -> usize;

    /// Ends the current interval and begins the next one at `load`; after silence a millisecond
    /// later, or when the caller leaves the generator's core: what it does first delays no frame.
    ///
    /// # Errors
    /// When the engine has failed since, or `load` is refused.
    fn begin(&mut self, load: Load) -> Result<Interval, Error>;

    /// Announces the next interval, of some rows of the table: it begins `at` a time of [`Engine::now`], to come.
    /// Several may be announced, one after the other, and each goes over into the next without a break. What is
    /// left of a part when the next interval begins is neither sent nor unsent. A [`Engine::begin`] ends them
    /// all; until the next announced time, what has begun goes on.
    ///
    /// # Errors
    /// As of [`Engine::begin`], and where an engine cannot do this.
    fn begin_part(&mut self, part: &Part, at: Duration) -> Result<Interval, Error> {
        let _ = (part, at);
        Err(Error::Refused(format!(
            "the engine {} sends no parts of a table: choose another",
            self.capabilities().name
        )))
    }

    /// Lets `duration` pass: real time, or virtual time of the simulated engine.
    ///
    /// # Errors
    /// [`Error::Interrupted`] when the user asked to stop: once, so that frames on their way can
    /// still be waited for. [`Error::Failed`] when a worker died.
    fn wait(&mut self, duration: Duration) -> Result<(), Error>;

    /// Lets all other threads go before its workers until the next load: the caller waits for nothing any more.
    /// An engine does so of itself in long pauses.
    fn give_way(&mut self) {}

    /// What tells, beside the engine, whether it and the device keep up; by default nothing does.
    fn headway(&self) -> Headway {
        Headway::default()
    }

    /// Time since the engine was made, on the clock of [`Engine::wait`].
    fn now(&self) -> Duration;

    /// The counts of `interval` as they are now, one for each direction. Final for a finished
    /// interval once its last frame had time to return. At least the last 1,000 intervals
    /// can be read; older ones are refused.
    ///
    /// # Errors
    /// When `interval` has not begun or is too old, or the counters cannot be read.
    fn counts(&mut self, interval: Interval) -> Result<Vec<Counts>, Error>;

    /// Whether what was sent of `interval` is known for good: it has ended, and no port has yet to say what it took.
    fn has_left(&self, interval: Interval) -> bool {
        let _ = interval;
        true
    }

    /// The frames that left since `interval` began, by when they left, one timeline for each
    /// direction. `None` where the engine keeps none, or none any more: it need not reach back more
    /// than four seconds.
    ///
    /// # Errors
    /// When the counters cannot be read.
    fn timeline(&mut self, interval: Interval) -> Result<Option<Vec<Timeline>>, Error> {
        let _ = interval;
        Ok(None)
    }

    /// The totals as they are now, one for each direction.
    ///
    /// # Errors
    /// When the counters cannot be read.
    fn totals(&mut self) -> Result<Vec<Totals>, Error>;

    /// What became of each stream that the frame table wants counted apart (see [`traffic::table::Apart`]): by
    /// direction, and in it by the stream's number. Empty where the engine does not count so.
    ///
    /// # Errors
    /// When the counters cannot be read.
    fn streams(&mut self) -> Result<Vec<Vec<StreamTotals>>, Error> {
        Ok(Vec::new())
    }
}
