//! Soaks and latency tests in the lab: a stall is found to the frame, and delays are those of real
//! frames.

use crate::common::{eventually, has_namespaces, linerate};
use results::record::Status;

/// What stands around each measurement, as short as it may be.
const BRIEF: &str = "--warm-up-duration 200ms --drain 100ms --json";

#[test]
fn a_soak_finds_a_stall_and_says_after_how_many_frames() {
    if !has_namespaces() {
        return;
    }
    // A machine whose cores are taken half of the time offers half of the frames, the others too late.
    let line = format!("soak --dut calibrated:stall-after=1500 --rate 1kpps --duration 5s {BRIEF}");
    eventually(|| {
        let record = linerate(&line).run().well().record();
        assert_eq!((record.status, record.strategy.name.as_str()), (Status::Complete, "soak"));
        let soak = record.finding.soak().unwrap();
        let found = &soak.directions[0];
        let [stall] = found.stalls[..] else { return Err(format!("stalls: {:?}", found.stalls)) };
        assert_eq!((stall.after_frames, stall.until_s), (record.directions[0].forwarded, None));
        // The device's own counters agree: it took frames in to the end, and sent on none.
        let (before, during) = (stall.counters.before, stall.counters.during);
        assert_eq!(before.device.unwrap().forwarded + during.device.unwrap().forwarded, 1_500);
        assert_eq!(before.forwarded + during.forwarded, stall.after_frames);
        // A queue on the way overflows on a busy machine. It is read while frames are on their way: those of a
        // tenth of a second may be missing.
        if stall.after_frames != 1_500 || during.device.unwrap().received + 100 < during.offered {
            return Err(format!("{stall:?}"));
        }
        // Losses are told of undisturbed intervals alone, and a machine may be disturbed for minutes.
        let kinds = found.losses.iter().filter(|loss| (loss.from_s..loss.until_s).contains(&stall.from_s));
        let disturbed = stall.disturbed || soak.hiccups.iter().any(|hiccup| hiccup.until_s > stall.from_s);
        if kinds.count() == 1 || disturbed { Ok(()) } else { Err(format!("losses: {:?}", found.losses)) }
    });
}

#[test]
fn a_soak_ends_with_its_device_if_told_to() {
    if !has_namespaces() {
        return;
    }
    let line =
        format!("soak --dut calibrated:stall-after=1000 --rate 1kpps --duration 50s {BRIEF} --stop-on-stall");
    eventually(|| {
        let record = linerate(&line).run().well().record();
        let soak = record.finding.soak().unwrap();
        assert!((5.0..40.0).contains(&soak.duration_s), "{} s", soak.duration_s);
        let stall = soak.directions[0].stalls.last().unwrap();
        assert!(stall.after_frames <= 1_000, "{stall:?}");
        if stall.after_frames == 1_000 { Ok(()) } else { Err(format!("{stall:?}")) }
    });
}

#[test]
fn latency_has_a_distribution_at_every_load() {
    if !has_namespaces() {
        return;
    }
    let line = format!("latency --dut xdp-xconnect --of 20kpps --loads 50%,1kpps --duration 1500ms {BRIEF}");
    eventually(|| {
        let record = linerate(&line).arg("--bidirectional").run().well().record();
        let found = record.finding.latency().unwrap();
        assert_eq!((found.reference_pps, found.searched), (Some(20_000.0), false));
        let loads: Vec<(&str, f64)> =
            found.loads.iter().map(|load| (load.name.as_str(), load.load_pps)).collect();
        assert_eq!(loads, [("1.00 kpps", 1_000.0), ("50%", 10_000.0)]);
        assert!(!found.unseen.is_empty());
        for (load, direction) in
            found.loads.iter().flat_map(|load| load.directions.iter().map(move |d| (load, d)))
        {
            let counted: u64 = direction.histogram_ns.iter().map(|(_, count)| count).sum();
            assert_eq!(counted, direction.forwarded, "{}", direction.name);
            if direction.forwarded < 1_000 {
                return Err(format!("{}: {} frames returned", load.name, direction.forwarded));
            }
            let [p50, p90, p99, ..] = direction.percentiles.values().map(Option::unwrap_or_default);
            let (min, max) = (direction.min_ns as f64, direction.max_ns as f64);
            assert!(0.0 < min && min <= p50 && p50 <= p90 && p90 <= p99 && p99 <= max, "{direction:?}");
            assert!((min..=max).contains(&direction.mean_ns), "{direction:?}");
            assert_eq!(direction.pdv.p50_ns, Some(p50 - min));
            // Microseconds pass between two ports; a millisecond is a busy machine's.
            if !(1e3..1e6).contains(&p50) {
                return Err(format!("{}: half of the frames took {p50} ns", load.name));
            }
        }
        Ok(())
    });
}
