//! The tester against the truth: devices that forward, lose and stall exactly as they are told.

#![allow(clippy::unwrap_used)] // a test may panic

mod common;

use common::{eventually, has_namespaces, linerate};
use results::Record;
use results::record::{LimitedBy, Phase};

fn run(line: &str) -> Record {
    linerate(line).arg("--json").run().well().record()
}

#[test]
fn of_a_device_that_drops_every_tenth_frame_nine_tenths_return() {
    if !has_namespaces() {
        return;
    }
    for directions in ["", "--bidirectional"] {
        eventually(|| {
            let line = "saturate --dut calibrated:drop-every=10 --rate 5kpps --duration 1s --step 100ms";
            let record = run(&format!("{line} --warm-up-duration 200ms --drain 200ms {directions}"));
            for direction in &record.directions {
                let (offered, forwarded) = (direction.offered, direction.forwarded);
                if forwarded != offered - offered / 10 {
                    return Err(format!("{}: {forwarded} of {offered} frames returned", direction.name));
                }
                assert_eq!(direction.max_lossless_pps, 0.0);
                assert!(direction.limited_by == LimitedBy::Dut || direction.unsent > 0, "{direction:?}");
            }
            // Exact for every sample too: wherever it begins, at most one frame more or less.
            for sample in record.samples.iter().flat_map(|sample| &sample.directions) {
                let lost = sample.offered - sample.forwarded;
                if lost.abs_diff(sample.offered / 10) > 1 {
                    return Err(format!("{lost} of {} frames lost in a sample", sample.offered));
                }
            }
            Ok(())
        });
    }
}

#[test]
fn a_loss_at_the_threshold_is_not_lossy_and_twice_that_is() {
    if !has_namespaces() {
        return;
    }
    for (drop_every, limit) in [(1000, LimitedBy::LineRate), (250, LimitedBy::Dut)] {
        eventually(|| {
            let line = format!(
                "ramp --dut calibrated:drop-every={drop_every} --target 20kpps --warm-up-duration 0s"
            );
            let record = run(&format!("{line} --ramp-duration 1s --hold-duration 500ms --drain 200ms"));
            let direction = &record.directions[0];
            if direction.limited_by != limit {
                return Err(format!("drop-every={drop_every}: limited by {:?}", direction.limited_by));
            }
            Ok(())
        });
    }
}

#[test]
fn a_device_that_stalls_is_reported_with_the_second_and_the_count() {
    if !has_namespaces() {
        return;
    }
    eventually(|| {
        let line =
            "ramp --dut calibrated:stall-after=5000 --target 10kpps --ramp-duration 1s --hold-duration 8s";
        let record = run(&format!("{line} --warm-up-duration 200ms --drain 200ms"));
        let direction = &record.directions[0];
        let stalled = direction.stalled.ok_or("it did not stall")?;
        if (stalled.after_frames, direction.forwarded) != (5000, 5000) {
            return Err(format!("stalled after {} frames, of {}", stalled.after_frames, direction.forwarded));
        }
        // When it stalled by the samples themselves: the last one in which a frame came back.
        let last = record.samples.iter().rfind(|sample| sample.directions[0].forwarded > 0).unwrap();
        assert!((last.at_s..=last.at_s + last.duration_s).contains(&stalled.at_s), "{stalled:?} {last:?}");
        assert_eq!(direction.limited_by, LimitedBy::Dut);
        assert!(record.elapsed_s < 9.0, "it went on for {} s", record.elapsed_s);
        Ok(())
    });
}

#[test]
fn a_device_of_known_capacity_is_found_to_have_it() {
    if !has_namespaces() {
        return;
    }
    const RATE: f64 = 20_000.0;
    const BURST: f64 = 64.0;
    eventually(|| {
        let line = "ramp --dut calibrated:rate=20kpps,burst=64 --target 40kpps --step 100ms";
        let record = run(&format!(
            "{line} --warm-up-duration 200ms --ramp-duration 2s --hold-duration 1s --drain 200ms"
        ));
        let direction = &record.directions[0];
        // Over any time it forwards at most its rate and one burst. The frames of a sample reach it
        // in the sample's time, and in the time that the last of them was on its way.
        for sample in record.samples.iter().filter(|sample| sample.phase != Phase::WarmUp) {
            let late = sample.directions[0].latency.map_or(0, |latency| latency.max_ns) as f64 / 1e9;
            let most = RATE * 1.01 * (sample.duration_s + late) + BURST;
            let forwarded = sample.directions[0].forwarded;
            assert!(forwarded as f64 <= most, "{forwarded} frames forwarded in {} s", sample.duration_s);
        }
        if direction.limited_by != LimitedBy::Dut {
            // On a busy machine it may be the tester, and then it says so.
            return Err(format!("limited by {:?}, {} frames unsent", direction.limited_by, direction.unsent));
        }
        let (lossless, forwarded) = (direction.max_lossless_pps, direction.max_forwarded_pps);
        if !(0.9 * RATE..=1.1 * RATE).contains(&lossless) || !(0.97 * RATE..=1.03 * RATE).contains(&forwarded)
        {
            return Err(format!("{lossless} pps without loss, {forwarded} pps forwarded, of {RATE}"));
        }
        Ok(())
    });
}
