//! Hand-made records of the tests of RFC 2544: devices of known capacity enter, the records that
//! such runs would leave come out.

use results::fixtures::Scenario;
use results::record::{
    BackToBack, Deviation, Finding, LatencyAtThroughput, LatencyStream, LimitedBy, LossPoint, Record,
    Recovery, RecoveryRepeat, Rfc2544, Throughput,
};
use wire::size;

/// RFC 2544's sizes for Ethernet.
const SIZES: [(&str, f64); 7] = [
    ("64 B", 64.0),
    ("128 B", 128.0),
    ("256 B", 256.0),
    ("512 B", 512.0),
    ("1024 B", 1024.0),
    ("1280 B", 1280.0),
    ("1518 B", 1518.0),
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
    let found = Rfc2544 {
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
    };
    record.finding = Finding::Rfc2544(Some(Box::new(found)), None);
    record
}
