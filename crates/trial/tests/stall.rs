//! Stall searches of simulated devices: the rates at which they stop are found, whatever these are.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::common::{SECOND, any_device, any_tester, conditions, device};
use engine::Load;
use engine::simulated::{Device, Disturbance, SimulatedEngine, Stall, Tester};
use proptest::prelude::*;
use results::record::{DeviceCounted, Recovered, StallSearch as Found, StallVerdict, Status};
use trial::{
    Conditions, Failure, Interruption, Noise, Observer, Outcome, Silent, StallSearch, Strategy as _,
    Surroundings, WarmUp,
};

/// From 100 pps to 1 Mpps, 2 s each.
fn search() -> StallSearch {
    let hold = 2 * SECOND;
    let warm_up = WarmUp { pps: 1_000.0, duration: Duration::from_millis(200) };
    let drain = Duration::from_millis(500);
    StallSearch {
        conditions: Conditions { warm_up, drain, step: StallSearch::step(hold), ..conditions() },
        lowest_pps: 100.0,
        highest_pps: 1e6,
        steps: 2,
        hold,
        repeats: 2,
        width: 0.05,
        recovery: 3 * SECOND,
        seed: 7,
    }
}

/// A device that stalls once a load between two rates has lasted half a second.
fn stalls(above: f64, below: f64) -> Device {
    let stall = Stall::BetweenRates { above, below, length: Duration::from_millis(500) };
    Device { stall: Some(stall), ..device(10e6) }
}

/// Resets the device, and counts how often.
struct Resets(Arc<AtomicBool>, usize);

impl Observer for Resets {
    fn surroundings(&mut self) -> Option<&mut dyn Surroundings> {
        Some(self)
    }
}

impl Surroundings for Resets {
    fn reset(&mut self) -> Result<(), String> {
        self.0.store(true, Ordering::Relaxed);
        self.1 += 1;
        Ok(())
    }

    fn device_counters(&mut self) -> Option<Vec<DeviceCounted>> {
        Some(vec![DeviceCounted { received: 7, forwarded: 5 }; 2])
    }
}

/// The search of a device that can be reset.
fn run(search: &StallSearch, device: Device, tester: Tester) -> (Outcome, Found, usize) {
    let mut engine = SimulatedEngine::new(device, tester);
    let mut resets = Resets(engine.reset_switch(), 0);
    let outcome = search.run(&mut engine, &mut resets);
    let found = outcome.finding.stall_search().unwrap().clone();
    check(&found);
    (outcome, found, resets.1)
}

/// What holds for every search.
fn check(found: &Found) {
    let loads: Vec<f64> = found.rates.iter().map(|rate| rate.pps).collect();
    assert!(loads.is_sorted() && loads.first() == Some(&found.lowest_pps), "{loads:?}");
    for rate in &found.rates {
        assert!(rate.stalled <= rate.trials && rate.stalls.len() == rate.stalled, "{rate:?}");
        for seen in &rate.stalls {
            assert!(seen.after_s <= found.hold_s && seen.after_frames <= seen.stall.after_frames, "{seen:?}");
            assert!(seen.trial_s <= seen.stall.from_s + 1e-9, "{seen:?}");
        }
    }
    for range in &found.ranges {
        assert!(range.from_pps <= range.to_pps && range.chance_lower <= range.chance_upper, "{range:?}");
    }
    let counted: usize = found.ranges.iter().map(|range| range.trials).sum();
    assert_eq!(counted, found.rates.iter().map(|rate| rate.trials).sum::<usize>());
}

fn verdicts(found: &Found) -> Vec<StallVerdict> {
    found.ranges.iter().map(|range| range.verdict).collect()
}

use StallVerdict::{Forwards, Stalls, Unknown};

#[test]
fn the_rate_from_which_on_a_bridge_works_is_found() {
    // As the netmap bridge of the article on VPP on FreeBSD: fine at 10 Mpps, dead at 1 kpps.
    let (outcome, found, resets) = run(&search(), stalls(0.0, 20_000.0), Tester::default());
    assert_eq!((outcome.status, found.stuck), (Status::Complete, false));
    assert_eq!(verdicts(&found), [Stalls, Forwards]);
    let [low, high] = found.ranges[..] else { panic!("{:?}", found.ranges) };
    assert!(low.to_pps < 20_000.0 && high.from_pps >= 20_000.0 && high.from_pps <= low.to_pps * 1.05);
    assert_eq!((low.below_pps, high.above_pps), (Some(high.from_pps), Some(low.to_pps)));
    assert!(resets > 10, "each of its stalls needs a reset: {resets}");
    let first = &found.rates[0].stalls[0];
    assert!((first.after_s - 0.5).abs() < 0.11 && first.after_frames.abs_diff(50) <= 2, "{first:?}");
    assert_eq!((first.recovery, first.stall.until_s), (Recovered::ByReset, None));
    assert!(first.stall.counters.during.device.is_some(), "{first:?}");
    assert_eq!(first.direction, "0->1");
}

#[test]
fn a_device_that_stops_at_high_rates_or_between_two_or_never_is_found_too() {
    let (_, found, _) = run(&search(), stalls(300_000.0, 1e9), Tester::default());
    assert_eq!(verdicts(&found), [Forwards, Stalls]);
    assert!(found.ranges[1].from_pps > 300_000.0 && found.ranges[1].from_pps < 316_000.0);
    let (_, found, _) =
        run(&search(), stalls(2_000.0, 50_000.0), Tester { directions: 2, ..Tester::default() });
    assert_eq!(verdicts(&found), [Forwards, Stalls, Forwards]);
    let [below, within, above] = found.ranges[..] else { panic!("{:?}", found.ranges) };
    assert!(below.to_pps <= 2_000.0 && within.from_pps > 2_000.0 && within.from_pps <= below.to_pps * 1.05);
    assert!(within.to_pps < 50_000.0 && above.from_pps >= 50_000.0 && above.from_pps <= within.to_pps * 1.05);
    let (outcome, found, resets) = run(&search(), device(10e6), Tester::default());
    assert_eq!((verdicts(&found), resets), (vec![Forwards], 0));
    assert_eq!(found.ranges[0].trials, 9 * 2);
    assert!(found.ranges[0].chance_upper < 0.2, "{:?}", found.ranges);
    assert!(outcome.notes.is_empty(), "{:?}", outcome.notes);
    // An overload is no stall.
    let (_, found, _) = run(&search(), device(10_000.0), Tester::default());
    assert_eq!(verdicts(&found), [Forwards]);
}

#[test]
fn a_device_that_recovers_in_a_pause_is_told_from_one_that_needs_a_reset() {
    let device = Device { recovers_after: Some(Duration::from_millis(200)), ..stalls(0.0, 20_000.0) };
    let (_, found, resets) = run(&search(), device, Tester::default());
    assert_eq!((verdicts(&found), resets), (vec![Stalls, Forwards], 0));
    let recovered = found.rates.iter().flat_map(|rate| &rate.stalls);
    assert!(recovered.clone().count() > 5);
    for seen in recovered {
        assert_eq!(seen.recovery, Recovered::ByItself);
        assert!(seen.recovery_s.is_some());
    }
}

#[test]
fn a_device_that_does_not_come_back_ends_the_search_and_leaves_the_rest_unknown() {
    let mut engine = SimulatedEngine::new(stalls(0.0, 20_000.0), Tester::default());
    let outcome = search().run(&mut engine, &mut Silent);
    let found = outcome.finding.stall_search().unwrap();
    check(found);
    assert_eq!((outcome.status, found.stuck), (Status::Complete, true));
    let stalled: Vec<_> = found.rates.iter().filter(|rate| rate.verdict == Stalls).collect();
    assert_eq!(stalled.len(), 1, "the first one ended it");
    assert_eq!((stalled[0].stalls[0].recovery, stalled[0].stalls[0].recovery_s), (Recovered::No, None));
    assert!(verdicts(found).contains(&Unknown));
    let notes = outcome.notes.join("\n");
    assert!(notes.contains("was not reset after a stall: ") && notes.contains("ended early"), "{notes}");
}

#[test]
fn loads_that_the_tester_cannot_offer_are_unknown_and_higher_ones_are_not_tried() {
    let tester = Tester { max_pps: 50_000.0, ..Tester::default() };
    let (outcome, found, _) = run(&search(), stalls(0.0, 2_000.0), tester);
    assert_eq!(verdicts(&found), [Stalls, Forwards, Unknown]);
    let unknown: Vec<_> = found.rates.iter().filter(|rate| rate.verdict == Unknown).collect();
    assert_eq!(unknown.len(), 3);
    let reasons: Vec<&str> =
        unknown.iter().filter_map(|rate| Some(rate.untold.as_ref()?.reason.as_str())).collect();
    assert!(reasons.iter().all(|reason| reason.contains("the tester ")), "{reasons:?}");
    let tried = outcome.samples.iter().filter(|sample| sample.directions[0].intended_pps > 60_000.0);
    assert!(tried.map(|sample| sample.duration_s).sum::<f64>() < 6.5, "of the first such load only");
}

#[test]
fn a_short_outage_is_no_stall_and_a_long_one_that_ends_is() {
    let outage =
        |milliseconds| Disturbance { from: SECOND, length: Duration::from_millis(milliseconds), factor: 0.0 };
    let one_load = StallSearch { lowest_pps: 5_000.0, highest_pps: 5_000.0, repeats: 1, ..search() };
    for (milliseconds, expected) in [(200, Forwards), (900, Stalls)] {
        let device = Device { disturbances: vec![outage(milliseconds)], queue: 0, ..device(1e6) };
        let (_, found, _) = run(&one_load, device, Tester::default());
        assert_eq!(verdicts(&found), [expected], "{milliseconds} ms");
        if expected == Stalls {
            let seen = &found.rates[0].stalls[0];
            assert_eq!(seen.recovery, Recovered::DuringTrial);
            assert!(seen.stall.until_s.is_some());
        }
    }
}

/// A host on which other work takes so much of each tenth of a second, and whose monitor tells when.
struct BusyHost(Duration);

impl Observer for BusyHost {
    fn surroundings(&mut self) -> Option<&mut dyn Surroundings> {
        Some(self)
    }
}

impl Surroundings for BusyHost {
    fn noise(&mut self, _load: Load) -> Noise {
        let taken_ns = self.0.as_nanos() as u64;
        let interruptions = (0..100u64).map(|tenth| {
            let start_ns = tenth * 100_000_000;
            Interruption { start_ns, end_ns: start_ns + taken_ns, taken_ns }
        });
        let disturbed = Some("other tasks ran".to_owned());
        Noise { disturbed, interruptions: Some(interruptions.collect()), ..Noise::default() }
    }
}

#[test]
fn a_silence_is_unknown_only_if_the_host_was_interrupted_for_most_of_it() {
    let one_load = StallSearch { lowest_pps: 5_000.0, highest_pps: 5_000.0, repeats: 1, ..search() };
    let device = Device { recovers_after: Some(Duration::from_millis(200)), ..stalls(0.0, 20_000.0) };
    for (milliseconds, expected) in [(1, Stalls), (40, Stalls), (60, Unknown)] {
        let mut engine = SimulatedEngine::new(device.clone(), Tester::default());
        let outcome = one_load.run(&mut engine, &mut BusyHost(Duration::from_millis(milliseconds)));
        let found = outcome.finding.stall_search().unwrap();
        check(found);
        assert_eq!(verdicts(found), [expected], "{milliseconds} ms of each 100: {:?}", found.rates);
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    let refused = |search: StallSearch| match search.check() {
        Err(Failure::Refused(reason)) => reason,
        other => panic!("{other:?}"),
    };
    let clue = |search, clue: &str| {
        let reason = refused(search);
        assert!(reason.contains(clue), "no '{clue}' in: {reason}");
    };
    clue(StallSearch { lowest_pps: 0.0, ..search() }, "lowest load");
    clue(StallSearch { highest_pps: 10.0, ..search() }, "exchange them");
    clue(StallSearch { lowest_pps: 1.0, ..search() }, "too few to tell a stall");
    clue(StallSearch { steps: 0, ..search() }, "--steps");
    clue(StallSearch { repeats: 0, ..search() }, "--repeats");
    clue(StallSearch { width: f64::NAN, ..search() }, "--width");
    clue(StallSearch { repeats: 1000, steps: 100, ..search() }, "too many");
    assert_eq!(StallSearch { steps: 0, ..search() }.planned(), Duration::ZERO);
    assert!(search().check().is_ok() && search().planned() > 50 * SECOND);
}

#[test]
fn the_same_seed_tries_loads_in_the_same_order() {
    let order = |seed| {
        let (outcome, ..) = run(&StallSearch { seed, ..search() }, device(10e6), Tester::default());
        let loads: Vec<u64> =
            outcome.samples.iter().map(|sample| sample.directions[0].intended_pps as u64).collect();
        loads
    };
    assert_eq!(order(1), order(1));
    assert_ne!(order(1), order(2));
    assert!(!order(1).is_sorted());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Whatever a device that can be reset stalls at, the ranges found are the true ones to the width.
    #[test]
    fn ranges_are_true(low in 150.0..5e5f64, factor in 3.5..1e3f64, seed: u64) {
        let high = low * factor;
        let (_, found, _) = run(&StallSearch { seed, ..search() }, stalls(low, high), Tester::default());
        for range in &found.ranges {
            let inside = |pps: f64| pps > low && pps < high;
            prop_assert_eq!(range.verdict == Stalls, inside(range.from_pps), "{:?}", range);
            prop_assert_eq!(inside(range.from_pps), inside(range.to_pps), "{:?}", range);
            if let Some(above) = range.above_pps {
                prop_assert!(range.from_pps <= above * 1.05 * (1.0 + 1e-9), "{:?}", range);
            }
        }
        prop_assert!(found.ranges.iter().any(|range| range.verdict == Stalls));
    }

    /// Whatever the device and the tester do, the findings hold together.
    #[test]
    fn any_device_leaves_findings_that_hold_together(device in any_device(), tester in any_tester()) {
        let brief = StallSearch { steps: 1, repeats: 1, hold: SECOND / 2, recovery: SECOND, ..search() };
        let step = StallSearch::step(brief.hold);
        let brief = StallSearch { conditions: Conditions { step, ..brief.conditions }, ..brief };
        let (outcome, found, _) = run(&brief, device, tester);
        prop_assert!(outcome.samples.len() < 2_000, "{}", outcome.samples.len());
        prop_assert!(found.rates.len() < 100);
    }
}
