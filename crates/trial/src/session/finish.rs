//! The end of a session: why it ended enters; an outcome leaves, judged, with notes on what the tester did
//! otherwise than it was asked to.

use std::time::Duration;

use results::record::{AT_ITS_LIMIT, Finding, Status, too_late};
use wire::human;

use super::{Session, Stop};
use crate::outcome::{Failure, Outcome};
use crate::verdict::{Judge, direction_name};

/// The drain after an interruption or a failure, at most.
const SHORT_DRAIN: Duration = Duration::from_millis(500);
/// One departure in a hundred later than this is worth a note.
const LATE_NS: u64 = 1_000_000;

impl Session<'_> {
    /// Ends the session as `end` says, and judges it.
    pub(crate) fn finish(
        mut self,
        end: Result<(), Stop>,
        judge: &Judge,
        drain: Duration,
        finding: Finding,
    ) -> Outcome {
        let complete = end.is_ok();
        let (status, failure) = match end {
            Ok(()) => (Status::Complete, None),
            Err(Stop::Stalled(note)) => {
                self.notes.push(note);
                self.abandon(drain);
                (Status::Complete, None)
            }
            Err(Stop::Interrupted) => {
                self.abandon(drain.min(SHORT_DRAIN));
                (Status::Interrupted, None)
            }
            Err(Stop::Failed(failure)) => {
                self.abandon(drain.min(SHORT_DRAIN));
                (Status::Failed, Some(failure))
            }
        };
        self.note_lateness();
        self.note_untaken();
        if complete {
            self.note_late_returns();
        }
        let directions = Judge { complete, ..*judge }.directions(&self.samples, &self.totals);
        Outcome { samples: self.samples, directions, finding, status, failure, notes: self.notes }
    }

    /// Stops sending and lets what is on its way return. Whatever fails here, what was measured
    /// stands.
    fn abandon(&mut self, drain: Duration) {
        if self.open.is_none() && self.unsettled.is_empty() {
            return;
        }
        let mut result = self.drain(drain);
        if let Some(open) = self.open.take() {
            // The engine did not even end the interval.
            result = result.and(self.close(open, self.engine.now()));
        }
        let was_cut_short = result.is_err();
        if was_cut_short {
            let _ = self.read_totals();
            self.notes.push(
                "the final drain was cut short: frames on their way count as lost in the last samples".into(),
            );
        }
        if let Err(Stop::Failed(Failure::Observer(error))) = result.and(self.settle(0)) {
            self.notes.push(error.to_string());
        }
    }

    fn note_untaken(&mut self) {
        for (direction, totals) in self.totals.iter().enumerate() {
            self.notes.extend(totals.untaken.reasons().map(|(reason, frames)| {
                let name = direction_name(direction);
                format!("{name}: {} frames were not sent: {reason}", human::count(frames))
            }));
        }
    }

    /// What returns after the drain of its load is lost in that load's samples, and not in the totals.
    fn note_late_returns(&mut self) {
        for (direction, totals) in self.totals.iter().enumerate() {
            let sampled = self.samples.iter().filter_map(|sample| sample.directions.get(direction));
            let later = totals.forwarded.saturating_sub(sampled.map(|it| it.forwarded).sum());
            if later > 0 {
                self.notes.push(format!(
                    "{}: {} frames returned after the drain of their load: they are lost in its samples, and returned in the \
                     totals; lengthen the drain",
                    direction_name(direction),
                    human::count(later)
                ));
            }
        }
    }

    fn note_lateness(&mut self) {
        for (direction, totals) in self.totals.iter().enumerate() {
            if too_late(totals.offered, totals.unsent, totals.untaken.total()) > AT_ITS_LIMIT {
                continue;
            }
            let late = totals.lateness.percentile(99.0).filter(|late| *late > LATE_NS);
            self.notes.extend(late.map(|late| {
                format!(
                    "{}: p99 transmit delay {:.1} ms: traffic was burstier than requested",
                    direction_name(direction),
                    late as f64 / 1e6
                )
            }));
        }
    }
}
