//! Every target for a moment, with bytes made of its seeds: who breaks a parser sees it before `make fuzz` does.

#![allow(clippy::unwrap_used)] // a test may panic

use std::time::{Duration, Instant};

use fuzz::frames::{DEVICES, Net, corpus};
use fuzz::mutation::mutated;
use fuzz::{TARGETS, Target};
use proptest::collection::vec;
use proptest::prelude::any;
use proptest::test_runner::{Config, TestRunner};

/// The target whose inputs are scripts themselves, and longer ones.
const FRAMES: &str = "frames";
/// How many inputs are tried between two looks at the clock.
const INPUTS: u32 = 16;

/// Runs a target for `time`, with what `make` makes of random scripts of at most `longest` bytes. A script that fails is
/// made smaller, and shown.
fn try_out(target: &Target, time: Duration, longest: usize, make: impl Fn(Vec<u8>) -> Vec<u8>) {
    let deadline = Instant::now() + time;
    while Instant::now() < deadline {
        let config =
            Config { cases: INPUTS, max_shrink_iters: 4096, failure_persistence: None, ..Config::default() };
        let tried = TestRunner::new(config).run(&vec(any::<u8>(), 0..=longest), |script| {
            (target.run)(&make(script));
            Ok(())
        });
        tried.unwrap_or_else(|failure| panic!("{} fails: {failure}", target.name));
    }
}

#[test]
fn seeds_pass() {
    for target in &TARGETS {
        let seeds = (target.seeds)();
        assert!(!seeds.is_empty(), "{}", target.name);
        seeds.iter().for_each(|seed| (target.run)(seed));
    }
}

#[test]
fn changed_seeds_pass() {
    for target in TARGETS.iter().filter(|target| target.name != FRAMES) {
        let seeds = (target.seeds)();
        try_out(target, Duration::from_millis(700), 64, |script| mutated(&seeds, &script));
    }
}

#[test]
fn frames_pass() {
    let target = TARGETS.iter().find(|target| target.name == FRAMES).unwrap();
    try_out(target, Duration::from_secs(3), 2048, |script| script);
}

#[test]
fn frames_of_the_corpus_pass() {
    let corpus = corpus();
    let mut net = Net::default();
    for frame in &corpus {
        for device in 0..DEVICES {
            net.arrive(device, frame, 4);
            net.forward();
        }
    }
    let balance = net.counters.balance();
    // It is no corpus of frames that are all dropped.
    assert!(balance.sent > 150 && balance.made > 50 && balance.punted > 0, "{balance:?}");
    for which in 0..32 {
        (0..=DEVICES).for_each(|interface| net.filter(interface, which));
        for device in 0..DEVICES {
            corpus.iter().for_each(|frame| net.arrive(device, frame, 256));
        }
        net.forward();
    }
}
