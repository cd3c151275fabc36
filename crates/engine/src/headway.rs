//! Whether an engine's workers and the device's queues keep up: idle turns and refused frames enter, sums leave that are
//! read beside the engine while it runs. For the kernel a worker that polls is busy all the time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::user_space::tally::{Counter, Tally};

/// An idle turn takes less than a microsecond. In one that took longer than this, something else had the core.
const INTERRUPTED_NS: u64 = 10_000;

/// What tells whether an engine and a device keep up. It goes on as long as the engine runs.
#[derive(Clone, Debug, Default)]
pub struct Headway {
    /// Each worker's core, and what it counts.
    pub(crate) workers: Vec<(usize, Arc<Tally>)>,
    /// Whether all ports say which frames a full queue of the device's refused.
    pub(crate) counts_refused: bool,
}

/// What has been counted since the engine began.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// How long its workers have found nothing to do, by core. Empty where they do not poll.
    pub idle: BTreeMap<usize, Duration>,
    /// How many frames the device's full queues have refused, in all directions; `None` where not all ports say so.
    pub refused: Option<u64>,
}

impl Headway {
    /// What has been counted so far.
    #[must_use]
    pub fn read(&self) -> Reading {
        let idle = |(core, tally): &(usize, Arc<Tally>)| (*core, Duration::from_nanos(tally.idle_ns.get()));
        let refused = || self.workers.iter().flat_map(|(_, tally)| &tally.refused).map(Counter::get).sum();
        Reading { idle: self.workers.iter().map(idle).collect(), refused: self.counts_refused.then(refused) }
    }
}

/// The idle turns of a worker that follow each other.
#[derive(Debug, Default)]
pub(crate) struct IdleTurns {
    /// When the last turn ended, if it was idle: nanoseconds of the monotonic clock.
    last: Option<u64>,
}

impl IdleTurns {
    /// A turn found nothing to do, and ended at `now`. Says how many nanoseconds more the worker was idle. The first turn
    /// after busy ones does not count, since a worker with something to do reads no clock for this.
    #[inline]
    pub(crate) fn found_nothing(&mut self, now: u64) -> u64 {
        let turn = self.last.replace(now).map_or(0, |last| now.saturating_sub(last));
        if turn <= INTERRUPTED_NS { turn } else { 0 }
    }

    /// A turn found something to do.
    #[inline]
    pub(crate) fn found_something(&mut self) {
        self.last = None;
    }
}

#[cfg(test)]
mod tests {
    use traffic::Apart;

    use super::*;

    #[test]
    fn turns_without_work_count_and_interruptions_do_not() {
        let mut turns = IdleTurns::default();
        assert_eq!([1_000, 1_100, 1_300].map(|now| turns.found_nothing(now)), [0, 100, 200]);
        turns.found_something();
        let interrupted = 9_000 + INTERRUPTED_NS + 1;
        let idle = [9_000, interrupted, interrupted + 200].map(|now| turns.found_nothing(now));
        assert_eq!(idle, [0, 0, 200]);
    }

    #[test]
    fn what_workers_count_is_read_beside_them() {
        let tally = Arc::new(Tally::new(Apart::default()));
        let headway = Headway { workers: vec![(3, Arc::clone(&tally))], counts_refused: true };
        tally.idle_ns.add(300);
        tally.idle_ns.add(200);
        tally.refused[0].add(7);
        tally.refused[1].add(2);
        let idle = BTreeMap::from([(3, Duration::from_nanos(500))]);
        assert_eq!(headway.read(), Reading { idle, refused: Some(9) });
        assert_eq!(Headway::default().read(), Reading::default());
    }
}
