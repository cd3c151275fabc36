//! Frame loss rate, RFC 2544 section 26.3: from line rate down until two trials lose nothing.

use std::time::Duration;

use engine::Load;
use results::record::LossPoint;

use super::{Repeat, Rfc2544, Trials};
use crate::session::Stop;

/// How many trials in succession must lose nothing.
const ENOUGH: usize = 2;

impl Rfc2544 {
    pub(super) fn loss_planned(&self) -> Duration {
        let trials = u32::try_from(self.loads().len()).unwrap_or(u32::MAX);
        (self.timing.loss_trial.saturating_add(self.timing.pause())).saturating_mul(trials)
    }

    /// Loads in percent of the maximum theoretical rate: steps of 10, and below 10 each half of
    /// the one before, down to the lowest load.
    fn loads(&self) -> Vec<f64> {
        let tens = (1..=10).rev().map(|ten| f64::from(ten) * 10.0);
        let halves = std::iter::successors(Some(5.0), |percent| Some(percent / 2.0));
        let line = self.theoretical_pps();
        tens.chain(halves).take_while(|percent| line * percent / 100.0 >= self.min_pps).collect()
    }

    /// What is measured stands in `found` even when the run ends before.
    pub(super) fn loss(&self, trials: &mut Trials, found: &mut Vec<LossPoint>) -> Result<(), Stop> {
        let mut lossless = 0;
        for load_percent in self.loads() {
            let intended_pps = self.theoretical_pps() * load_percent / 100.0;
            let seen = trials.trial(Load::Rate(intended_pps), self.timing.loss_trial, Repeat::IfUnclear)?;
            let point = LossPoint {
                load_percent,
                intended_pps,
                offered_pps: seen.offered_pps(),
                loss_ratio: seen.loss_ratio(),
                tester_limited: seen.fell_short(),
                disturbed: seen.disturbed(),
            };
            // A load that was not sent has not been survived.
            lossless = if seen.lost() == 0 && !point.tester_limited { lossless + 1 } else { 0 };
            found.push(point);
            if lossless == ENOUGH {
                break;
            }
        }
        Ok(())
    }
}
