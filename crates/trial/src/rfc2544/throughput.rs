//! Throughput, RFC 2544 section 26.1: the highest rate at which the device loses nothing.

use std::time::Duration;

use results::record::Throughput;

use super::Rfc2544;
use super::trials::rest;
use crate::search::{Goal, Search, State};
use crate::session::{Session, Stop};

/// What the result is called among a record's results.
const NAME: &str = "throughput";
/// How far apart the rate that passed and the one that failed may be in the end.
pub(super) const WIDTH: f64 = 0.005;

impl Rfc2544 {
    /// The search with the goal that draft-ietf-bmwg-mlrsearch-15 calls equivalent to RFC 2544.
    pub(super) fn search(&self) -> Search {
        let timing = &self.timing;
        let goal = Goal {
            name: NAME.to_owned(),
            loss_ratio: 0.0,
            exceed_ratio: 0.0,
            relative_width: WIDTH,
            initial_trial_duration: timing.search_trial.min(timing.trial),
            final_trial_duration: timing.trial,
            duration_sum: timing.trial,
            hidden_queue: 0,
        };
        let conditions = self.conditions();
        Search {
            goals: vec![goal],
            min_pps: self.min_pps,
            max_pps: self.theoretical_pps(),
            expected: None,
            max_duration: conditions.around(Duration::ZERO).saturating_add(timing.search),
            conditions,
        }
    }

    /// Warms up and searches.
    pub(super) fn throughput(&self, state: &mut State, session: &mut Session) -> Result<Throughput, Stop> {
        state.drive_with(&self.search(), session, &mut |session, sample| {
            rest(session, sample, &self.timing)
        })?;
        let directions = session.directions().max(1) as f64;
        let result = state.results().remove(NAME);
        let result =
            result.ok_or_else(|| Stop::Stalled("the search for the throughput found nothing".into()))?;
        Ok(Throughput {
            pps: result.lower_pps / directions,
            upper_pps: result.upper_pps.map(|pps| pps / directions),
            limited_by: result.limited_by,
            irregular: result.irregular,
        })
    }
}
