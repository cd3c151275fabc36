//! Whether the tester's bursts decided a result: how frames came at the device enters, a verdict leaves. Pure.
//!
//! Frames that left the tester at equal distances may reach a device together: a driver, or a core that is
//! shared, collects them. A device with a shallow queue then loses some of a load that it bears in the mean.
//! That is so where, at the load that failed, much came in bursts of half its queue or more, and the
//! device forwarded clearly more of a higher load.

use std::collections::BTreeMap;

use results::record::{Trial, TrialDirection};

use super::finding::Finding;

/// How frames came at a device since it was started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bursts {
    /// Frames that the device's queue holds.
    pub queue: u64,
    /// Frames that came in bursts, by their least length.
    pub frames: BTreeMap<u64, u64>,
}

/// Longer bursts than this share of all frames are in do not count.
const SELDOM: f64 = 0.001;
/// The share of the frames that must come in long bursts for these to decide.
const DECIDES: f64 = 0.05;
/// By how much more than what failed the device must forward of a higher load.
const CLEARLY: f64 = 1.03;

impl Bursts {
    /// Those that came after `earlier`.
    pub(super) fn since(&self, earlier: &Self) -> Self {
        let before = |length: &u64| earlier.frames.get(length).copied().unwrap_or(0);
        let frames =
            self.frames.iter().map(|(length, frames)| (*length, frames.saturating_sub(before(length))));
        Self { queue: self.queue, frames: frames.filter(|(_, frames)| *frames > 0).collect() }
    }

    /// Adds those of another trial.
    pub(super) fn add(&mut self, bursts: &[(u64, u64)]) {
        for (length, frames) in bursts {
            *self.frames.entry(*length).or_default() += frames;
        }
    }

    /// The share of the frames that came in bursts of `length` or more.
    fn share_from(&self, length: u64) -> f64 {
        let all: u64 = self.frames.values().sum();
        self.frames.range(length..).map(|(_, frames)| frames).sum::<u64>() as f64 / all.max(1) as f64
    }

    /// The longest that were no rarity; `None` without frames.
    pub(super) fn longest(&self) -> Option<u64> {
        self.frames.keys().rev().copied().find(|length| self.share_from(*length) >= SELDOM)
    }

    /// Whether they decided that `failed_pps` failed, of a device that forwarded `forwarded_pps` of a higher
    /// load.
    pub(super) fn decided(&self, failed_pps: f64, forwarded_pps: f64) -> bool {
        let half = self.queue.div_ceil(2).max(2);
        forwarded_pps > failed_pps * CLEARLY && self.share_from(half) >= DECIDES
    }
}

/// What trials saw of a device whose queue holds so many frames, where it knows how they came.
pub(super) struct Seen<'a> {
    pub(super) trials: &'a [Trial],
    pub(super) queue: Option<u64>,
}

impl Seen<'_> {
    /// For each finding, whether its load failed because of how frames came.
    pub(super) fn decided(&self, findings: &[Finding]) -> Vec<bool> {
        let most = self.trials.iter().map(forwarded_pps).fold(0.0, f64::max);
        let decided = |finding: &Finding| {
            let failed = finding.upper_pps?;
            Some(self.at(failed)?.decided(failed, most))
        };
        findings.iter().map(|finding| decided(finding).unwrap_or(false)).collect()
    }

    /// How frames came at the loads that failed, and whether that decided.
    pub(super) fn notes<'n>(
        &self,
        names: impl Iterator<Item = &'n String>,
        findings: &[Finding],
    ) -> Vec<String> {
        let decided = self.decided(findings);
        let notes = names.zip(findings).zip(decided).filter_map(|((name, finding), decided)| {
            let bursts = self.at(finding.upper_pps?)?;
            let (longest, queue) = (bursts.longest()?, bursts.queue);
            Some(match decided {
                true => format!(
                    "{name}: limited by tester: frames arrive in bursts of up to {longest}, and the device's queue \
                     holds {queue}: it forwards more where frames come evenly"
                ),
                false => format!(
                    "{name}: frames arrive in bursts of up to {longest} at the device, whose queue holds {queue}"
                ),
            })
        });
        notes.collect()
    }

    /// In the trials at `load_pps`.
    fn at(&self, load_pps: f64) -> Option<Bursts> {
        let mut bursts = Bursts { queue: self.queue?, ..Bursts::default() };
        let at = self.trials.iter().filter(|trial| trial.load_pps == load_pps);
        at.for_each(|trial| bursts.add(&trial.bursts));
        Some(bursts)
    }
}

/// What came back in a trial, in frames a second, in the mean of the directions.
fn forwarded_pps(trial: &Trial) -> f64 {
    let sum = |count: fn(&TrialDirection) -> f64| trial.directions.iter().map(count).sum::<f64>();
    let intended = sum(|direction| direction.intended).max(1.0);
    sum(|direction| direction.forwarded as f64) / intended * trial.load_pps
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bursts(queue: u64, frames: &[(u64, u64)]) -> Bursts {
        let mut bursts = Bursts { queue, ..Bursts::default() };
        bursts.add(frames);
        bursts
    }

    #[test]
    fn bursts_of_half_a_queue_decide_where_the_device_bears_more() {
        let batches = [(1, 20_000), (16, 30_000), (64, 50_000)];
        assert!(bursts(64, &batches).decided(690e3, 889e3));
        assert!(bursts(128, &batches).decided(690e3, 889e3));
        assert!(!bursts(256, &batches).decided(690e3, 889e3), "its queue holds four of them");
        assert!(!bursts(64, &batches).decided(885e3, 889e3), "that is its limit");
        assert!(!bursts(64, &[(1, 99_000), (64, 1_000)]).decided(690e3, 889e3), "they are too rare");
        assert_eq!(bursts(64, &batches).longest(), Some(64));
        assert_eq!(bursts(64, &[(1, 1_000_000), (64, 10)]).longest(), Some(1));
        assert_eq!(bursts(64, &[]).longest(), None);
    }

    #[test]
    fn a_trial_has_what_came_since_it_began() {
        let (before, after) = (bursts(64, &[(1, 10), (4, 8)]), bursts(64, &[(1, 30), (4, 8), (8, 16)]));
        assert_eq!(after.since(&before), bursts(64, &[(1, 20), (8, 16)]));
    }
}
