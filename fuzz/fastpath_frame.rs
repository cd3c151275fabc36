//! Frames through fastpath's router for seconds, as [`fuzz::frames`] describes. `make fuzz` runs it for long.

#![allow(clippy::unwrap_used)] // a test may panic

use std::time::Duration;

use fuzz::frames::{DEVICES, Net, corpus, play};

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

#[test]
fn fastpath_frame() {
    let corpus = corpus();
    bolero::check!().with_test_time(Duration::from_secs(3)).with_max_len(2048).for_each(|script: &[u8]| {
        play(&corpus, script);
    });
}
