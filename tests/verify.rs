//! The certificate: the tester measures reference devices, and says how far it is off.

use crate::common::{has_namespaces, linerate, machine};
use results::certificate::{Certificate, SCHEMA, Unit, Verdict};
use results::record::Status;

/// The devices whose truth is compared at least.
const DEVICES: [&str; 10] = [
    "xdp-xconnect",
    "calibrated:drop-every=10",
    "calibrated:loss=1%",
    "calibrated:stall-after=5000",
    "calibrated:rate=50000,burst=2000",
    "delayed:delay=100us,reorder=1%,duplicate=0.5%",
    "delayed:delay=50us",
    "delayed:delay=200us",
    "delayed:delay=1ms",
    "calibrated:rate=",
];

#[test]
fn the_tester_measures_what_is_true_or_says_what_kept_it_from_that() {
    if !has_namespaces() {
        return;
    }
    let _machine = machine();
    let finished = linerate("verify --quick --seed 11 --json").on_my_machine().run();
    let certificate: Certificate = serde_json::from_str(&finished.stdout).unwrap();
    eprintln!("{}", finished.stderr);

    assert_eq!((certificate.schema.as_str(), certificate.status), (SCHEMA, Status::Complete));
    assert_eq!((certificate.seed, certificate.quick), (11, true));
    assert!(certificate.command.ends_with(&["--seed", "11", "--json"].map(str::to_owned)));
    assert!(certificate.environment.cores > 0);
    assert_eq!(certificate.unwatched, None);
    for device in DEVICES {
        let measured = certificate.checks.iter().any(|check| check.dut.starts_with(device));
        assert!(measured, "nothing was measured of {device}");
    }
    for check in &certificate.checks {
        assert!(check.attempts > 0, "{check:?}");
        assert_eq!(check.error, check.measured.map(|measured| measured - check.truth), "{check:?}");
        match check.verdict {
            Verdict::Passed => assert!(check.error.unwrap().abs() <= check.bound, "{check:?}"),
            Verdict::Undecided => assert!(!check.reason.as_ref().unwrap().is_empty(), "{check:?}"),
            Verdict::Failed => panic!("{check:?}"),
        }
    }
    // An interval that passed holds the truth, as near as a queue may hide it.
    let searched = certificate.checks.iter().filter(|check| check.unit == Unit::Pps);
    for check in searched.filter(|check| check.verdict == Verdict::Passed) {
        let (lower, upper) = check.interval.unwrap();
        assert!(lower <= check.truth * 1.0025 && check.truth <= upper.unwrap(), "{check:?}");
    }
    // Undecided checks count for nothing.
    let decided = certificate.count(Verdict::Passed) > 0;
    assert_eq!(finished.status.code(), Some(if decided { 0 } else { 1 }), "{}", finished.stderr);
}

#[test]
fn a_seed_that_is_no_number_is_refused() {
    let finished = linerate("verify --seed lots").run();
    assert!(finished.refusal(2).contains("--seed"));
}
