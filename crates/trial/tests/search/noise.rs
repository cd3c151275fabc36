//! What a search says of a device on a machine that disturbs it.

use std::collections::BTreeMap;
use std::time::Duration;

use engine::Load;
use engine::simulated::{Device, Disturbance, Tester};
use results::record::{GoalResult, Trial, TrialVerdict};
use trial::{Interruption, Noise, Observer, ObserverError, Search, Surroundings};

use super::{assert_found, results, run, run_with, search, trials};
use crate::common::{SECOND, device};

/// Says what noise there was in each trial: by its number, the first is 0.
pub struct Noisy<F> {
    cost: F,
    shown: Vec<Trial>,
}

impl<F: FnMut(usize) -> f64> Noisy<F> {
    pub fn new(cost: F) -> Self {
        Self { cost, shown: Vec::new() }
    }
}

impl<F: FnMut(usize) -> f64> Observer for Noisy<F> {
    fn trial(&mut self, trial: &Trial, _results: &BTreeMap<String, GoalResult>) -> Result<(), ObserverError> {
        self.shown.push(trial.clone());
        Ok(())
    }

    fn surroundings(&mut self) -> Option<&mut dyn Surroundings> {
        Some(self)
    }
}

impl<F: FnMut(usize) -> f64> Surroundings for Noisy<F> {
    /// Asked before a trial, where the answer is not used, and at its end.
    fn noise(&mut self, _load: Load) -> Noise {
        let cost = (self.cost)(self.shown.len());
        Noise { cost, disturbed: (cost > 0.0).then(|| "stolen time".to_owned()), ..Noise::default() }
    }
}

#[test]
fn a_loss_that_noise_may_account_for_is_measured_again() {
    let quiet = run(&search(), device(333_333.0));
    let mut noise = Noisy::new(|trial| if trial % 3 == 1 { 1.0 } else { 0.0 });
    let outcome = run_with(&search(), device(333_333.0), Tester::default(), &mut noise);
    assert_eq!(results(&outcome), results(&quiet));
    assert_eq!(outcome.finding.search().unwrap().disturbed, Some(false));
    assert_eq!(noise.shown, trials(&outcome));
    let said_nothing =
        |trial: &Trial| trial.verdicts.values().all(|verdict| *verdict == TrialVerdict::Disturbed);
    let repeated: Vec<_> = trials(&outcome).windows(2).filter(|pair| said_nothing(&pair[0])).collect();
    assert!(!repeated.is_empty());
    for pair in repeated {
        assert_eq!((pair[0].load_pps, pair[0].duration_s), (pair[1].load_pps, pair[1].duration_s));
    }
}

/// Says that all of the machine is another one, in trials that begin in a stretch of time.
struct Elsewhere {
    stretch: std::ops::Range<f64>,
    shown: Vec<Trial>,
}

impl Observer for Elsewhere {
    fn trial(&mut self, trial: &Trial, _results: &BTreeMap<String, GoalResult>) -> Result<(), ObserverError> {
        self.shown.push(trial.clone());
        Ok(())
    }

    fn surroundings(&mut self) -> Option<&mut dyn Surroundings> {
        Some(self)
    }
}

impl Surroundings for Elsewhere {
    fn noise(&mut self, _load: Load) -> Noise {
        let began = self.shown.last().map_or(0.0, |trial| trial.at_s + trial.duration_s);
        if !self.stretch.contains(&began) {
            return Noise::default();
        }
        let (disturbed, interruptions) = (Some("far cores".to_owned()), Some(Vec::new()));
        Noise { cost: 1.0, lasting: 1.0, interruptions, disturbed }
    }
}

/// 333,333 frames a second, but from `from_s` on for so many seconds seven tenths of that.
fn moved(from_s: u32, seconds: u32) -> Device {
    let slow = Disturbance { from: from_s * SECOND, length: seconds * SECOND, factor: 0.7 };
    Device { disturbances: vec![slow], ..device(333_333.0) }
}

#[test]
fn what_is_lost_while_the_cores_are_far_apart_does_not_count_against_the_usual_limit() {
    let mut elsewhere = Elsewhere { stretch: 4.0..12.0, shown: Vec::new() };
    let outcome = run_with(&search(), moved(5, 6), Tester::default(), &mut elsewhere);
    assert_found(&results(&outcome)["ndr"], 333_333.0, 66.0);
    assert_found(&results(&outcome)["pdr"], 333_333.0 / 0.995, 66.0);
    assert_eq!(outcome.finding.search().unwrap().disturbed, Some(false));
    // Meanwhile the limit of that state was searched for.
    let far = trials(&outcome).iter().filter(|trial| trial.disturbed.is_some());
    let mut loads: Vec<u64> = far.map(|trial| trial.load_pps as u64).collect();
    loads.dedup();
    assert!(loads.len() > 3, "{loads:?}");
}

#[test]
fn a_search_in_cores_that_stay_far_apart_finds_the_limit_there_and_says_so() {
    let mut elsewhere = Elsewhere { stretch: 0.0..1e9, shown: Vec::new() };
    let outcome = run_with(&search(), moved(0, 1000), Tester::default(), &mut elsewhere);
    for (name, truth) in [("ndr", 233_333.0), ("pdr", 233_333.0 / 0.995)] {
        let found = results(&outcome)[name];
        let upper = found.upper_pps.unwrap();
        assert!(found.lower_pps <= truth + 140.0 && truth <= upper + 1.0, "{found:?}");
        assert!(found.disturbed && upper - found.lower_pps <= truth * 0.0051, "{found:?}");
    }
    let note = outcome.notes.iter().find(|note| note.contains("measured while far cores"));
    assert!(note.is_some_and(|note| note.starts_with("ndr and pdr")), "{:?}", outcome.notes);
    let ended = outcome.samples.last().map(|sample| sample.at_s).unwrap();
    assert!(ended < 45.0, "it took {ended} s");
}

#[test]
fn a_machine_too_noisy_ends_with_an_honest_interval() {
    for quiet_trials in [0, 3, 8] {
        let mut noise = Noisy::new(|trial| if trial >= quiet_trials { 1.0 } else { 0.0 });
        let outcome = run_with(&search(), device(333_333.0), Tester::default(), &mut noise);
        assert_eq!(outcome.finding.search().unwrap().disturbed, Some(true));
        for (name, truth) in [("ndr", 333_333.0), ("pdr", 333_333.0 / 0.995)] {
            let found = results(&outcome)[name];
            assert!(found.disturbed && found.irregular.is_some(), "{found:?}");
            assert!(found.lower_pps <= truth + 140.0, "{found:?}");
            assert!(found.upper_pps.is_none_or(|upper| upper >= truth), "{found:?}");
        }
        assert!(outcome.notes.iter().any(|note| note.contains("too many trials hit host interference")));
    }
}

/// Every 250 ms a device of 333,333 frames a second stands still for 5 ms, and loses 2 %.
fn interrupted_device() -> Device {
    let stalls = (0..1_000).map(|stall| Disturbance {
        from: Duration::from_millis(250 * stall),
        length: Duration::from_millis(5),
        factor: 0.0,
    });
    Device { disturbances: stalls.collect(), ..device(333_333.0) }
}

#[test]
fn steady_noise_widens_the_interval_by_as_much() {
    let mut noise = Noisy::new(|_| 0.04);
    let outcome = run_with(&search(), interrupted_device(), Tester::default(), &mut noise);
    for (name, truth) in [("ndr", 333_333.0), ("pdr", 333_333.0 / 0.995)] {
        let found = results(&outcome)[name];
        let upper = found.upper_pps.unwrap();
        assert!(found.lower_pps <= truth && truth <= upper, "{found:?}");
        assert!(upper < truth * 1.06, "the noise is known, so the upper bound is, too: {found:?}");
        assert!(found.disturbed, "{found:?}");
    }
}

/// Knows when the device stood still.
struct Watchful(Vec<Interruption>);

impl Observer for Watchful {
    fn surroundings(&mut self) -> Option<&mut dyn Surroundings> {
        Some(self)
    }
}

impl Surroundings for Watchful {
    fn noise(&mut self, _load: Load) -> Noise {
        Noise { cost: 0.04, interruptions: Some(self.0.clone()), ..Noise::default() }
    }
}

/// Knows of a device that it has lost nothing by its rules, and of interruptions.
#[derive(Default)]
struct Ruled(Vec<Interruption>);

impl Observer for Ruled {
    fn surroundings(&mut self) -> Option<&mut dyn Surroundings> {
        Some(self)
    }
}

impl Surroundings for Ruled {
    fn noise(&mut self, _load: Load) -> Noise {
        Noise { interruptions: Some(self.0.clone()), ..Noise::default() }
    }

    fn lost_by_rules(&mut self) -> Option<u64> {
        Some(0)
    }
}

#[test]
fn what_a_device_of_known_truth_did_not_lose_by_its_rules_proves_no_limit() {
    let search = Search { max_duration: 20 * SECOND, ..search() };
    let outcome = run_with(&search, device(333_333.0), Tester::default(), &mut Ruled::default());
    for found in results(&outcome).values() {
        assert!(found.disturbed && found.upper_pps.is_none(), "{found:?}");
    }
    let lossy = trials(&outcome).iter().filter(|trial| trial.loss_ratio > 0.01);
    let words: Vec<_> = lossy.map(|trial| trial.disturbed.clone().unwrap_or_default()).collect();
    assert!(!words.is_empty() && words.iter().all(|words| words.contains("overflowed a queue")), "{words:?}");
}

/// The stalls of `device`, `late`.
fn interruptions(device: &Device, late: Duration) -> Vec<Interruption> {
    let interruption = |stall: &Disturbance| {
        let (start, taken) = (stall.from + late, stall.length.as_nanos() as u64);
        let start_ns = start.as_nanos() as u64;
        Interruption { start_ns, end_ns: start_ns + taken, taken_ns: taken }
    };
    device.disturbances.iter().map(interruption).collect()
}

#[test]
fn what_is_left_out_for_interruptions_makes_no_loss_the_rules() {
    let device = interrupted_device();
    let mut ruled = Ruled(interruptions(&device, Duration::from_millis(120)));
    let outcome = run_with(&search(), device, Tester::default(), &mut ruled);
    let partly = |trial: &&Trial| trial.directions[0].undisturbed.is_some_and(|it| it.loss_ratio() > 0.0);
    assert!(trials(&outcome).iter().any(|trial| partly(&trial)));
    for trial in trials(&outcome) {
        assert!(!trial.verdicts.values().any(|verdict| *verdict == TrialVerdict::HighLoss), "{trial:?}");
    }
}

#[test]
fn interruptions_whose_time_is_known_cost_no_precision() {
    let device = interrupted_device();
    let mut watchful = Watchful(interruptions(&device, Duration::ZERO));
    let outcome = run_with(&search(), device.clone(), Tester::default(), &mut watchful);
    for (name, truth) in [("ndr", 333_333.0), ("pdr", 333_333.0 / 0.995)] {
        let found = results(&outcome)[name];
        let upper = found.upper_pps.unwrap();
        assert!(found.lower_pps <= truth * 1.0025 && truth <= upper, "{found:?}");
        assert!(upper - found.lower_pps <= truth * 0.0051, "{found:?}");
        assert!(!found.disturbed && found.irregular.is_none(), "{found:?}");
    }
    let undisturbed = |trial: &Trial| trial.directions[0].undisturbed;
    assert!(trials(&outcome).iter().any(|trial| {
        undisturbed(trial).is_some_and(|it| it.loss_ratio() == 0.0) && trial.loss_ratio > 0.01
    }));
    // At another time than it stood still, nothing is forgiven.
    watchful.0 = interruptions(&device, Duration::from_millis(120));
    let outcome = run_with(&search(), device, Tester::default(), &mut watchful);
    assert!(results(&outcome)["ndr"].lower_pps < 333_333.0 * 0.9, "{:?}", results(&outcome));
}
