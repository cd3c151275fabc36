//! What holds for a ramp whatever the device does.

use std::time::Duration;

use crate::common::{SECOND, any_device, any_tester, conditions, device, milliseconds, run};
use engine::Engine;
use engine::simulated::{Device, Disturbance, Tester};
use proptest::prelude::*;
use results::record::{LimitedBy, Status};
use trial::{Conditions, Ramp, Strategy as _, WarmUp};

fn any_ramp() -> impl Strategy<Value = Ramp> {
    let search = prop_oneof![Just(Duration::ZERO), milliseconds(0..3_000)];
    let times = (milliseconds(0..1_500), milliseconds(0..5_000), milliseconds(1..2_000), search);
    let conditions = (milliseconds(10..700), milliseconds(0..600), 0.0..0.1f64);
    (times, conditions, 1.0..1e6f64, 1.0..1e4f64).prop_map(
        |((warm_up, rise, hold, search), (step, drain, loss_threshold), target_pps, pps)| Ramp {
            conditions: Conditions {
                warm_up: WarmUp { pps, duration: warm_up },
                step,
                drain,
                loss_threshold,
                line_rate_bps: 1e9,
            },
            target_pps,
            rise,
            hold,
            search,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// `run` checks that every frame is accounted for and that time goes forward.
    #[test]
    fn any_ramp_over_any_device_ends_in_its_time_and_accounts_for_every_frame(
        ramp in any_ramp(),
        device in any_device(),
        tester in any_tester(),
    ) {
        let directions = tester.directions;
        let (outcome, engine) = run(&ramp, device, tester);
        let slack = Duration::from_millis(501);
        prop_assert!(engine.now() <= ramp.planned() + slack, "{:?}", ramp.planned());
        prop_assert_eq!(outcome.directions.len(), directions);
        prop_assert_eq!(outcome.status == Status::Failed, outcome.failure.is_some());
        for found in &outcome.directions {
            prop_assert!(found.max_rate_pps <= ramp.target_pps * (1.0 + 1e-9));
        }
    }

    /// With queues that hide an overload for less than one step: `2 queue slope < (0.1 s slope)^2`
    /// where the slope is the target over 30 s. Deeper ones are the next law's. The load rises within a step, so one whose
    /// mean is half a step below the capacity may lose a frame at its end, and the result is the step before it.
    #[test]
    fn any_capacity_is_found_within_one_percent_or_a_step_and_a_half(
        target_pps in 1e5..3e6f64,
        share in 0.05..0.9f64,
        directions in 1..=2usize,
        queue in 2..64u64,
    ) {
        let ramp = Ramp { conditions: conditions(), target_pps, rise: 30 * SECOND, hold: SECOND, search: Duration::ZERO };
        let queue = queue.min((target_pps / 6_000.0) as u64);
        let capacity = target_pps * share;
        let tester = Tester { directions, ..Tester::default() };
        let (outcome, _) = run(&ramp, Device { queue, ..device(capacity) }, tester);
        for found in &outcome.directions {
            let step = target_pps / 300.0;
            let [below, above] = [1.5 * step, step].map(|steps| f64::max(capacity * 0.01, steps));
            let error = found.max_rate_pps - capacity;
            prop_assert!((-below..=above).contains(&error), "{} for {capacity}, one step is {step}", found.max_rate_pps);
            prop_assert_eq!(found.limited_by, LimitedBy::Dut);
        }
    }

    /// As the module of the ramp says of devices with deep queues.
    #[test]
    fn a_queue_hides_an_overload_no_longer_than_it_says(queue in 64..20_000u64, share in 0.1..0.6f64) {
        let ramp = Ramp { conditions: conditions(), target_pps: 1e6, rise: 30 * SECOND, hold: SECOND, search: Duration::ZERO };
        let capacity = 1e6 * share;
        let (outcome, _) = run(&ramp, Device { queue, ..device(capacity) }, Tester::default());
        let hidden = (2.0 * queue as f64 * 1e6 / 30.0).sqrt();
        let bound = hidden + 2.0 * 1e6 / 300.0;
        let error = outcome.directions[0].max_rate_pps - capacity;
        prop_assert!((-1e6 / 300.0..=bound).contains(&error), "{error} beyond {bound}");
    }

    /// Whatever passes by below does not set the limit, as long as it lets go before the top.
    #[test]
    fn disturbances_below_the_limit_do_not_move_it(
        from in milliseconds(3_000..15_000),
        length in milliseconds(0..3_000),
        factor in 0.0..1.0f64,
    ) {
        let ramp = Ramp { conditions: conditions(), target_pps: 1e6, rise: 30 * SECOND, hold: SECOND, search: Duration::ZERO };
        let disturbances = vec![Disturbance { from, length, factor }];
        let (outcome, _) = run(&ramp, Device { disturbances, ..device(700_000.0) }, Tester::default());
        let found = &outcome.directions[0];
        prop_assert!((found.max_rate_pps - 700_000.0).abs() <= 7_000.0, "{found:?}");
        prop_assert!(found.lossy_samples_below as u128 <= length.as_millis() / 100 + 2);
    }
}
