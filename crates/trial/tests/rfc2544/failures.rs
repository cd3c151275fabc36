//! Devices that fail a test, and testers that cannot carry it out.

use engine::simulated::{Device, Stall, Tester};
use results::record::{LimitedBy, Status};
use trial::rfc2544::Test;
use trial::{Failure, Silent};

use super::{LINE_PPS, Resets, all, found, run, run_with, tests};
use crate::common::device;

#[test]
fn a_device_that_passes_everything_has_no_buffer_to_measure() {
    let outcome = run(&all(), Device::default());
    let found = found(&outcome);
    let throughput = found.throughput.unwrap();
    assert_eq!((throughput.limited_by, throughput.upper_pps), (LimitedBy::LineRate, None));
    assert!(found.not_run["back-to-back"].contains("the throughput is the line rate"));
    assert_eq!(found.loss.len(), 2, "two trials without loss are enough");
    assert_eq!(outcome.status, Status::Complete);
}

#[test]
fn a_device_that_always_loses_has_no_throughput() {
    let outcome = run(&all(), Device { random_loss: 0.05, ..Device::default() });
    let found = found(&outcome);
    assert_eq!(found.throughput.unwrap().pps, 0.0);
    for test in ["latency", "back-to-back", "recovery", "reset"] {
        assert!(found.not_run[test].contains("no load passed without loss"), "{:?}", found.not_run);
    }
    assert!(found.loss.len() > 10 && found.loss.iter().all(|point| point.loss_ratio > 0.01));
    assert_eq!(outcome.status, Status::Complete);
}

#[test]
fn a_dead_device_is_diagnosed() {
    let blocked = Device { blocked: [true, true], ..Device::default() };
    for asked in [all(), tests(&[Test::Loss])] {
        let outcome = run(&asked, blocked.clone());
        assert!(matches!(outcome.failure, Some(Failure::NothingPasses { .. })), "{outcome:?}");
        assert!(outcome.reason().unwrap().contains("check the link"));
        assert!(found(&outcome).not_run.values().all(|reason| reason == "the run ended before"));
    }
}

#[test]
fn a_device_that_dies_in_the_middle_leaves_what_was_found_before() {
    for frames in [2_500_000, 3_000_000] {
        let stall = Some(Stall::AfterFrames(frames));
        let outcome = run(&all(), Device { stall, ..device(400_000.0) });
        let notes = outcome.notes.join("; ");
        assert!(notes.contains("the device stopped forwarding"), "{frames}: {notes}");
        let found = found(&outcome);
        assert!((found.throughput.unwrap().pps / 400_000.0 - 1.0).abs() < 0.01 && found.latency.is_some());
        assert_eq!((outcome.status, &*found.not_run["reset"]), (Status::Complete, "the run ended before"));
    }
}

#[test]
fn what_the_tester_cannot_send_is_not_the_devices_loss() {
    let tester = Tester { max_pps: 0.85 * LINE_PPS, ..Tester::default() };
    let outcome = run_with(&all(), device(700_000.0), tester.clone(), &mut Silent);
    let found = found(&outcome);
    assert!((found.throughput.unwrap().pps / 700_000.0 - 1.0).abs() < 0.006);
    let limited: Vec<bool> = found.loss.iter().map(|point| point.tester_limited).collect();
    assert_eq!(limited[..4], [true, true, false, false]);
    assert!((found.loss[0].offered_pps / (0.85 * LINE_PPS) - 1.0).abs() < 0.01);
    let bursts = found.back_to_back.as_ref().unwrap();
    assert!(bursts.tester_limited && bursts.bursts.is_empty(), "{bursts:?}");

    // A load that was not sent has not been survived.
    let outcome = run_with(&tests(&[Test::Loss]), Device::default(), tester, &mut Silent);
    let points = &outcome.finding.rfc2544().unwrap().loss;
    assert_eq!(points.len(), 4, "100 and 90 % were not sent, 80 and 70 % passed");
}

#[test]
fn where_the_tester_is_the_limit_nothing_is_said_of_the_device() {
    let tester = Tester { max_pps: 0.5 * LINE_PPS, ..Tester::default() };
    let outcome = run_with(&all(), Device::default(), tester, &mut Resets(false));
    let found = found(&outcome);
    assert_eq!(found.throughput.unwrap().limited_by, LimitedBy::Tester);
    for test in ["loss", "back-to-back", "recovery"] {
        assert!(found.not_run[test].contains("50 % of the line rate"), "{:?}", found.not_run);
    }
    assert!(found.latency.is_some() && found.reset.is_some() && outcome.status == Status::Complete);
}
