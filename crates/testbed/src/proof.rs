//! Whether a device that filters does so: the sources whose packets it must drop and a profile enter; what became of a
//! few frames of each, sent before any load, leaves. A variant that lets pass what it should drop, or drops what it should
//! pass, is no rival of others, however fast it is.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{Result, bail};
use engine::{Engine, Load, StreamTotals};
use results::record::FilterProof;
use traffic::{Apart, Directions, Profile};
use wording::usage::misuse;

use crate::Testbed;

/// Frames of each kind.
const FRAMES: u64 = 32;
/// How fast they leave, in frames a second: slow enough for anything that forwards.
const PPS: f64 = 2000.0;
/// How long frames are waited for at once, and how often while some of those that must pass are missing.
const DRAIN: Duration = Duration::from_millis(100);
const DRAINS: usize = 10;
/// A device at real ports may have to ask first who its neighbours are.
const TRIES: usize = 3;

/// Sends a few frames of `profile`, and as many from each of the `denied` sources. `None` where no source is denied.
///
/// # Errors
/// When the device does not do what it should, when that cannot be told, or when no engine starts.
pub fn of(
    testbed: &Testbed,
    profile: &Profile,
    directions: Directions,
    stop: &Arc<AtomicBool>,
) -> Result<Option<FilterProof>> {
    let denied = testbed.denied();
    if denied.is_empty() {
        return Ok(None);
    }
    let Some(probes) = profile.probes(denied)? else {
        return Err(misuse(format!(
            "this profile cannot prove that the device drops packets from {}: the proof needs packets of the same IP version, and \
             not from a capture. Choose another profile",
            all_of(denied)
        )));
    };
    let mut table = probes.table_up_to(&testbed.endpoints(), directions, FRAMES as usize * 8);
    table.apart = Apart { streams: table.streams(), latencies: 0 };
    let (mut engine, _) = testbed.start_any_engine(&table, stop)?;
    let mut proof = attempt(&mut *engine, table.streams() as u64)?;
    for _ in 1..TRIES {
        if proof.holds() || proof.denied_passed > 0 {
            break;
        }
        proof = attempt(&mut *engine, table.streams() as u64)?;
    }
    proof.denied = denied.iter().map(IpAddr::to_string).collect();
    if proof.denied_passed > 0 {
        bail!(
            "the device passed {} of {} frames from {}, which it must drop: correct its rules, or remove the address from --dut-denies (in a bench file: denies)",
            proof.denied_passed,
            proof.denied_sent,
            all_of(denied)
        );
    }
    if proof.denied_sent == 0 || proof.permitted_sent == 0 {
        bail!(
            "it is not known whether the device filters: on this busy host the frames that prove it did not leave in time; try again"
        );
    }
    if !proof.holds() {
        bail!(
            "the device dropped {} of {} frames of the profile, which it must pass: correct its rules and routes",
            proof.permitted_sent - proof.permitted_passed,
            proof.permitted_sent
        );
    }
    Ok(Some(proof))
}

/// What becomes of one burst of `streams` streams, of which every second one is denied.
fn attempt(engine: &mut dyn Engine, streams: u64) -> Result<FilterProof> {
    let before = engine.streams()?;
    let frames = FRAMES * streams;
    engine.begin(Load::Burst { pps: PPS, frames })?;
    engine.wait(Duration::from_secs_f64(frames as f64 / PPS))?;
    let mut proof = FilterProof::default();
    for _ in 0..DRAINS {
        engine.wait(DRAIN)?;
        proof = counted(&before, &engine.streams()?)?;
        if proof.permitted_passed == proof.permitted_sent {
            break;
        }
    }
    Ok(proof)
}

/// What streams came to between two readings: of the first, the third and so on frames must pass, of the others none.
fn counted(before: &[Vec<StreamTotals>], after: &[Vec<StreamTotals>]) -> Result<FilterProof> {
    if after.is_empty() {
        bail!(
            "this engine does not count streams apart, so that no filter can be proven: choose another --engine"
        );
    }
    let mut proof = FilterProof::default();
    for (direction, streams) in after.iter().enumerate() {
        for (number, now) in streams.iter().enumerate() {
            let then = before.get(direction).and_then(|streams| streams.get(number));
            let since = |count: fn(&StreamTotals) -> u64| count(now).saturating_sub(then.map_or(0, count));
            let (sent, passed) = (since(|totals| totals.offered), since(|totals| totals.forwarded));
            let (sum, back) = if number % 2 == 0 {
                (&mut proof.permitted_sent, &mut proof.permitted_passed)
            } else {
                (&mut proof.denied_sent, &mut proof.denied_passed)
            };
            *sum += sent;
            *back += passed;
        }
    }
    Ok(proof)
}

/// What was proven, for people.
pub fn in_words(proof: &FilterProof) -> String {
    format!(
        "before the run, the device dropped all of {} frames from {}, as it must, and passed all of {} of the profile",
        proof.denied_sent,
        proof.denied.join(" and "),
        proof.permitted_sent
    )
}

fn all_of(addresses: &[IpAddr]) -> String {
    addresses.iter().map(IpAddr::to_string).collect::<Vec<_>>().join(" and ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn streams(told: &[(u64, u64)]) -> Vec<Vec<StreamTotals>> {
        let totals = |(offered, forwarded): &(u64, u64)| StreamTotals {
            offered: *offered,
            forwarded: *forwarded,
            ..StreamTotals::default()
        };
        vec![told.iter().map(totals).collect()]
    }

    fn found(before: &[(u64, u64)], after: &[(u64, u64)]) -> FilterProof {
        counted(&streams(before), &streams(after)).unwrap()
    }

    #[test]
    fn every_second_stream_is_denied_and_what_was_before_does_not_count() {
        let proof = found(&[(10, 9), (10, 1)], &[(42, 41), (42, 1)]);
        let counts = (proof.permitted_sent, proof.permitted_passed, proof.denied_sent, proof.denied_passed);
        assert_eq!(counts, (32, 32, 32, 0));
        assert!(proof.holds());
        assert!(!found(&[], &[(32, 32), (32, 1)]).holds(), "one frame passed that must not");
        assert!(!found(&[], &[(32, 31), (32, 0)]).holds(), "one frame was dropped that must pass");
        assert!(!found(&[], &[(0, 0), (0, 0)]).holds(), "nothing was sent");
        assert!(counted(&[], &[]).unwrap_err().to_string().contains("choose another --engine"));
    }
}
