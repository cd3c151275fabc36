//! Back-to-back frames, RFC 2544 section 26.4 as RFC 9004 section 6 updates it: the longest burst at line
//! rate that the device forwards without loss, and the buffer that this implies.
//!
//! Each repeat is a search of its own, to half a percent. The first one halves the interval from
//! the longest burst down; the others step away from the result before, so they take few bursts.

use std::time::Duration;

use engine::Load;
use results::record::BackToBack;

use super::trials::Seen;
use super::{Repeat, Rfc2544, Trials, mean};
use crate::session::Stop;

/// How many bursts a search takes at most: the first, which halves an interval of frames, and every
/// other.
const FIRST: u32 = 40;
const OTHERS: u32 = 8;
/// The result is known to one part in so many.
const RESOLUTION: u64 = 200;
/// An interval is longer than its burst by this, so that late frames can leave.
const MARGIN: Duration = Duration::from_millis(20);

impl Rfc2544 {
    pub(super) fn back_to_back_planned(&self) -> Duration {
        let timing = &self.timing;
        let halvings = self.longest_burst().ilog2() + 2;
        let bursts =
            halvings.min(FIRST).saturating_add(OTHERS.saturating_mul(timing.bursts)).saturating_add(1);
        (timing.burst.saturating_add(MARGIN).saturating_add(timing.pause())).saturating_mul(bursts)
    }

    /// The longest burst that is tried, in frames; at least one.
    fn longest_burst(&self) -> u64 {
        ((self.theoretical_pps() * self.timing.burst.as_secs_f64()) as u64).max(1)
    }

    pub(super) fn back_to_back(&self, throughput_pps: f64, trials: &mut Trials) -> Result<BackToBack, Stop> {
        let line_pps = self.theoretical_pps();
        let probe = trials.trial(Load::Rate(line_pps), self.timing.burst, Repeat::IfDisturbed)?;
        if probe.fell_short() {
            return Ok(BackToBack { tester_limited: true, ..BackToBack::default() });
        }
        let most = self.longest_burst();
        let mut found = BackToBack { longest_tried: most, ..BackToBack::default() };
        for _ in 0..self.timing.bursts {
            let search = Bracket::new(most, found.bursts.last().copied());
            if let Some(burst) = longest(search, line_pps, trials, &mut found.disturbed)? {
                found.longest_passed |= burst == most;
                found.bursts.push(burst);
            }
        }
        found.tester_limited = found.bursts.is_empty();
        summarize(&mut found, line_pps, throughput_pps);
        Ok(found)
    }
}

/// Searches for the longest burst that passes; `None` if the tester did not send what it should.
fn longest(
    mut bracket: Bracket,
    line_pps: f64,
    trials: &mut Trials,
    disturbed: &mut usize,
) -> Result<Option<u64>, Stop> {
    while let Some(frames) = bracket.next() {
        let duration = Duration::from_secs_f64(frames as f64 / line_pps) + MARGIN;
        let load = Load::Burst { pps: line_pps, frames };
        let mut seen = trials.trial(load, duration, Repeat::IfUnclear)?;
        if !complete(&seen, frames) && trials.may_repeat(duration) {
            seen = trials.trial(load, duration, Repeat::IfUnclear)?;
        }
        if !complete(&seen, frames) {
            *disturbed += 1;
            return Ok(None);
        }
        *disturbed += usize::from(seen.is_unclear());
        bracket.observe(frames, seen.lost() == 0);
    }
    Ok(Some(bracket.passed))
}

/// Whether all of a burst left in each direction.
fn complete(seen: &Seen, frames: u64) -> bool {
    seen.sample.directions.iter().all(|direction| direction.offered >= frames)
}

/// Where the longest burst that passes must be.
struct Bracket {
    /// The longest burst that passed, or 0.
    passed: u64,
    /// The shortest burst that failed, or one more than the longest that may be tried.
    failed: u64,
    /// Whether a burst really passed, and really failed.
    seen: [bool; 2],
    /// What to try first, and how far away from it next.
    hint: u64,
    stride: u64,
    hinted: bool,
    left: u32,
}

impl Bracket {
    fn new(most: u64, hint: Option<u64>) -> Self {
        let first = hint.unwrap_or(most).clamp(1, most);
        Self {
            passed: 0,
            failed: most + 1,
            seen: [false; 2],
            hint: first,
            stride: resolution(first) * 2,
            hinted: hint.is_some(),
            left: if hint.is_some() { OTHERS } else { FIRST },
        }
    }

    /// The next burst to try, if it is not known well enough yet.
    fn next(&mut self) -> Option<u64> {
        if self.failed - self.passed <= resolution(self.passed) || self.left == 0 {
            return None;
        }
        self.left -= 1;
        let middle = self.passed + (self.failed - self.passed) / 2;
        let next = match self.seen {
            [false, false] => self.hint,
            [true, false] if self.hinted => self.step_up(),
            [false, true] if self.hinted => self.step_down(),
            _ => middle,
        };
        Some(next.clamp(self.passed + 1, self.failed - 1))
    }

    fn step_up(&mut self) -> u64 {
        let next = self.passed.saturating_add(self.stride);
        self.stride = self.stride.saturating_mul(2);
        next
    }

    fn step_down(&mut self) -> u64 {
        let next = self.failed.saturating_sub(self.stride);
        self.stride = self.stride.saturating_mul(2);
        next
    }

    fn observe(&mut self, frames: u64, passed: bool) {
        if passed {
            (self.passed, self.seen[0]) = (frames, true);
        } else {
            (self.failed, self.seen[1]) = (frames, true);
        }
    }
}

fn resolution(frames: u64) -> u64 {
    (frames / RESOLUTION).max(1)
}

/// Fills in the figures that RFC 9004 section 6.4 asks for.
fn summarize(found: &mut BackToBack, line_pps: f64, throughput_pps: f64) {
    let bursts: Vec<f64> = found.bursts.iter().map(|burst| *burst as f64).collect();
    found.average = mean(&bursts);
    found.min = found.bursts.iter().copied().min().unwrap_or(0);
    found.max = found.bursts.iter().copied().max().unwrap_or(0);
    let squares: f64 = bursts.iter().map(|burst| (burst - found.average).powi(2)).sum();
    found.standard_deviation = (squares / bursts.len().saturating_sub(1).max(1) as f64).sqrt();
    found.implied_buffer_s = found.average / line_pps;
    found.corrected_buffer_s = found.implied_buffer_s * (line_pps - throughput_pps) / line_pps;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Searches where bursts of up to `truth` pass: the result, and how many it took.
    fn search(truth: u64, most: u64, hint: Option<u64>) -> (u64, usize) {
        let mut bracket = Bracket::new(most, hint);
        let mut count = 0;
        while let Some(frames) = bracket.next() {
            assert!((1..=most).contains(&frames));
            bracket.observe(frames, frames <= truth);
            count += 1;
        }
        (bracket.passed, count)
    }

    #[test]
    fn the_longest_burst_is_found_to_half_a_percent() {
        for truth in [0, 1, 2, 3, 199, 1_000, 18_880, 1_488_094, 1_488_095, 5_000_000] {
            let (found, count) = search(truth, 1_488_095, None);
            let truth = truth.min(1_488_095);
            assert!(found <= truth && truth - found <= resolution(truth), "{truth}: {found}");
            assert!(count <= FIRST as usize);
            assert!(truth < 1_488_095 || count == 1, "the longest is tried first");
        }
    }

    #[test]
    fn repeats_take_few_bursts() {
        for truth in [18_000_u64, 18_700, 18_880, 19_100, 20_000] {
            let (found, count) = search(truth, 1_488_095, Some(18_880));
            assert!(found <= truth && truth - found <= 2 * resolution(truth), "{truth}: {found}");
            assert!(count <= OTHERS as usize);
        }
        assert_eq!(search(100, 100, Some(100)), (100, 1));
        assert_eq!(search(0, 100, Some(1)).0, 0);
    }

    #[test]
    fn figures_are_those_of_rfc_9004() {
        let mut found = BackToBack { bursts: vec![900, 1_000, 1_100], ..BackToBack::default() };
        summarize(&mut found, 10_000.0, 6_000.0);
        assert_eq!((found.average, found.min, found.max), (1_000.0, 900, 1_100));
        assert_eq!(found.standard_deviation, 100.0);
        assert!((found.implied_buffer_s - 0.1).abs() < 1e-12);
        assert!((found.corrected_buffer_s - 0.04).abs() < 1e-12);
        let mut one = BackToBack { bursts: vec![7], ..BackToBack::default() };
        summarize(&mut one, 10_000.0, 6_000.0);
        assert_eq!(one.standard_deviation, 0.0);
    }
}
