//! What all ports send together: their streams and factors enter, one frame table and one load leave.
//!
//! An engine sends one table at one rate. So streams of different rates take turns in it, as often as their
//! rates say, and so do the two ports. What has no such form is refused.

use std::time::Duration;

use engine::Load;
use traffic::{Apart, Endpoint, FrameTable, raw};

use crate::groups::Group;
use crate::program::{Run, gcd, lcm};
use crate::rpc::Failure;
use crate::stream::{Mode, Stream};

/// The most rows of a table that holds every frame of its streams.
const MOST_ROWS: u64 = 1 << 18;
/// Rows of a table that holds a sample of them.
const SAMPLE_ROWS: u64 = 1 << 16;
/// The most turns after which streams repeat.
const MOST_TURNS: u64 = 1 << 17;
/// How far a stream's rate may be from what was asked for.
const TOLERANCE: f64 = 0.01;
/// The most streams: a signature has 8 bits for them.
const MOST_STREAMS: usize = 256;
/// The most streams whose latencies are kept.
const MOST_LATENCIES: usize = 128;

/// What one port sends.
#[derive(Clone, Debug)]
pub struct Part<'a> {
    /// The port.
    pub port: usize,
    /// What its streams' rates are multiplied by: of those that multipliers change, and of the others.
    pub factors: [f64; 2],
    /// Its line rate, in bits a second.
    pub line_rate_bps: f64,
    /// Where its frames come from and go to.
    pub endpoint: Endpoint,
    /// Changes with its streams.
    pub revision: u64,
    /// The streams.
    pub streams: Vec<&'a Stream>,
}

impl Part<'_> {
    fn factor(&self, stream: &Stream) -> f64 {
        self.factors[usize::from(stream.is_fixed())]
    }
}

/// Who takes turns, and how often: as long as this stays, so does the table.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    /// Ports, revisions of their streams, and where their frames go.
    ports: Vec<(usize, u64, Endpoint)>,
    weights: Vec<u64>,
}

/// How fast, and how often.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Schedule {
    /// What the engine is told.
    pub load: Load,
    /// Of bursts: how many, and how long it is from the start of one to that of the next.
    pub bursts: Option<(u64, Duration)>,
}

/// How the streams of `parts` leave.
///
/// # Errors
/// When they cannot leave together, or not at these rates.
pub fn schedule(parts: &[Part<'_>]) -> Result<(Shape, Schedule), Failure> {
    let lanes: Vec<(&Part<'_>, &Stream)> =
        parts.iter().flat_map(|part| part.streams.iter().map(move |stream| (part, *stream))).collect();
    if lanes.is_empty() || lanes.len() > MOST_STREAMS {
        return Err(refused(format!("{} streams: from 1 to {MOST_STREAMS} can be sent", lanes.len())));
    }
    let rates: Vec<f64> = lanes
        .iter()
        .map(|(part, stream)| stream.rates(part.line_rate_bps).pps * part.factor(stream))
        .collect();
    let latencies = lanes.iter().filter(|(_, stream)| stream.is_fixed()).count();
    if latencies > MOST_LATENCIES {
        return Err(refused(format!(
            "the latency of {latencies} streams: at most {MOST_LATENCIES} are counted"
        )));
    }
    let total: f64 = rates.iter().sum();
    let weights = weights(&rates)?;
    let directions = if parts.iter().any(|part| part.port == 1) { 2 } else { 1 };
    let pps = total / f64::from(directions);
    if !(1.0..=1e9).contains(&pps) {
        let least = if parts.len() == 1 { directions } else { 1 };
        return Err(refused(format!(
            "{total} packets/s in all cannot be sent: at least {least}, at most 1e9 for each port"
        )));
    }
    let ports = parts.iter().map(|part| (part.port, part.revision, part.endpoint)).collect();
    let shape = Shape { ports, weights };
    let modes: Vec<Mode> = lanes.iter().map(|(_, stream)| stream.mode).collect();
    if modes.iter().all(|mode| *mode == Mode::Continuous) {
        return Ok((shape, Schedule { load: Load::Rate(pps), bursts: None }));
    }
    let (frames, count, gap) = bursts(&modes, &rates, total)?;
    if frames % u64::from(directions as u8) != 0 {
        return Err(refused("bursts of an odd number of packets can leave by port 0 alone, not by port 1"));
    }
    let frames = frames / u64::from(directions as u8);
    let length = Duration::try_from_secs_f64(frames as f64 / pps)
        .map_err(|_| refused("these bursts take longer than any clock counts"))?;
    Ok((shape, Schedule { load: Load::Burst { pps, frames }, bursts: Some((count, length + gap)) }))
}

/// The frames of all bursts together, their number and the pause between, where they begin and end together.
fn bursts(modes: &[Mode], rates: &[f64], total: f64) -> Result<(u64, u64, Duration), Failure> {
    let mut common: Option<(u64, Duration)> = None;
    let mut all = 0;
    for (mode, rate) in modes.iter().zip(rates) {
        let Mode::Bursts { frames, count, gap } = *mode else {
            return Err(refused("bursts and continuous streams at once are not supported"));
        };
        if common.is_some_and(|common| common != (count, gap)) {
            return Err(refused("bursts of streams that differ in count or ibg are not supported"));
        }
        common = Some((count, gap));
        all += frames;
        let others = modes.iter().zip(rates).find(|(other, other_rate)| match other {
            Mode::Bursts { frames: theirs, .. } => {
                (frames as f64 / rate - *theirs as f64 / *other_rate).abs() * total > 0.5
            }
            Mode::Continuous => false,
        });
        if others.is_some() {
            return Err(refused("bursts that last for different times are not supported at once"));
        }
    }
    let (count, gap) = common.unwrap_or_default();
    Ok((all, count, gap))
}

/// The table of `parts`, which have this shape.
///
/// # Errors
/// When a frame is one that cannot be sent.
pub fn table(parts: &[Part<'_>], shape: &Shape) -> Result<FrameTable, Failure> {
    let mut lanes: Vec<Lane<'_>> = Vec::new();
    for part in parts {
        for stream in &part.streams {
            let packet = addressed(stream, &part.endpoint);
            let run = stream.program.run();
            lanes.push(Lane { index: 0, direction: part.port as u8, packet, run, stream });
        }
    }
    let numbered = numbered(parts);
    for (index, (lane, _)) in numbered.iter().enumerate() {
        lanes[*lane].index = index as u8;
    }
    let apart = Apart {
        streams: groups(parts).len(),
        latencies: lanes.iter().filter(|lane| lane.stream.is_fixed()).count(),
    };
    let turns: u64 = shape.weights.iter().sum();
    let cycles = lanes.iter().zip(&shape.weights).map(|(lane, weight)| match lane.stream.program.period() {
        u64::MAX => u64::MAX,
        period => period / gcd(period, *weight).max(1),
    });
    let period = turns.saturating_mul(cycles.fold(1, lcm));
    let rows = if period <= MOST_ROWS { period } else { SAMPLE_ROWS.max(turns) / turns * turns };
    let longest = lanes.iter().map(|lane| lane.stream.headers).max().unwrap_or(0);
    let fill = lanes.first().map_or(0, |lane| lane.stream.fill());
    let mut builder = raw::Builder::new(longest, fill).map_err(refused)?;
    let order = interleave(&shape.weights);
    for turn in order.iter().cycle().take(rows as usize) {
        let Some(lane) = lanes.get_mut(*turn) else { continue };
        let length = lane.run.next(&mut lane.packet);
        builder.push(&lane.packet, length, lane.index, lane.direction).map_err(refused)?;
    }
    Ok(FrameTable { apart, ..builder.finish(period) })
}

/// The streams of `parts`, each by its place among them and with its port's, in the order of the numbers that their
/// frames carry: first those whose latency is counted, then the others that are counted apart.
fn numbered(parts: &[Part<'_>]) -> Vec<(usize, (usize, Option<Group>))> {
    let streams = parts.iter().flat_map(|part| part.streams.iter().map(|stream| (part.port, stream.group)));
    let mut numbered: Vec<_> = streams.enumerate().collect();
    numbered.sort_by_key(|(_, (_, group))| match group {
        Some(Group { latency: true, .. }) => 0,
        Some(_) => 1,
        None => 2,
    });
    numbered
}

/// The groups of the streams that are counted apart, in the order of their numbers, and their ports.
pub fn groups(parts: &[Part<'_>]) -> Vec<(u32, usize)> {
    let numbered = numbered(parts).into_iter();
    numbered.filter_map(|(_, (port, group))| Some((group?.id, port))).collect()
}

struct Lane<'a> {
    index: u8,
    direction: u8,
    packet: Vec<u8>,
    run: Run<'a>,
    stream: &'a Stream,
}

/// The stream's packet with the addresses that it leaves with.
fn addressed(stream: &Stream, endpoint: &Endpoint) -> Vec<u8> {
    let mut packet = stream.packet.clone();
    let [keeps_source, keeps_destination] = stream.keeps;
    for (at, keeps, address) in
        [(0, keeps_destination, endpoint.destination), (6, keeps_source, endpoint.source)]
    {
        if let Some(place) = packet.get_mut(at..at + 6).filter(|_| !keeps) {
            place.copy_from_slice(&address.0);
        }
    }
    packet
}

/// How often each of `rates` takes its turn: small whole numbers.
fn weights(rates: &[f64]) -> Result<Vec<u64>, Failure> {
    let least = rates.iter().copied().fold(f64::INFINITY, f64::min);
    let exact = (1..=100_u32).find_map(|parts| {
        let scaled: Vec<f64> = rates.iter().map(|rate| rate / least * f64::from(parts)).collect();
        let whole = scaled.iter().all(|share| (share - share.round()).abs() < 1e-6 * share);
        let few = scaled.iter().sum::<f64>() <= MOST_TURNS as f64;
        (whole && few).then(|| scaled.iter().map(|share| share.round() as u64).collect::<Vec<u64>>())
    });
    let total: f64 = rates.iter().sum();
    let weights = exact.unwrap_or_else(|| nearest(rates, total));
    if !total.is_finite() || weights.is_empty() || error(&weights, rates, total) > TOLERANCE {
        return Err(refused(format!("the rates of streams are too far apart: at most 1 to {MOST_TURNS}")));
    }
    let common = weights.iter().fold(0, |common, weight| gcd(common, *weight)).max(1);
    Ok(weights.into_iter().map(|weight| weight / common).collect())
}

/// Small whole numbers that are near to the proportions of `rates`; none where there are none.
fn nearest(rates: &[f64], total: f64) -> Vec<u64> {
    let least = rates.iter().copied().fold(f64::INFINITY, f64::min);
    // All turns used, and few turns in which the least has a whole number of them.
    let scales = (1..=100_u32).map(|parts| f64::from(parts) / least).chain([MOST_TURNS as f64 / total]);
    let rounded = scales.map(|scale| {
        let weights = rates.iter().map(|rate| (rate * scale).round().max(1.0) as u64);
        weights.collect::<Vec<_>>()
    });
    let few = rounded
        .filter(|weights| weights.iter().fold(0, |sum: u64, it| sum.saturating_add(*it)) <= MOST_TURNS);
    few.min_by(|a, b| error(a, rates, total).total_cmp(&error(b, rates, total))).unwrap_or_default()
}

/// By how much of its rate the worst of `rates` is missed by turns of `weights`.
fn error(weights: &[u64], rates: &[f64], total: f64) -> f64 {
    let turns = weights.iter().sum::<u64>() as f64;
    let errors =
        weights.iter().zip(rates).map(|(weight, rate)| (*weight as f64 / turns * total / rate - 1.0).abs());
    errors.fold(0.0, f64::max)
}

/// Who is next in each of as many turns as the weights add up to: spread as evenly as they go.
fn interleave(weights: &[u64]) -> Vec<usize> {
    let total: i64 = weights.iter().sum::<u64>() as i64;
    let mut credit = vec![0_i64; weights.len()];
    (0..total)
        .map(|_| {
            let mut next = 0;
            for (index, weight) in weights.iter().enumerate() {
                credit[index] += *weight as i64;
                if credit[index] > credit[next] {
                    next = index;
                }
            }
            credit[next] -= total;
            next
        })
        .collect()
}

fn refused(reason: impl ToString) -> Failure {
    Failure::execute(reason.to_string())
}

#[cfg(test)]
mod tests {
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
        assert_eq!(schedule, Schedule { load: Load::Rate(1000.0), bursts: None });
        let table = table(&parts, &shape).unwrap();
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
        assert_eq!(shape.weights, [14, 8, 2, 7, 4, 1]);
        assert_eq!(schedule.load, Load::Rate(360.0));
        let table = table(&parts, &shape).unwrap();
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
        assert_eq!(shape.weights, [10, 10, 1, 5]);
        let table = table(&parts, &shape).unwrap();
        assert_eq!(table.apart, Apart { streams: 2, latencies: 1 });
        let rows = |stream| table.rows.iter().filter(move |row| row.stream == stream);
        assert!(rows(0).all(|row| row.direction == 1) && rows(1).all(|row| row.direction == 0));
        assert_eq!(rows(1).count(), 10 * rows(0).count());
    }

    #[test]
    fn bursts_that_end_together_are_one_load() {
        let stream = burst(100, 1000.0);
        let parts = [part(0, 1.0, vec![&stream])];
        let (_, planned) = schedule(&parts).unwrap();
        assert_eq!(planned.load, Load::Burst { pps: 1000.0, frames: 100 });
        assert_eq!(planned.bursts, Some((1, Duration::from_millis(102))));
        let both = [part(0, 1.0, vec![&stream]), part(1, 1.0, vec![&stream])];
        assert_eq!(schedule(&both).unwrap().1.load, Load::Burst { pps: 1000.0, frames: 100 });
        let other = burst(100, 500.0);
        assert!(schedule(&[part(0, 1.0, vec![&stream, &other])]).is_err());
        assert!(schedule(&[part(0, 1.0, vec![&stream, &with_rate(5.0)])]).is_err());
        assert!(schedule(&[part(1, 1.0, vec![&burst(101, 1000.0)])]).is_err());
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
}
