//! Every target for a moment, with bytes made of its seeds: who breaks a parser sees it before `make fuzz` does.

#![allow(clippy::unwrap_used)] // a test may panic

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use fuzz::mutation::mutated;
use fuzz::{TARGETS, Target};

/// How long each is tried.
const MOMENT: Duration = Duration::from_millis(700);

#[test]
fn seeds_pass() {
    for target in &TARGETS {
        let seeds = (target.seeds)();
        assert!(!seeds.is_empty(), "{}", target.name);
        seeds.iter().for_each(|seed| (target.run)(seed));
    }
}

/// Tries a target with its seeds, changed, and names it if it fails.
fn try_out(target: &Target) {
    let seeds = (target.seeds)();
    bolero::check!().with_test_time(MOMENT).with_max_len(64).for_each(|script: &[u8]| {
        let bytes = mutated(&seeds, script);
        let tried = catch_unwind(AssertUnwindSafe(|| (target.run)(&bytes)));
        assert!(tried.is_ok(), "{} fails on {:?}", target.name, String::from_utf8_lossy(&bytes));
    });
}

#[test]
fn changed_seeds_pass() {
    // `make fuzz` gives the frames more time, and `fastpath_frame` has seconds of its own.
    TARGETS.iter().filter(|target| target.name != "frames").for_each(try_out);
}
