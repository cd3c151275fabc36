//! What the record keeps of each strategy: its name and parameters, as people would give them.

use std::time::Duration;

use engine::{Engine, Load};
use results::record;
use trial::rfc2544::{Rfc2544, Timing};
use trial::{Goal, Latency, Observer, Outcome, Ramp, Reference, Saturate, Search, Soak};
use wire::human;

use crate::run::{Strategy, describe_strategy, parameters};

impl Strategy for Ramp {
    fn describe(&self) -> record::Strategy {
        describe_strategy(
            "ramp",
            [
                ("target", human::pps(self.target_pps)),
                ("ramp-duration", format!("{:?}", self.rise)),
                ("hold-duration", format!("{:?}", self.hold)),
            ],
            &self.conditions,
        )
    }

    fn planned(&self) -> Duration {
        Self::planned(self)
    }

    fn run(&self, engine: &mut dyn Engine, observer: &mut dyn Observer) -> Outcome {
        Self::run(self, engine, observer)
    }
}

impl Strategy for Saturate {
    fn describe(&self) -> record::Strategy {
        let load = match self.load {
            Load::Idle => "none".to_owned(),
            Load::Rate(pps) => human::pps(pps),
            Load::Burst { pps, frames } => format!("{frames} frames at {}", human::pps(pps)),
            Load::Max => "max".to_owned(),
        };
        describe_strategy(
            "saturate",
            [("rate", load), ("duration", format!("{:?}", self.duration))],
            &self.conditions,
        )
    }

    fn planned(&self) -> Duration {
        Self::planned(self)
    }

    fn run(&self, engine: &mut dyn Engine, observer: &mut dyn Observer) -> Outcome {
        Self::run(self, engine, observer)
    }
}

impl Strategy for Search {
    fn describe(&self) -> record::Strategy {
        let mut strategy = describe_strategy(
            "search",
            [
                ("min-rate", human::pps(self.min_pps)),
                ("max-rate", human::pps(self.max_pps)),
                ("max-duration", format!("{:?}", self.max_duration)),
            ],
            &self.conditions,
        );
        strategy.parameters.extend(goals(self));
        strategy
    }

    fn planned(&self) -> Duration {
        Self::planned(self)
    }

    fn run(&self, engine: &mut dyn Engine, observer: &mut dyn Observer) -> Outcome {
        Self::run(self, engine, observer)
    }
}

impl Strategy for Latency {
    fn describe(&self) -> record::Strategy {
        let loads: Vec<String> = self.loads.iter().map(|load| load.name()).collect();
        let reference = match &self.reference {
            Reference::Given(pps) => human::pps(*pps),
            Reference::Searched(search) => format!("the PDR, searched for {:?}", search.max_duration),
        };
        let mut strategy = describe_strategy(
            "latency",
            [("loads", loads.join(",")), ("of", reference), ("duration", format!("{:?}", self.duration))],
            &self.conditions,
        );
        strategy.parameters.extend(self.search().into_iter().flat_map(goals));
        strategy
    }

    fn planned(&self) -> Duration {
        Self::planned(self)
    }

    fn run(&self, engine: &mut dyn Engine, observer: &mut dyn Observer) -> Outcome {
        Self::run(self, engine, observer)
    }
}

impl Strategy for Soak {
    fn describe(&self) -> record::Strategy {
        describe_strategy(
            "soak",
            [
                ("rate", human::pps(self.pps)),
                ("duration", format!("{:?}", self.duration)),
                ("stop-on-stall", if self.stop_on_stall { "yes" } else { "no" }.to_owned()),
            ],
            &self.conditions,
        )
    }

    fn planned(&self) -> Duration {
        Self::planned(self)
    }

    fn run(&self, engine: &mut dyn Engine, observer: &mut dyn Observer) -> Outcome {
        Self::run(self, engine, observer)
    }
}

impl Strategy for Rfc2544 {
    fn describe(&self) -> record::Strategy {
        let Timing { trial, loss_trial, stream, streams, burst, bursts, overload, overloads, .. } =
            self.timing;
        let tests: Vec<&str> = self.tests.iter().map(|test| test.name()).collect();
        record::Strategy {
            name: "rfc2544".to_owned(),
            parameters: parameters([
                ("tests", tests.join(",")),
                ("quick", if self.timing.quick { "yes: not conformant" } else { "no" }.to_owned()),
                ("trial", format!("{trial:?}")),
                ("loss trial", format!("{loss_trial:?}")),
                ("latency streams", format!("{streams} of {stream:?}")),
                ("bursts", format!("{bursts} of up to {burst:?}")),
                ("overloads", format!("{overloads} of {overload:?}")),
                ("pause", format!("{:?}", self.timing.pause())),
                ("min-rate", human::pps(self.min_pps)),
            ]),
            loss_threshold: 0.0,
        }
    }

    fn planned(&self) -> Duration {
        Self::planned(self)
    }

    fn run(&self, engine: &mut dyn Engine, observer: &mut dyn Observer) -> Outcome {
        Self::run(self, engine, observer)
    }
}

/// The goals of a search, for the record.
fn goals(search: &Search) -> impl Iterator<Item = (String, String)> {
    search.goals.iter().map(|goal| (format!("goal {}", goal.name), describe_goal(goal)))
}

/// A goal as `--goal` takes it.
#[must_use]
pub fn describe_goal(goal: &Goal) -> String {
    format!(
        "loss={}%,exceed={}%,width={}%,initial={:?},final={:?},sum={:?},queue={}",
        percent(goal.loss_ratio),
        percent(goal.exceed_ratio),
        percent(goal.relative_width),
        goal.initial_trial_duration,
        goal.final_trial_duration,
        goal.duration_sum,
        goal.hidden_queue
    )
}

/// A share in percent, without the digits that binary fractions add.
fn percent(share: f64) -> f64 {
    (share * 1e8).round() / 1e6
}
