//! The tester against the truth: devices that forward, lose and stall exactly as they are told.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use crate::common::{eventually, has_namespaces, linerate, machine};
use engine::xdp::{Config, PortRef, XdpEngine};
use engine::{Counts, Engine, Load};
use lab::Lab;
use lab::placement::{Placement, Wishes, host};
use results::Record;
use results::record::{LimitedBy, Phase};
use traffic::{Directions, Endpoint, Endpoints, Profile, Tunables};

fn run(line: &str) -> Record {
    linerate(line).arg("--json").run().well().record()
}

#[test]
fn of_a_device_that_drops_every_tenth_frame_nine_tenths_return() {
    if !has_namespaces() {
        return;
    }
    for directions in ["", "--bidirectional"] {
        let Some(()) = eventually(|| {
            let line = "saturate --dut calibrated:drop-every=10 --rate 5kpps --duration 600ms --step 100ms";
            let record = run(&format!("{line} --warm-up-duration 200ms --drain 100ms {directions}"));
            for direction in &record.directions {
                let (offered, forwarded) = (direction.offered, direction.forwarded);
                if forwarded != offered - offered / 10 {
                    return Err(format!("{}: {forwarded} of {offered} frames returned", direction.name));
                }
                assert_eq!(direction.max_rate_pps, 0.0);
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
        }) else {
            return;
        };
    }
}

#[test]
fn of_each_burst_of_a_profile_a_shallow_queue_forwards_exactly_what_it_holds() {
    if !has_namespaces() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("bursts.toml");
    // 64 frames in 64 us, ten times a second: fewer than the device forwards, but not so many at once.
    let text = "[[stream]]\nrate = \"1mpps\"\nburst = 64\npause = \"99936us\"\nipv4 = { source = \"16.0.0.1\", \
                destination = \"48.0.0.1\" }\nudp = {}\n";
    std::fs::write(&path, text).unwrap();
    for engine in ["xdp", "af_xdp", "memif"] {
        eventually(|| {
            let line =
                format!("saturate --dut calibrated:rate=1kpps,burst=16 --engine {engine} --rate 640pps");
            let line = format!("{line} --duration 2s --step 500ms --drain 200ms --warm-up-duration 0s");
            let record = run(&format!("{line} --profile {}", path.display()));
            let noted = record.notes.iter().any(|note| note.contains("times as fast within bursts"));
            assert!(noted, "{:?}", record.notes);
            assert_eq!(results::consistency::contradictions(&record), Vec::<String>::new());
            let direction = &record.directions[0];
            let (offered, forwarded) = (direction.offered, direction.forwarded);
            // Other work on a core may part a burst, or join two.
            let expected = offered / 64 * 16 + (offered % 64).min(16);
            if offered < 1200 || forwarded != expected {
                return Err(format!("{engine}: {forwarded} of {offered} frames returned, not {expected}"));
            }
            Ok(())
        });
    }
}

#[test]
fn counts_of_a_profile_with_bursts_are_exact_in_both_directions() {
    if !has_namespaces() {
        return;
    }
    let profile = format!("{}/profiles/bursts.toml", crate::common::REPOSITORY);
    let line = "saturate --dut calibrated:drop-every=10 --rate 8kpps --duration 600ms --step 100ms --drain 100ms \
                --warm-up-duration 200ms --bidirectional";
    eventually(|| {
        let record = run(&format!("{line} --profile {profile}"));
        for direction in &record.directions {
            let (offered, forwarded) = (direction.offered, direction.forwarded);
            if forwarded != offered - offered / 10 {
                return Err(format!("{}: {forwarded} of {offered} frames returned", direction.name));
            }
            // 600 ms at the load, and the warm-up.
            assert!((4_700..20_000).contains(&offered) || direction.unsent > 0, "{direction:?}");
        }
        Ok(())
    });
}

#[test]
fn a_loss_at_the_threshold_is_not_lossy_and_twice_that_is() {
    if !has_namespaces() {
        return;
    }
    for (drop_every, limit) in [(1000, LimitedBy::LineRate), (250, LimitedBy::Dut)] {
        let Some(()) = eventually(|| {
            let line =
                format!("ramp --dut calibrated:drop-every={drop_every} --rate 20kpps --warm-up-duration 0s");
            let record = run(&format!("{line} --duration 1s --hold-duration 500ms --drain 200ms"));
            let direction = &record.directions[0];
            if direction.limited_by != limit {
                return Err(format!("drop-every={drop_every}: limited by {:?}", direction.limited_by));
            }
            Ok(())
        }) else {
            return;
        };
    }
}

#[test]
fn a_device_that_stalls_is_reported_with_the_second_and_the_count() {
    if !has_namespaces() {
        return;
    }
    eventually(|| {
        let line = "ramp --dut calibrated:stall-after=5000 --rate 10kpps --duration 1s --hold-duration 6s";
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
        // It may have waited before, for the machine to be what it was.
        let first = record.samples.iter().find(|sample| sample.phase != Phase::WarmUp).unwrap();
        let went_on = record.samples.last().map(|last| last.at_s + last.duration_s - first.at_s).unwrap();
        if went_on < 6.5 { Ok(()) } else { Err(format!("it went on for {went_on} s")) }
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
        let line = "ramp --dut calibrated:rate=20kpps,burst=64 --rate 40kpps --step 100ms";
        let record =
            run(&format!("{line} --warm-up-duration 200ms --duration 2s --hold-duration 1s --drain 200ms"));
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
        let (lossless, forwarded) = (direction.max_rate_pps, direction.max_forwarded_pps);
        if !(0.9 * RATE..=1.1 * RATE).contains(&lossless) || !(0.97 * RATE..=1.03 * RATE).contains(&forwarded)
        {
            return Err(format!("{lossless} pps without loss, {forwarded} pps forwarded, of {RATE}"));
        }
        Ok(())
    });
}

#[test]
fn of_a_device_that_loses_by_chance_the_ratio_is_found() {
    if !has_namespaces() {
        return;
    }
    for (loss, chance) in [("1%", 0.01), ("0.1%", 0.001), ("30%", 0.3)] {
        let Some(()) = eventually(|| {
            let line = format!("saturate --dut calibrated:loss={loss} --rate 20kpps --duration 1s");
            let record = run(&format!("{line} --warm-up-duration 0s --drain 200ms"));
            let direction = &record.directions[0];
            let offered = direction.offered as f64;
            let lost = (direction.offered - direction.forwarded) as f64;
            // Independent losses are binomially distributed; one in two million is further off.
            let deviation = (offered * chance * (1.0 - chance)).sqrt();
            if (lost - offered * chance).abs() > 5.0 * deviation {
                return Err(format!("{lost} of {offered} frames lost, at a chance of {loss}"));
            }
            Ok(())
        }) else {
            return;
        };
    }
}

/// The lowest mean latency that a sample of a run has, in microseconds: what else a machine does
/// only ever adds to it.
fn latency_us(dut: &str) -> Result<f64, String> {
    let line = "--rate 2kpps --duration 1s --step 50ms --warm-up-duration 200ms --drain 100ms";
    let record = run(&format!("saturate --dut {dut} {line}"));
    let held = record.samples.iter().filter(|sample| sample.phase == Phase::Hold);
    let enough = held.map(|sample| &sample.directions[0]).filter(|direction| direction.forwarded >= 20);
    let means = enough.filter_map(|direction| Some(direction.latency?.mean_ns / 1e3));
    means.min_by(f64::total_cmp).ok_or(format!("{dut}: no sample has 20 frames"))
}

#[test]
fn the_delay_that_a_device_adds_is_seen_in_the_latency() {
    if !has_namespaces() {
        return;
    }
    // Without a delay: one serves all, until something is wrong.
    let kept = Cell::new(None);
    for (delay, added) in [("50us", 50.0), ("200us", 200.0), ("1ms", 1000.0)] {
        let Some(()) = eventually(|| {
            let base = kept.take().map_or_else(|| latency_us("delayed"), Ok)?;
            let whole = latency_us(&format!("delayed:delay={delay}"))?;
            let seen = whole - base;
            eprintln!("added {added} µs: seen {seen:.2} µs, {whole:.2} less {base:.2}");
            let right = (seen - added).abs() <= f64::max(5.0, 0.02 * added);
            kept.set(right.then_some(base));
            right.then_some(()).ok_or(format!("{seen:.2} µs more than without a delay, not {added} µs"))
        }) else {
            return;
        };
    }
}

/// Runs `work` with an engine on a lab of `dut`, which both end with it.
fn with_engine<T>(dut: &str, directions: Directions, work: impl FnOnce(&Lab, &mut XdpEngine) -> T) -> T {
    let _alone = machine();
    let placement = Placement::choose(&host().unwrap(), &Wishes::default()).unwrap();
    let cores = placement.generate.clone();
    let config =
        lab::Config { dut: Arc::new(dut.parse::<dut::DutSpec>().unwrap()), placement, max_frame_size: 64 };
    let lab = Lab::start(&config).unwrap();
    let ports = lab.ports().each_ref();
    let ends = ports.map(|port| Endpoint { source: port.mac, destination: port.next_hop_mac });
    let profile = Profile::builtin("bench", &Tunables::default()).unwrap();
    let mut engine = XdpEngine::start(&Config {
        ports: ports.map(|port| PortRef { name: port.name.clone(), index: port.ifindex }),
        namespace: Some(lab.tester_namespace().fd()),
        cores: &cores,
        table: &profile.table(&Endpoints(ends), directions),
        stop: Arc::default(),
    })
    .unwrap();
    lab.pin().unwrap();
    work(&lab, &mut engine)
}

/// Sends a burst and waits for all that may come back of it.
fn burst(engine: &mut XdpEngine, pps: f64, frames: u64) -> Vec<Counts> {
    let burst = engine.begin(Load::Burst { pps, frames }).unwrap();
    engine.wait(Duration::from_secs_f64(frames as f64 / pps) + Duration::from_millis(20)).unwrap();
    engine.begin(Load::Idle).unwrap();
    engine.wait(Duration::from_millis(200)).unwrap();
    let counts = engine.counts(burst).unwrap();
    let accounted: u64 = counts.iter().map(|counts| counts.offered + counts.unsent).sum();
    assert_eq!(accounted, frames * counts.len() as u64, "{counts:?}");
    counts
}

#[test]
fn what_a_device_reorders_and_duplicates_is_counted_to_the_frame() {
    if !has_namespaces() {
        return;
    }
    for (directions, reorder, duplicate) in
        [(Directions::Forward, 100_u32, 200_u32), (Directions::Both, 20, 4), (Directions::Both, 2, 1)]
    {
        let (reordered, duplicated) = (100.0 / f64::from(reorder), 100.0 / f64::from(duplicate));
        let dut = format!("delayed:delay=100us,reorder={reordered}%,duplicate={duplicated}%");
        let Some(()) = eventually(|| {
            with_engine(&dut, directions, |lab, engine| {
                burst(engine, 5_000.0, 5_000);
                let totals = engine.totals().unwrap();
                for (totals, device) in totals.iter().zip(lab.dut_counters().unwrap().unwrap()) {
                    eprintln!("{dut}: {device:?}");
                    if (totals.offered, totals.forwarded) != (device.frames, device.forwarded) {
                        return Err(format!("{} of {device:?} came back", totals.forwarded));
                    }
                    assert_eq!(totals.reordered, device.reordered, "{device:?}");
                    assert_eq!(totals.duplicates, device.duplicated, "{device:?}");
                    assert_eq!(device.duplicated, device.frames / u64::from(duplicate));
                    // The last one may wait for another that never comes, and on a busy machine others too.
                    let most = (device.frames - 1) / u64::from(reorder);
                    if device.reordered != most {
                        return Err(format!("{} frames reordered, not {most}", device.reordered));
                    }
                }
                Ok(())
            })
        }) else {
            return;
        };
    }
}

#[test]
fn a_burst_passes_as_through_a_queue_of_known_depth() {
    if !has_namespaces() {
        return;
    }
    const OFFERED: f64 = 100e3;
    // A device that wakes up late for the first frame serves none meanwhile, and its queue holds as many more at the end:
    // 3 % of each burst are frames that it serves in 110 µs at least.
    for (capacity, depth) in [(50e3, 200.0), (80e3, 300.0), (20e3, 250.0)] {
        let longest = 1.0 + (depth - 1.0) * OFFERED / (OFFERED - capacity);
        let dut = format!("calibrated:rate={capacity},burst={depth}");
        let Some(()) = eventually(|| {
            with_engine(&dut, Directions::Forward, |_, engine| {
                for (frames, passes) in [((longest * 0.97) as u64, true), ((longest * 1.03) as u64, false)] {
                    let counts = burst(engine, OFFERED, frames)[0];
                    let lost = counts.offered - counts.forwarded;
                    eprintln!("{dut}: {lost} of {frames} frames lost, of {longest} none");
                    if counts.unsent > 0 || (lost == 0) != passes {
                        return Err(format!("{lost} of {frames} frames lost, of {longest} none: {counts:?}"));
                    }
                }
                Ok(())
            })
        }) else {
            return;
        };
    }
}
