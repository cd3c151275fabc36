//! What the quick bench runs: the eight usual load tests, each a short ramp and a short search for the limit that it
//! shows, and minutes later a second search with the device set up anew. A test and a line enter; a profile and
//! strategies leave. Pure.

mod bench;
mod spread;

use std::time::Duration;

use anyhow::Result;
use results::record::RateInterval;
use traffic::{Directions, Profile, Tunables};
use trial::{Conditions, Ramp, Search, WarmUp};

pub use bench::{Bench, limit};
pub use spread::settle;

/// One of the load tests.
#[derive(Clone, Copy, Debug)]
pub struct Test {
    /// What reports call it.
    pub label: &'static str,
    size: &'static str,
    vm: &'static str,
    /// Which ways it loads.
    pub directions: Directions,
}

/// The load tests of the Netgate 6100 review, from easy to hard, one way and both.
pub const TESTS: [Test; 8] = {
    const fn test(label: &'static str, size: &'static str, vm: &'static str, directions: Directions) -> Test {
        Test { label, size, vm, directions }
    }
    [
        test("1514 B", "1514", "var2", Directions::Forward),
        test("imix", "imix", "var2", Directions::Forward),
        test("64 B", "64", "var2", Directions::Forward),
        test("64 B, 1 flow", "64", "none", Directions::Forward),
        test("1514 B bidirectional", "1514", "var2", Directions::Both),
        test("imix bidirectional", "imix", "var2", Directions::Both),
        test("64 B bidirectional", "64", "var2", Directions::Both),
        test("64 B, 1 flow bidirectional", "64", "none", Directions::Both),
    ]
};

/// The devices that are tested where none is asked for, as `--dut` takes them.
pub const DEVICES: [&str; 3] = ["linux-router", "xdp-router", "fastpath"];

/// How long the bench takes at most, unless its runs themselves take longer.
const LONGEST: Duration = Duration::from_mins(4);

/// How a run measures beside what a user chooses.
const WARM_UP: WarmUp = WarmUp { pps: 1000.0, duration: Duration::from_millis(500) };
const STEP: Duration = Duration::from_millis(50);
const HOLD: Duration = Duration::from_millis(500);
const DRAIN: Duration = Duration::from_millis(300);
const LOSS_THRESHOLD: f64 = 0.001;

impl Test {
    /// What it sends.
    ///
    /// # Errors
    /// Never of [`TESTS`].
    pub fn profile(&self) -> Result<Profile> {
        let tunables =
            Tunables { size: Some(self.size.parse()?), vm: Some(self.vm.parse()?), ..Tunables::default() };
        Ok(Profile::builtin("bench", &tunables)?)
    }
}

/// What a user chooses of all its runs.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The line rate (L1), in bits a second.
    pub line_rate_bps: f64,
    /// The share of it that the load rises to, above 0 and at most 1.
    pub share: f64,
    /// How long the load rises.
    pub rise: Duration,
    /// How long the limit is searched for after that, at most.
    pub search: Duration,
}

impl Plan {
    /// How frames of `mean_frame_size` bytes are offered.
    #[must_use]
    pub fn ramp(&self, mean_frame_size: f64) -> Ramp {
        Ramp {
            conditions: self.conditions(),
            target_pps: self.target_pps(mean_frame_size),
            rise: self.rise,
            hold: HOLD,
            search: self.search,
        }
    }

    /// The second search for a limit that a first run found between `found`, both bounds in frames a second of each
    /// direction; `None` where that is no search. Where the first run found no upper bound, it begins at the lower one.
    #[must_use]
    pub fn second(&self, mean_frame_size: f64, found: RateInterval) -> Option<Search> {
        let expected = (found.lower_pps, found.upper_pps.unwrap_or(found.lower_pps));
        let target_pps = self.target_pps(mean_frame_size);
        Search::near(&self.conditions(), expected, target_pps, self.planned_second())
            .filter(|_| !self.search.is_zero())
    }

    /// How long a second search takes at most, beside what setting up its lab takes.
    #[must_use]
    pub fn planned_second(&self) -> Duration {
        (WARM_UP.duration + 2 * DRAIN).saturating_add(self.search / 2)
    }

    fn conditions(&self) -> Conditions {
        Conditions {
            warm_up: WARM_UP,
            step: STEP,
            drain: DRAIN,
            loss_threshold: LOSS_THRESHOLD,
            line_rate_bps: self.line_rate_bps,
        }
    }

    fn target_pps(&self, mean_frame_size: f64) -> f64 {
        wire::size::l1_bps_to_pps(self.line_rate_bps * self.share, mean_frame_size)
    }

    /// How long `runs` runs take at most, beside what setting up their labs takes.
    #[must_use]
    pub fn planned(&self, runs: usize) -> Duration {
        let first = self.rise.saturating_add(self.search).saturating_add(WARM_UP.duration + HOLD + 3 * DRAIN);
        let each = first.saturating_add(self.planned_second());
        each.saturating_mul(u32::try_from(runs).unwrap_or(u32::MAX))
    }

    /// How long all may take, so that measuring again has an end: a twentieth longer than `runs` runs, and four
    /// minutes with the usual plan.
    #[must_use]
    pub fn longest(&self, runs: usize) -> Duration {
        (self.planned(runs).saturating_mul(21) / 20).max(LONGEST)
    }
}

impl Plan {
    /// What is planned of so many devices, for people: how many runs, for how long, and `retries` at most of each.
    #[must_use]
    pub fn in_words(&self, devices: usize, retries: usize) -> String {
        let (tests, runs) = (TESTS.len(), TESTS.len() * devices);
        let minutes = |time: Duration| time.as_secs_f64() / 60.0;
        let plural = if devices == 1 { "" } else { "s" };
        let again = match retries {
            0 => String::new(),
            1 => "; a run that host interference may have changed is measured again, once".to_owned(),
            _ => format!(
                "; a run that host interference may have changed is measured again, up to {retries} times"
            ),
        };
        format!(
            "{runs} runs ({tests} tests × {devices} device{plural}), about {:.1} min{again}; at most {:.0} min in all",
            minutes(self.planned(runs)),
            minutes(self.longest(runs)),
        )
    }
}

#[cfg(test)]
mod tests {
    use trial::Strategy as _;

    use super::*;

    const USUAL: Plan = Plan {
        line_rate_bps: 2.5e9,
        share: 0.97,
        rise: Duration::from_secs(2),
        search: Duration::from_secs(3),
    };

    #[test]
    fn every_test_can_be_carried_out() {
        for test in TESTS {
            let profile = test.profile().unwrap();
            let ramp = USUAL.ramp(f64::from(profile.largest_size()));
            assert!(ramp.check().is_ok() && ramp.planned() <= USUAL.planned(1) + DRAIN, "{}", test.label);
        }
    }

    #[test]
    fn the_plan_says_what_is_measured_again_only_where_something_is() {
        assert_eq!(
            USUAL.in_words(3, 2),
            "24 runs (8 tests × 3 devices), about 3.8 min; a run that host interference may have changed is measured \
             again, up to 2 times; at most 4 min in all"
        );
        assert!(USUAL.in_words(1, 1).starts_with("8 runs (8 tests × 1 device), "));
        assert!(USUAL.in_words(1, 1).contains("again, once;") && !USUAL.in_words(1, 0).contains("again"));
    }

    #[test]
    fn the_usual_bench_takes_four_minutes_at_most_and_no_plan_overflows() {
        let runs = TESTS.len() * DEVICES.len();
        assert!(USUAL.planned(runs) < LONGEST);
        assert_eq!(USUAL.longest(runs), LONGEST);
        let endless = Plan { rise: Duration::MAX, ..USUAL };
        assert_eq!(endless.planned(usize::MAX), Duration::MAX);
        assert!(endless.longest(1) >= LONGEST);
    }
}
