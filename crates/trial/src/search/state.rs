//! In which state the machine was when trials saw what they saw: what each trial saw enters, under the
//! state that it was in; the next trial, in the end one result for each goal leave.
//!
//! A virtual machine's cores may be moved apart for seconds or minutes. Then the device is slower, and all
//! its limits are others. So there are two books: one of the usual state, and one of the other. Each has a
//! controller of its own, which chooses the trials while its state lasts: no time is lost by waiting, and
//! no bound is made of trials of both. What passed in the other state passes in the usual one, too.

use std::collections::BTreeMap;
use std::time::Duration;

use results::record::{GoalResult, Irregular, LimitedBy};

use super::controller::{Controller, Step, TrialEnd};
use super::database::{Database, Observation};
use super::finding::Finding;

/// How long a search goes on that has nothing left to find in the other state, until it returns to the usual.
const PATIENCE: Duration = Duration::from_secs(10);

/// What was seen in one state.
#[derive(Clone, Debug)]
pub(super) struct Book {
    pub(super) controller: Controller,
    /// What was seen in each direction alone.
    directions: Vec<Database>,
}

/// What a trial saw: all directions together, and each alone.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) end: TrialEnd,
    pub(super) directions: Vec<Observation>,
}

/// The books of both states.
#[derive(Clone, Debug)]
pub(super) struct Books {
    usual: Book,
    other: Option<Book>,
    /// Whether the last trial was in the other state.
    is_other: bool,
    patience: Duration,
}

impl Book {
    fn note(&mut self, seen: Seen) {
        for (database, observation) in self.directions.iter_mut().zip(seen.directions) {
            database.add(observation);
        }
        self.controller.observe(seen.end);
    }
}

impl Books {
    pub(super) fn new(controller: Controller, directions: usize) -> Self {
        let usual = Book { controller, directions: vec![Database::default(); directions] };
        Self { usual, other: None, is_other: false, patience: PATIENCE }
    }

    /// Begins between these loads, in frames a second of each direction.
    pub(super) fn begin_between(&mut self, lower_pps: f64, upper_pps: f64) {
        self.usual.controller.begin_between(lower_pps, upper_pps);
    }

    /// What to do after `elapsed`.
    pub(super) fn next(&mut self, elapsed: Duration) -> Step {
        if let Some(other) = self.other.as_mut().filter(|_| self.is_other) {
            let step = other.controller.next(elapsed);
            if step != Step::Done || self.patience.is_zero() {
                return step;
            }
        }
        self.usual.controller.next(elapsed)
    }

    /// Takes in a trial of `duration` in the usual state.
    pub(super) fn note(&mut self, seen: Seen) {
        self.is_other = false;
        self.usual.note(seen);
    }

    /// The same in the other state. `passed` is what that says of the usual one, if anything.
    pub(super) fn note_other(&mut self, seen: Seen, passed: Option<Seen>, duration: Duration) {
        self.is_other = true;
        let afresh = || Book {
            controller: self.usual.controller.afresh(),
            directions: vec![Database::default(); self.usual.directions.len()],
        };
        let other = self.other.get_or_insert_with(afresh);
        if other.controller.is_done() {
            self.patience = self.patience.saturating_sub(duration);
        }
        other.note(seen);
        if let Some(passed) = passed {
            self.usual.note(passed);
        }
    }

    /// Why the search ended early in the state that it ended in.
    pub(super) fn ended(&self) -> Option<super::controller::Ended> {
        let other = self.other.as_ref().filter(|_| self.is_other).and_then(|it| it.controller.ended());
        self.usual.controller.ended().or(other)
    }

    /// What is found for each goal: of the usual state if that has an upper bound, else of the other one.
    pub(super) fn findings(&self) -> Vec<Finding> {
        let other = self.other.as_ref().map(|book| book.controller.findings());
        choose(self.usual.controller.findings(), other)
    }

    /// The same of each direction alone.
    pub(super) fn findings_in(&self, direction: usize) -> Vec<Finding> {
        let of = |book: &Book| {
            let database = book.directions.get(direction);
            database.map(|database| book.controller.findings_in(database)).unwrap_or_default()
        };
        choose(of(&self.usual), self.other.as_ref().map(of))
    }

    /// The goals, by place, whose results are those of the other state.
    pub(super) fn of_other(&self) -> Vec<usize> {
        let usual = self.usual.controller.findings();
        let pairs = usual.iter().zip(self.findings()).enumerate();
        let bounds = |it: &Finding| (it.lower_pps, it.upper_pps);
        pairs.filter(|(_, (usual, chosen))| bounds(usual) != bounds(chosen)).map(|(place, _)| place).collect()
    }
}

/// An interval whose ends differ by more than this factor says less than one of the other state.
const USELESS: f64 = 2.0;

/// For each goal what was found in the usual state; where that says too little, what was found in the other
/// one, marked as disturbed. A load that passed proves what was lost below it in the other state to be of
/// that.
fn choose(usual: Vec<Finding>, other: Option<Vec<Finding>>) -> Vec<Finding> {
    let Some(other) = other else { return usual };
    let pairs = usual.into_iter().zip(other);
    let choice = pairs.map(|(usual, other)| {
        let bounds = usual.lower_pps.zip(usual.upper_pps);
        let useful = bounds.is_some_and(|(lower, upper)| upper <= lower * USELESS);
        let at_end = |why| matches!(why, Irregular::MaxLoadIsLowerBound | Irregular::MinLoadIsUpperBound);
        let ends = useful || usual.irregular.is_some_and(at_end);
        let below = other.upper_pps.is_some_and(|upper| usual.lower_pps.is_none_or(|lower| upper > lower));
        match (ends || !below, usual.irregular) {
            (false, _) => Finding { disturbed: true, ..other },
            // What was measured in the other state is what is missing here.
            (true, Some(Irregular::Wide | Irregular::Preliminary)) => Finding { disturbed: true, ..usual },
            (true, _) => usual,
        }
    });
    choice.collect()
}

/// Findings by the goals' `names`, their rates times `factor`. Those that the tester's bursts `decided` are
/// limited by it.
pub(super) fn named<'a>(
    names: impl Iterator<Item = &'a String>,
    findings: &[Finding],
    factor: f64,
    decided: &[bool],
) -> BTreeMap<String, GoalResult> {
    let result = |(finding, decided): (&Finding, &bool)| {
        let limited_by = if *decided { LimitedBy::Tester } else { finding.limited_by };
        GoalResult { limited_by, ..finding.result(factor) }
    };
    names.cloned().zip(findings.iter().zip(decided).map(result)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(lower: Option<f64>, upper: Option<f64>, irregular: Option<Irregular>) -> Finding {
        Finding {
            lower_pps: lower,
            upper_pps: upper,
            conditional_throughput_pps: lower,
            irregular,
            disturbed: false,
            limited_by: LimitedBy::Unknown,
        }
    }

    #[test]
    fn what_the_other_state_left_open_is_marked() {
        let chosen = |usual: Finding, other: Finding| choose(vec![usual], Some(vec![other]))[0];
        let open = finding(None, None, Some(Irregular::Wide));
        assert!(chosen(open, open).disturbed, "all its time went into the other state");
        let found = finding(Some(99.0), Some(100.0), None);
        assert_eq!(chosen(found, open), found);
        let of_other = chosen(open, found);
        assert_eq!((of_other.upper_pps, of_other.disturbed), (Some(100.0), true));
    }
}
