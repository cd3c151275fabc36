use super::*;
use crate::stream::tests::{bench, read};
use serde_json::json;
use wire::MacAddress;

fn part(port: usize, factor: f64, streams: Vec<&Stream>) -> Part<'_> {
    let endpoint =
        Endpoint { source: MacAddress([2, 0, 0, 0, 0, 1]), destination: MacAddress([2, 0, 0, 0, 0, 2]) };
    Part { port, factors: [factor, 1.0], line_rate_bps: 10e9, endpoint, revision: 1, streams }
}

fn with_rate(pps: f64) -> Stream {
    let mut stream = bench();
    stream["mode"]["rate"]["value"] = json!(pps);
    read(&stream).unwrap()
}

fn burst(frames: u64, pps: f64) -> Stream {
    let mut stream = bench();
    stream["mode"] =
        json!({"type": "single_burst", "total_pkts": frames, "rate": {"type": "pps", "value": pps}});
    read(&stream).unwrap()
}

#[test]
fn one_stream_becomes_a_table_of_its_whole_period() {
    let stream = read(&bench()).unwrap();
    let parts = [part(0, 1000.0, vec![&stream])];
    let (shape, schedule) = schedule(&parts).unwrap();
    assert_eq!(schedule, Schedule::Steady(Load::Rate(1000.0)));
    let (table, _) = table(&parts, &shape).unwrap();
    assert_eq!((table.rows.len(), table.period, table.directions()), (251, 251, 1));
    // The ports' addresses, and source addresses 16.0.0.4 and on.
    assert_eq!(table.frame(0)[..12], [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1]);
    assert_eq!(table.frame(0)[26..30], [16, 0, 0, 4]);
    assert_eq!(table.frame(250)[26..30], [16, 0, 0, 254]);
    // The checksum of the IPv4 header is right.
    assert_eq!(wire::checksum::Sum::default().bytes(&table.frame(7)[14..34]).checksum(), 0);
}

#[test]
fn streams_and_ports_take_turns_by_their_rates() {
    let imix = [28.0, 16.0, 4.0].map(with_rate);
    let parts = [part(0, 10.0, imix.iter().collect()), part(1, 5.0, imix.iter().collect())];
    let (shape, schedule) = schedule(&parts).unwrap();
    assert_eq!(shape.turns, [[14, 8, 2, 7, 4, 1]]);
    assert_eq!(schedule, Schedule::Steady(Load::Rate(360.0)));
    let (table, _) = table(&parts, &shape).unwrap();
    let of = |direction| table.rows.iter().filter(|row| row.direction == direction).count();
    assert_eq!(of(0), 2 * of(1));
}

#[test]
fn streams_that_are_counted_apart_have_the_first_numbers() {
    let counted = |kind: &str, id: u32| {
        let mut stream = bench();
        stream["flow_stats"] = json!({"enabled": true, "stream_id": id, "rule_type": kind});
        read(&stream).unwrap()
    };
    let (plain, stats, latency) = (with_rate(1.0), counted("stats", 7), counted("latency", 8));
    let parts = [part(0, 10.0, vec![&plain, &stats]), part(1, 5.0, vec![&latency, &plain])];
    assert_eq!(groups(&parts), [(8, 1), (7, 0)]);
    let (shape, _) = schedule(&parts).unwrap();
    // The multiplier changes all but the one whose latency is counted.
    assert_eq!(shape.turns, [[10, 10, 1, 5]]);
    let (table, _) = table(&parts, &shape).unwrap();
    assert_eq!(table.apart, Apart { streams: 2, latencies: 1 });
    let rows = |stream| table.rows.iter().filter(move |row| row.stream == stream);
    assert!(rows(0).all(|row| row.direction == 1) && rows(1).all(|row| row.direction == 0));
    assert_eq!(rows(1).count(), 10 * rows(0).count());
}

fn changing(parts: &[Part<'_>]) -> (FrameTable, Vec<engine::Part>, Option<Duration>) {
    let (shape, schedule) = schedule(parts).unwrap();
    let Schedule::Changing(timeline) = schedule else { panic!("{schedule:?}") };
    let (table, ranges) = table(parts, &shape).unwrap();
    let sent = timeline.clone().map(|stretch| ranges.part(&stretch).unwrap()).take(100).collect();
    (table, sent, length(&timeline))
}

#[test]
fn streams_that_begin_and_end_have_rows_of_their_own() {
    let (stream, other) = (burst(100, 1000.0), burst(100, 500.0));
    let part_of = |first, rows, frames, pps| engine::Part { first, rows, frames, pps };
    let (table, sent, length) = changing(&[part(0, 1.0, vec![&stream])]);
    assert_eq!((sent, length), (vec![part_of(0, 251, 100, 1000.0)], Some(Duration::from_millis(100))));
    assert_eq!(table.rows.len(), 251);
    // The longer one goes on alone, then that without end.
    let steady = with_rate(250.0);
    let (table, sent, length) = changing(&[part(0, 1.0, vec![&stream, &other, &steady])]);
    let frames: Vec<(u64, f64)> = sent.iter().map(|part| (part.frames, part.pps)).collect();
    assert_eq!((frames, length), (vec![(175, 1750.0), (75, 750.0), (ENDLESS, 250.0)], None));
    let of = |part: &engine::Part, stream| {
        let rows = &table.rows[part.first as usize..(part.first + part.rows) as usize];
        rows.iter().filter(|row| row.stream == stream).count() as u64 * 7 / part.rows
    };
    assert_eq!([0, 1, 2].map(|stream| of(&sent[0], stream)), [4, 2, 1]);
    assert_eq!([0, 1, 2].map(|stream| of(&sent[2], stream)), [0, 0, 7]);
    // An odd number by port 1 alone.
    let (_, sent, _) = changing(&[part(1, 1.0, vec![&burst(101, 1000.0)])]);
    assert_eq!(sent[0].frames, 101);
}

#[test]
fn streams_that_change_too_often_are_refused() {
    let mut often = bench();
    often["mode"] = json!({"type": "multi_burst", "pkts_per_burst": 1, "count": 1_000_000, "ibg": 100.0,
        "rate": {"type": "pps", "value": 1e6}});
    let refusal = schedule(&[part(0, 1.0, vec![&read(&often).unwrap()])]).unwrap_err().reason;
    assert!(refusal.contains("begin and end more often"), "{refusal}");
}

#[test]
fn rates_that_cannot_be_kept_are_refused() {
    let (slow, fast) = (with_rate(1.0), with_rate(1e6));
    assert!(schedule(&[part(0, 1.0, vec![&slow, &fast])]).unwrap_err().reason.contains("too far apart"));
    assert!(schedule(&[part(0, 0.5, vec![&slow])]).is_err());
    assert!(schedule(&[part(0, 1e10, vec![&slow])]).is_err());
    assert!(schedule(&[part(0, f64::INFINITY, vec![&slow])]).is_err());
    assert!(schedule(&[]).is_err());
    assert_eq!(weights(&[1.0, 1.5]), Ok(vec![2, 3]));
    let far = weights(&[1_000.0, 10_000_123.0]).unwrap();
    assert!((far[1] as f64 / far[0] as f64 / 10_000.123 - 1.0).abs() < 1e-4, "{far:?}");
    let third = weights(&[1.0, std::f64::consts::PI]).unwrap();
    assert!((third[1] as f64 / third[0] as f64 - std::f64::consts::PI).abs() < 1e-3);
}
