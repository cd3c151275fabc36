//! What tests take for a machine that is not at rest.

use std::time::Duration;

use crate::common::patience::{Core, Failure, excuse, watch};

/// A core whose thread missed each of `gaps`, once in ten milliseconds.
fn core(gaps_us: &[u64]) -> Core {
    let mut core = Core::default();
    for gap in gaps_us {
        let gap = Duration::from_micros(*gap);
        let quick = Duration::from_micros(10);
        core.note(gap);
        (0..1000)
            .take_while(|number| gap + quick * *number < Duration::from_millis(10))
            .for_each(|_| core.note(quick));
    }
    core
}

#[test]
fn a_core_is_at_rest_as_long_as_it_is_hardly_ever_away() {
    let ticks = core(&[190; 100]);
    assert_eq!((ticks.time, ticks.away), (Duration::from_secs(1), Duration::ZERO));
    assert!(ticks.is_at_rest());
    let often = core(&[300; 100]);
    assert_eq!((often.away, often.longest), (Duration::from_millis(30), Duration::from_micros(300)));
    assert!(!often.is_at_rest(), "3 % of the time");
    let mut seldom = core(&[190; 400]);
    [9_000, 9_000, 9_000].into_iter().for_each(|gap| seldom.note(Duration::from_micros(gap)));
    assert!(seldom.is_at_rest(), "{seldom}");
    seldom.note(Duration::from_millis(12));
    assert!(!seldom.is_at_rest(), "{seldom}");
    assert_eq!(seldom.to_string(), "a core was away for 39.0 of 4039 ms, 12.0 ms at once");
}

#[test]
fn one_core_that_is_away_is_enough() {
    let (calm, busy) = (core(&[190; 100]), core(&[2_500; 10]));
    assert_eq!(Core::worst(&[calm, busy, calm]), busy);
    assert!(!busy.is_at_rest() && Core::worst(&[]).is_at_rest());
}

#[test]
fn every_core_is_watched_for_as_long_as_is_said() {
    let time = Duration::from_millis(5);
    let cores = watch(time);
    assert_eq!(cores.len(), lab::placement::online().unwrap().len());
    cores.iter().for_each(|core| {
        assert!(core.time >= time && core.away <= core.time && core.longest <= core.away, "{core}");
    });
}

#[test]
fn the_program_answers_for_what_neither_it_nor_the_cores_explain() {
    let failure = |disturbed: Option<&str>| Failure {
        words: "the rate of 7 is not 8\nand more".into(),
        disturbed: disturbed.map(str::to_owned),
    };
    let (calm, busy) = (core(&[190; 100]), core(&[12_000]));
    let (far, nothing) = (Some("at worst: cache lines took 9 times as long"), None);
    assert!(excuse(&[failure(nothing)], busy).unwrap().contains("12.0 ms at once"));
    let said = excuse(&[failure(far), failure(far)], calm).unwrap();
    assert!(said.ends_with("7 is not 8 (at worst: cache lines took 9 times as long)"), "{said}");
    let accusation = excuse(&[failure(far), failure(nothing)], calm).unwrap_err();
    assert!(accusation.contains("failed 2 times") && accusation.contains("and more"), "{accusation}");
}
