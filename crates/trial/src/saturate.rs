//! Saturation: full load at once, and what the device forwards of it. One flow shows what a single core
//! forwards. A rate can be steered while it goes on.

use std::time::Duration;

use engine::{Engine, Load};
use results::record::{self, Finding, Phase};
use wire::human;

use crate::conditions::{check_rate, refuse_unless};
use crate::session::{Session, Stop};
use crate::{Conditions, Failure, Observer, Outcome, Strategy, strategy};

/// A constant load, usually more than the device can bear.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Saturate {
    /// How it measures.
    pub conditions: Conditions,
    /// A rate in each direction, like the line rate, or as fast as the tester can.
    pub load: Load,
    /// How long.
    pub duration: Duration,
}

impl Strategy for Saturate {
    fn describe(&self) -> record::Strategy {
        let load = match self.load {
            Load::Idle => "none".to_owned(),
            Load::Rate(pps) => human::pps(pps),
            Load::Burst { pps, frames } => format!("{frames} frames at {}", human::pps(pps)),
            Load::Max => "max".to_owned(),
        };
        let own = [("rate", load), ("duration", format!("{:?}", self.duration))];
        strategy::describe("saturate", own, &self.conditions)
    }

    fn run(&self, engine: &mut dyn Engine, observer: &mut dyn Observer) -> Outcome {
        let mut session = Session::new(engine, observer);
        let end = self.drive(&mut session);
        let target_pps = if let Load::Rate(pps) = self.load {
            Some(session.highest_steered().unwrap_or(pps))
        } else {
            None
        };
        session.finish(end, &self.conditions.judge(target_pps), self.conditions.drain, Finding::Saturate)
    }

    fn planned(&self) -> Duration {
        self.conditions.around(self.duration)
    }

    fn check(&self) -> Result<(), Failure> {
        self.conditions.check()?;
        self.conditions.check_phase("duration", self.duration)?;
        refuse_unless(!self.duration.is_zero(), || "--duration must be greater than 0".into())?;
        match self.load {
            Load::Idle => {
                Err(Failure::Refused("the load must be greater than 0: give a rate, or max".into()))
            }
            Load::Burst { .. } => {
                Err(Failure::Refused("a burst ends before it saturates a device: give a rate, or max".into()))
            }
            Load::Rate(pps) => check_rate("load", "pps", pps),
            Load::Max => Ok(()),
        }
    }
}

impl Saturate {
    fn drive(&self, session: &mut Session) -> Result<(), Stop> {
        self.check()?;
        session.warm_up(&self.conditions)?;
        session.wait_out_noise(self.duration)?;
        session.let_steer();
        session.run(Phase::Hold, &self.conditions.constant(self.load, self.duration), self.duration)?;
        session.drain(self.conditions.drain)
    }
}
