//! What the host did beside the work of the test: one finding enters; its core, how bad it is and a clause for
//! people leave.

use std::fmt;
use std::time::Duration;

use crate::interruptions::TaskName;

/// Something that the host did beside the work of the test. Its text is one clause with its number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Disturbance {
    /// The hypervisor took a share of a core.
    Steal {
        /// The core.
        core: usize,
        /// The share, 0 to 1.
        share: f64,
    },
    /// A core did other work.
    OtherWork {
        /// The core.
        core: usize,
        /// The share of the time, 0 to 1.
        share: f64,
        /// The thread that had at least half of that, if one had.
        task: Option<TaskName>,
    },
    /// Linerate's threads waited for their core.
    Waited {
        /// The core.
        core: usize,
        /// The share of the time, 0 to 1.
        share: f64,
        /// The thread that had at least half of that, if one had.
        task: Option<TaskName>,
    },
    /// A core was slower, or faster, than usual.
    Speed {
        /// The core.
        core: usize,
        /// Its speed, as a share of the usual one.
        index: f64,
    },
    /// A core let a waking thread wait.
    WakeDelay {
        /// The core.
        core: usize,
        /// How long.
        delay: Duration,
    },
    /// A core was further from the first one than usual.
    Far {
        /// The core.
        core: usize,
        /// How quickly a cache line went there and back, as a share of the usual speed: 0.25 is four times
        /// the usual time.
        nearness: f64,
    },
    /// Clocks went apart.
    Clock {
        /// By how much.
        jump: Duration,
    },
}

impl Disturbance {
    /// The core that it is of, if it is of one.
    #[must_use]
    pub fn core(&self) -> Option<usize> {
        match *self {
            Self::Steal { core, .. }
            | Self::OtherWork { core, .. }
            | Self::Waited { core, .. }
            | Self::Speed { core, .. }
            | Self::WakeDelay { core, .. }
            | Self::Far { core, .. } => Some(core),
            Self::Clock { .. } => None,
        }
    }

    /// A number that is larger the worse it is, among disturbances of one kind.
    #[must_use]
    pub fn severity(&self) -> f64 {
        match *self {
            Self::Steal { share, .. } | Self::OtherWork { share, .. } | Self::Waited { share, .. } => share,
            Self::Speed { index, .. } => (index - 1.0).abs(),
            Self::Far { nearness, .. } => 1.0 - nearness,
            Self::WakeDelay { delay: time, .. } | Self::Clock { jump: time } => time.as_secs_f64(),
        }
    }
}

impl fmt::Display for Disturbance {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Steal { core, share } => {
                write!(f, "the hypervisor took {} of core {core}", Percent(*share))
            }
            Self::OtherWork { core, share, task } => {
                write!(f, "core {core} did other work for {} of the time", Percent(*share))?;
                task.map_or(Ok(()), |task| write!(f, " (mostly {task})"))
            }
            Self::Waited { core, share, task } => {
                write!(
                    f,
                    "Linerate's threads were runnable but not running on core {core} for {} of the time (another \
                     task had it",
                    Percent(*share)
                )?;
                match task {
                    Some(task) => write!(f, ", mostly {task})"),
                    None => f.write_str(")"),
                }
            }
            Self::Speed { core, index } => {
                let change = Percent((1.0 - index).abs());
                match *index < 1.0 {
                    true => {
                        write!(f, "core {core} ran {change} slower than normal (throttling or SMT neighbour)")
                    }
                    false => write!(f, "core {core} ran {change} faster than normal"),
                }
            }
            Self::WakeDelay { core, delay } => {
                write!(f, "a thread on core {core} woke {:.1} ms late", delay.as_secs_f64() * 1e3)
            }
            Self::Far { core, nearness } => {
                write!(
                    f,
                    "core-to-core latency (cache-line bounce) to core {core} was {:.1}× normal: the hypervisor \
                     probably moved a vCPU",
                    1.0 / nearness
                )
            }
            Self::Clock { jump } => write!(f, "two clocks of the host drifted apart by {jump:.1?}"),
        }
    }
}

struct Percent(f64);

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let percent = self.0 * 100.0;
        write!(f, "{percent:.*} %", usize::from(percent < 9.95))
    }
}
