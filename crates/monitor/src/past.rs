//! What was seen when: things enter as they happen, those of a stretch of time leave.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// As many are kept: at ten a second, those of seven minutes.
const KEPT: usize = 4096;

/// The latest of what was seen, in order of time.
#[derive(Debug)]
pub(super) struct Past<T>(Mutex<VecDeque<(Instant, T)>>);

impl<T: Copy> Past<T> {
    pub(super) fn new() -> Self {
        Self(Mutex::default())
    }

    /// Adds what was seen at `at`.
    pub(super) fn add(&self, at: Instant, seen: T) {
        let mut past = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if past.len() == KEPT {
            past.pop_front();
        }
        past.push_back((at, seen));
    }

    /// What was seen from `from` to `to`. A stretch too short to have anything of its own has the last
    /// before its end.
    pub(super) fn between(&self, from: Instant, to: Instant) -> Vec<T> {
        let past = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let since = past.partition_point(|(at, _)| *at < from);
        let until = past.partition_point(|(at, _)| *at <= to);
        past.range(since.min(until.saturating_sub(1))..until).map(|(_, seen)| *seen).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_stretch_has_its_own_or_the_last_before_its_end() {
        let (past, begin) = (Past::new(), Instant::now());
        let at = |second: u64| begin + Duration::from_secs(second);
        assert_eq!(past.between(at(0), at(9)), Vec::<u64>::new());
        (1..=5000).for_each(|second| past.add(at(second), second));
        assert_eq!(past.between(at(4000), at(4002)), [4000, 4001, 4002]);
        assert_eq!(past.between(at(6000), at(6001)), [5000]);
        // What is too long ago is forgotten.
        assert_eq!(past.between(at(0), at(9)), Vec::<u64>::new());
    }
}
