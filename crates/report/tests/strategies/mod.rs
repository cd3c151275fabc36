//! Hand-made records of the tests of RFC 2544 and of soaks: devices of known capacity enter, the
//! records that such runs would leave come out.

use results::fixtures::Scenario;
use results::record::{
    BackToBack, Counted, Deviation, DeviceCounted, EventCounters, Hiccup, LatencyAtThroughput, LatencyDrift,
    LatencyStream, LimitedBy, LossEvent, LossPattern, LossPeriod, LossPoint, Phase, Record, Recovery,
    RecoveryRepeat, Rfc2544, Soak, SoakDirection, SoakStall, Throughput,
};
use wire::size;

/// RFC 2544's sizes for Ethernet.
const SIZES: [(&str, f64); 7] = [
    ("64b", 64.0),
    ("128b", 128.0),
    ("256b", 256.0),
    ("512b", 512.0),
    ("1024b", 1024.0),
    ("1280b", 1280.0),
    ("1518b", 1518.0),
];
const LINE_BPS: f64 = 2.5e9;

/// The quick tests at all sizes against two devices.
pub fn rfc2544() -> Vec<Record> {
    let devices = [("linux-router", 1.085e6), ("xdp-router", 2.39e6)];
    devices.iter().flat_map(|(dut, capacity)| SIZES.map(|size| at_size(dut, *capacity, size))).collect()
}

fn at_size(dut: &'static str, capacity_pps: f64, (traffic, frame_size): (&'static str, f64)) -> Record {
    let mut record = Scenario { dut, traffic, frame_size, capacity_pps, ..Scenario::default() }.record();
    let theoretical_pps = size::l1_bps_to_pps(LINE_BPS, frame_size);
    let pps = theoretical_pps.min(capacity_pps);
    let limited = theoretical_pps > capacity_pps;
    let point = |step: u32| {
        let load_percent = f64::from(100 - step * 10);
        let offered_pps = theoretical_pps * load_percent / 100.0;
        LossPoint {
            load_percent,
            intended_pps: offered_pps,
            offered_pps,
            loss_ratio: (1.0 - capacity_pps / offered_pps).max(0.0),
            tester_limited: false,
            disturbed: None,
        }
    };
    record.strategy.name = "rfc2544".to_owned();
    record.rfc2544 = Some(Rfc2544 {
        quick: true,
        deviations: vec![Deviation {
            name: "latency-of-every-frame".to_owned(),
            text: "the latency is that of every frame, not of one after 60 s (§26.2)".to_owned(),
        }],
        theoretical_pps,
        throughput: Some(Throughput {
            pps,
            upper_pps: limited.then_some(pps * 1.004),
            limited_by: if limited { LimitedBy::Dut } else { LimitedBy::LineRate },
            irregular: None,
        }),
        latency: Some(LatencyAtThroughput {
            load_pps: pps,
            stream_s: 5.0,
            mean_ns: vec![9_000.0 + frame_size * 8.0],
            streams: vec![LatencyStream { directions: vec![None], lost: 0, disturbed: None }; 3],
        }),
        loss: (0..9).map(point).collect(),
        back_to_back: limited.then(|| BackToBack {
            bursts: vec![1_510, 1_532, 1_498],
            longest_tried: 2_000,
            average: 1_513.0,
            min: 1_498,
            max: 1_532,
            standard_deviation: 17.3,
            implied_buffer_s: 1_513.0 / theoretical_pps,
            corrected_buffer_s: 1_513.0 / theoretical_pps * (1.0 - pps / theoretical_pps),
            ..BackToBack::default()
        }),
        recovery: limited.then(|| Recovery {
            overload_pps: pps * 1.1,
            overload_s: 10.0,
            reduced_pps: pps * 0.55,
            watched_s: 2.0,
            tester_limited: false,
            repeats: vec![
                RecoveryRepeat {
                    recovery_s: Some(0.000_92),
                    resolution_s: 0.000_05,
                    overload_loss_ratio: 0.09,
                    lost_after: 400,
                    disturbed: None,
                };
                3
            ],
            average_s: Some(0.000_92),
        }),
        reset: None,
        not_run: [("reset".to_owned(), "this device cannot be reset".to_owned())].into(),
    });
    record
}

/// A soak of a device that stops for three seconds, drops a frame every seven seconds and slows
/// down, on a machine that was held up once.
pub fn soak() -> Record {
    let base = Scenario { dut: "linux-bridge", ramp_samples: 120, target: 0.01, ..Scenario::default() };
    let mut record = base.record();
    record.samples.retain(|sample| sample.phase != Phase::WarmUp);
    let load_pps = 10_000.0;
    let mut losses = Vec::new();
    for (at, sample) in record.samples.iter_mut().enumerate() {
        (sample.phase, sample.at_s) = (Phase::Hold, 1.0 + at as f64);
        let lost = match at {
            40..43 => 10_000,
            80 => 350,
            _ if at % 7 == 3 => 1,
            _ => 0,
        };
        sample.disturbed = (at == 80).then(|| "the hypervisor took 12.0 % of core 1".to_owned());
        let direction = &mut sample.directions[0];
        (direction.offered, direction.forwarded) = (10_000, 10_000 - lost);
        (direction.offered_pps, direction.forwarded_pps) = (load_pps, load_pps - lost as f64);
        direction.loss_ratio = lost as f64 / load_pps;
        if let Some(latency) = &mut direction.latency {
            latency.p50_ns = 9_000 + at as u64 * 12;
            latency.p99_ns = latency.p50_ns * 3;
        }
        if lost == 10_000 {
            direction.latency = None;
        }
        if at % 7 == 3 {
            losses.push((sample.at_s, lost));
        }
    }
    let counters = |from_s: f64, seconds: u64, lost: u64| {
        let counted = |offered: u64, lost: u64| Counted {
            offered,
            forwarded: offered - lost,
            unsent: 0,
            device: Some(DeviceCounted { received: offered, forwarded: offered - lost }),
        };
        EventCounters { before: counted((from_s * 1e4) as u64, 0), during: counted(seconds * 10_000, lost) }
    };
    let loss = |(from_s, lost): (f64, u64)| LossEvent {
        from_s,
        until_s: from_s + 1.0,
        on_period: true,
        counters: counters(from_s, 1, lost),
    };
    record.strategy.name = "soak".to_owned();
    record.test = "64b soak unidirectional".to_owned();
    record.soak = Some(Soak {
        load_pps,
        duration_s: 127.0,
        interval_s: 1.0,
        directions: vec![SoakDirection {
            name: "0->1".to_owned(),
            offered: 1_270_000,
            lost: 30_367,
            lost_disturbed: 350,
            intervals: 127,
            lossy_intervals: 20,
            pattern: LossPattern::Periodic,
            stalls: vec![SoakStall {
                from_s: 41.0,
                until_s: Some(44.0),
                after_frames: 399_994,
                disturbed: false,
                counters: counters(41.0, 3, 30_000),
            }],
            stall_count: 1,
            loss_count: losses.len(),
            losses: losses.into_iter().map(loss).collect(),
            period: Some(LossPeriod {
                period_s: 7.0,
                phase_s: 4.0,
                frames: 70_000.0,
                on_period: 17,
                losses: 17,
                occupied: 0.95,
                chance: 1e-9,
            }),
            drift: Some(LatencyDrift {
                slope: 12.0,
                slope_lower: 11.5,
                slope_upper: 12.5,
                from_ns: 9_000.0,
                to_ns: 10_500.0,
                significant: true,
            }),
        }],
        hiccups: vec![Hiccup {
            from_s: 81.0,
            until_s: 82.0,
            unsent: 120,
            lost: 350,
            cause: Some("the hypervisor took 12.0 % of core 1".to_owned()),
        }],
        hiccup_count: 1,
    });
    record
}
