//! What pages are made of beside ramps and searches: records with counters and limits of the tester, a
//! certificate, and many runs of all kinds.

pub mod vectors;

use results::Record;
use results::bench::{Axis, Bench, Compare, Dut, LABELS, Profile};
use results::certificate::{Certificate, Check, SCHEMA, Unit, Verdict};
use results::fixtures::Scenario;
use results::record::{CrossCheck, Finding, Point, SelfTest, Status};

use crate::strategies::rfc2544;

/// A latency test after a search, whose counters were compared with the kernel's, and whose tester knows its limits.
pub fn followed(agrees: bool) -> Record {
    let dut = if agrees { "xdp-router" } else { "linux-router" };
    let mut record = Scenario { dut, bidirectional: !agrees, ..Scenario::default() }.search();
    record.test = format!("counted {}", record.test);
    let point = |place: &str, frames, dropped, ours| Point { place: place.to_owned(), frames, dropped, ours };
    let way = |name: &str, from: usize, to: usize, short: u64| CrossCheck {
        direction: name.to_owned(),
        points: vec![
            point(&format!("sent by lr-port{from}"), 9_950_010, 50_000, Some(10_000_000)),
            point(&format!("received by lr-dut{from}"), 9_950_010, 0, None),
            point(&format!("sent by lr-dut{to}"), 8_990_002, 0, None),
            point(&format!("received by lr-port{to}"), 8_990_002, 1_200, Some(8_990_000 - short)),
        ],
        agrees: short == 0,
    };
    record.cross_check = vec![way("0->1", 0, 1, 0)];
    if !agrees {
        record.cross_check.push(way("1->0", 1, 0, 70_000));
    }
    record.tester.self_test = Some(SelfTest {
        measured: "2026-11-20T10:00:00Z".to_owned(),
        ceiling_pps: 4_200_000.0,
        base_latency_min_ns: 4_100,
        base_latency_mean_ns: 5_230.0,
        base_latency_p50_ns: Some(5_100),
    });
    let latency = Scenario { dut, bidirectional: !agrees, ..Scenario::default() }.latency_test();
    record.strategy.name = "latency".to_owned();
    record.finding = Finding::Latency(latency.finding.latency().cloned(), record.finding.search().cloned());
    record
}

/// A check of each verdict, one beyond the picture, one that had to be exact, one without a figure.
pub fn certificate() -> Certificate {
    let check = |name: &str, dut: &str, unit, truth: f64, measured: Option<f64>, bound: f64, verdict| Check {
        name: name.to_owned(),
        dut: dut.to_owned(),
        unit,
        truth,
        measured,
        interval: None,
        error: measured.map(|measured| measured - truth),
        bound,
        verdict,
        reason: match verdict {
            Verdict::Passed => None,
            Verdict::Failed => Some("the error is beyond its bound".to_owned()),
            Verdict::Undecided => Some("the hypervisor took 4.0 % of core 1".to_owned()),
        },
        attempts: if verdict == Verdict::Passed { 1 } else { 3 },
    };
    let (passed, failed, undecided) = (Verdict::Passed, Verdict::Failed, Verdict::Undecided);
    let searched =
        check("capacity", "calibrated:rate=300000", Unit::Pps, 3e5, Some(299_100.0), 1_500.0, passed);
    Certificate {
        schema: SCHEMA.to_owned(),
        started: "2026-11-21T08:51:23Z".to_owned(),
        elapsed_s: 41.2,
        status: Status::Complete,
        command: ["linerate", "verify", "--quick"].map(str::to_owned).into(),
        environment: Scenario::default().record().environment,
        seed: 7,
        quick: true,
        unwatched: None,
        checks: vec![
            check("frames lost", "calibrated:drop-every=10", Unit::Frames, 1e3, Some(1e3), 0.0, passed),
            check("loss ratio", "calibrated:loss=1%", Unit::Share, 0.01, Some(0.0124), 0.0004, failed),
            check("delay", "delayed:delay=50us", Unit::Ns, 5e4, Some(52_100.0), 5e3, passed),
            check("burst", "calibrated:burst=2000", Unit::Frames, 2e3, Some(1_890.0), 80.0, undecided),
            check("reordered", "delayed:delay=100us,reorder=1%", Unit::Share, 0.01, None, 1e-3, undecided),
            Check { interval: Some((299_100.0, Some(300_400.0))), ..searched },
        ],
    }
}

/// A bench of four configurations, two profiles and three tests, six repeats of each, and its records;
/// with one repeat made twice, one that did not come to its end, and a run of no bench.
pub fn rules() -> (Bench, Vec<Record>) {
    let duts = [("none", None, 1.1e6), ("1 rule", Some(1.0), 1.08e6), ("10 rules", Some(10.0), 1.09e6)];
    let duts = duts.into_iter().chain([("1,000 rules", Some(1e3), 2.6e5)]);
    let duts: Vec<(&str, Option<f64>, f64)> = duts.collect();
    let profiles = [("64 B", "64 B", 64.0, &["one", "both"][..]), ("imix", "imix", 362.2, &["one"])];
    let mut records = Vec::new();
    for (profile, traffic, frame_size, directions) in profiles {
        for direction in directions {
            for (dut, (name, _, capacity)) in duts.iter().enumerate() {
                for repeat in 1..=6 {
                    // Some per cent of what looks like noise.
                    let noise = ((dut * 7 + repeat * 13) % 11) as f64 / 11.0 - 0.5;
                    let mut record = Scenario {
                        traffic,
                        frame_size,
                        bidirectional: *direction == "both",
                        capacity_pps: capacity * (1.0 + 0.03 * noise),
                        ramp_samples: 20,
                        ..Scenario::default()
                    }
                    .record();
                    record.id = format!("{}-{name}-{repeat}", record.id);
                    let values = ["rules", &format!("{name}/{profile}/{direction}"), &repeat.to_string()];
                    record.labels = LABELS.into_iter().zip(values).map(owned).collect();
                    records.push(record);
                }
            }
        }
    }
    let (mut again, mut stopped) = (records[0].clone(), records[1].clone());
    "again".clone_into(&mut again.id);
    stopped.status = Status::Interrupted;
    records.extend([again, stopped, Scenario::default().record()]);
    let directions = |directions: &[&str]| directions.iter().map(|one| (*one).to_owned()).collect();
    let bench = Bench {
        schema: results::bench::SCHEMA.to_owned(),
        name: "rules".to_owned(),
        title: "Number of rules".to_owned(),
        article_figure: None,
        command: ["linerate", "bench", "rules.toml"].map(str::to_owned).into(),
        source: "name = \"rules\"\n".to_owned(),
        repeats: 6,
        order: "shuffled by seed 1".to_owned(),
        compare: Compare::Devices,
        baseline: Some("none".to_owned()),
        axis: Some(Axis { name: "rules".to_owned(), linear: false }),
        duts: duts.into_iter().map(|(name, at, _)| Dut { name: name.to_owned(), at }).collect(),
        profiles: profiles
            .map(|(name, _, _, ways)| Profile {
                name: name.to_owned(),
                at: None,
                directions: directions(ways),
            })
            .into(),
    };
    (bench, records)
}

fn owned((key, value): (&str, &str)) -> (String, String) {
    (key.to_owned(), value.to_owned())
}

/// `count` runs of all kinds against ten devices, with repeats.
pub fn many(count: usize) -> impl Iterator<Item = Record> {
    const SIZES: [(&str, f64); 4] = [("64 B", 64.0), ("256 B", 256.0), ("imix", 362.2), ("1514 B", 1514.0)];
    let sizes_of_rfc2544 = rfc2544();
    let record = move |at: usize| {
        let (traffic, frame_size) = SIZES[at / 10 % SIZES.len()];
        let scenario = Scenario {
            dut: ["linux-router", "xdp-router", "linux-bridge", "calibrated", "sink"][at % 5],
            traffic,
            frame_size,
            bidirectional: at % 20 >= 10,
            capacity_pps: 4e5 + (at * 7_919 % 1_000) as f64 * 1e3,
            ..Scenario::default()
        };
        let (kind, mut record) = match at / 40 % 6 {
            0..=2 => ("", scenario.record()),
            3 => ("search ", scenario.search()),
            4 => ("latency ", scenario.latency_test()),
            _ if at.is_multiple_of(2) => ("soak ", scenario.eventful_soak()),
            _ => ("", sizes_of_rfc2544[at / 2 % sizes_of_rfc2544.len()].clone()),
        };
        record.test = format!("{kind}{}", record.test);
        if at % 10 >= 5 {
            record.dut.parameters.insert("cores".to_owned(), "2".to_owned());
        }
        record
    };
    (0..count).map(record)
}
