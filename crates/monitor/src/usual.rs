//! What is usual: timings of one and the same thing enter; how a stretch's compare with all others
//! of this process, and with what is known from before, leaves.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Timings that tell what is usual: at ten a second, those of seven minutes.
const HISTORY: usize = 4096;

/// What is known of each core.
#[derive(Debug)]
pub(super) struct Usual(Mutex<BTreeMap<usize, Known>>);

#[derive(Debug, Default)]
struct Known {
    /// In this process so far.
    timings: VecDeque<Duration>,
    /// What was usual before.
    before: Option<Duration>,
}

impl Known {
    fn usual(&self) -> Option<Duration> {
        let now = usual_of(self.timings.iter().copied().collect());
        now.into_iter().chain(self.before).min()
    }
}

impl Usual {
    pub(super) const fn new() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }

    /// Adds a timing to what is known of `core`.
    pub(super) fn remember(&self, core: usize, timing: Duration) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let timings = &mut all.entry(core).or_default().timings;
        if timings.len() == HISTORY {
            timings.pop_front();
        }
        timings.push_back(timing);
    }

    /// What was usual on `core` before this process.
    pub(super) fn expect(&self, core: usize, usual: Duration) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(core).or_default().before = Some(usual);
    }

    /// What is usual on `core`, if anything is known.
    pub(super) fn usual(&self, core: usize) -> Option<Duration> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&core)?.usual()
    }

    /// The median on `core` in this process, if anything is known.
    pub(super) fn median(&self, core: usize) -> Option<Duration> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        quantile(all.get(&core)?.timings.iter().copied().collect(), 0.5)
    }

    /// The speed that `timings` of a stretch show, as a share of the usual one; `None` without any.
    /// A stretch is as slow as its slower quarter, so that a phase shows that takes a part of it.
    pub(super) fn index(&self, core: usize, timings: Vec<Duration>) -> Option<f64> {
        let now = quantile(timings, 0.75).filter(|now| !now.is_zero())?;
        Some(self.usual(core)?.as_secs_f64() / now.as_secs_f64())
    }
}

/// What is usual is the fast phase: the time that one timing in ten does not exceed. (Not the very fastest: a core
/// may run faster for a moment, while all others are idle.) `None` of no timings.
#[must_use]
pub fn usual_of(timings: Vec<Duration>) -> Option<Duration> {
    quantile(timings, 0.1)
}

/// By nearest rank. It does not sort them all: each reading of the machine asks, on the core of the generator.
fn quantile(mut timings: Vec<Duration>, share: f64) -> Option<Duration> {
    let rank = (timings.len() as f64 * share).ceil() as usize;
    let place = rank.clamp(1, timings.len().max(1)) - 1;
    (place < timings.len()).then(|| *timings.select_nth_unstable(place).1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn micros(values: &[u64]) -> Vec<Duration> {
        values.iter().copied().map(Duration::from_micros).collect()
    }

    #[test]
    fn quantiles_are_values_that_occurred() {
        assert_eq!(quantile(micros(&[4, 1, 3, 2]), 0.75), Some(Duration::from_micros(3)));
        assert_eq!(quantile(micros(&[7]), 0.1), Some(Duration::from_micros(7)));
        assert_eq!(quantile(Vec::new(), 0.5), None);
    }

    fn compare(timings: Vec<Duration>, history: Vec<Duration>) -> Option<f64> {
        let usual = Usual::new();
        history.into_iter().for_each(|timing| usual.remember(0, timing));
        usual.index(0, timings)
    }

    #[test]
    fn a_slow_phase_is_one_against_the_fast_ones() {
        let history = micros(&[5, 5, 5, 5, 5, 9, 9, 9, 9, 9]);
        assert_eq!(compare(micros(&[5, 5, 5, 5]), history.clone()), Some(1.0));
        assert_eq!(compare(micros(&[9, 9, 10, 9]), history.clone()), Some(5.0 / 9.0));
        // One slow probe of four may be an accident; of eight, three are a phase.
        assert_eq!(compare(micros(&[5, 9, 5, 5]), history.clone()), Some(1.0));
        assert_eq!(compare(micros(&[5, 5, 5, 5, 5, 9, 9, 9]), history.clone()), Some(5.0 / 9.0));
        assert_eq!(compare(Vec::new(), history), None);
    }

    #[test]
    fn a_moment_of_more_speed_does_not_make_all_else_slow() {
        let mut history = micros(&[5; 30]);
        history[3] = Duration::from_micros(3);
        assert_eq!(compare(micros(&[5, 5]), history.clone()), Some(1.0));
        assert_eq!(compare(micros(&[3]), history), Some(5.0 / 3.0));
    }

    #[test]
    fn the_median_is_of_this_process_alone() {
        let usual = Usual::new();
        usual.expect(1, Duration::from_micros(3));
        assert_eq!(usual.median(1), None);
        micros(&[9, 7, 8]).into_iter().for_each(|timing| usual.remember(1, timing));
        assert_eq!(usual.median(1), Some(Duration::from_micros(8)));
        assert_eq!(usual.median(2), None);
    }

    #[test]
    fn each_core_has_a_history_of_its_own() {
        let usual = Usual::new();
        micros(&[5, 5, 5]).into_iter().for_each(|timing| usual.remember(1, timing));
        micros(&[9, 9, 9]).into_iter().for_each(|timing| usual.remember(2, timing));
        assert_eq!(usual.index(1, micros(&[10])), Some(0.5));
        assert_eq!(usual.index(2, micros(&[9])), Some(1.0));
        assert_eq!(usual.index(3, micros(&[9])), None);
    }

    #[test]
    fn a_process_that_begins_in_a_slow_phase_learns_it_from_before() {
        let usual = Usual::new();
        micros(&[9, 9, 9]).into_iter().for_each(|timing| usual.remember(1, timing));
        usual.expect(1, Duration::from_micros(3));
        assert_eq!(usual.index(1, micros(&[9])), Some(1.0 / 3.0));
        // What is faster than ever before becomes usual.
        micros(&[2; 30]).into_iter().for_each(|timing| usual.remember(1, timing));
        assert_eq!(usual.usual(1), Some(Duration::from_micros(2)));
    }
}
