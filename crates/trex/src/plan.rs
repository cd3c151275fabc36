//! What all ports send together: their streams and factors enter, one frame table and one load leave.
//!
//! An engine sends one table at one rate. So streams of different rates take turns in it, as often as their
//! rates say, and so do the two ports. Where streams begin and end, the table has rows for each set of streams that
//! send at the same time. What has no such form is refused.

use std::collections::VecDeque;
use std::time::Duration;

use engine::Load;
use traffic::timeline::{self, Lane as Timed, Mode, Stretch, Timeline};
use traffic::{Apart, Endpoint, FrameTable, raw};

use crate::groups::Group;
use crate::program::{Run, gcd, lcm};
use crate::rpc::Failure;
use crate::stream::Stream;

/// The most rows of a table that holds every frame of its streams.
pub const MOST_ROWS: u64 = 1 << 18;
/// Rows of a table that holds a sample of them.
const SAMPLE_ROWS: u64 = 1 << 16;
/// The most turns after which streams repeat.
const MOST_TURNS: u64 = 1 << 17;
/// How far a stream's rate may be from what was asked for.
const TOLERANCE: f64 = 0.01;
/// The least rows that take turns: each worker of an engine has rows of its own.
const LEAST_ROWS: u64 = 64;
/// In how many different ways streams take turns.
const MOST_PATTERNS: usize = 256;
/// So often streams may begin and end in so much time, since each is announced to the engine.
const CHANGES: (usize, Duration) = (64, Duration::from_millis(128));
/// Stretches of a timeline that are looked at when it is planned.
const LOOK_AHEAD: usize = 10_000;
/// More frames than ever leave.
const ENDLESS: u64 = 1 << 60;
/// The most streams: a signature has 8 bits for them.
pub const MOST_STREAMS: usize = 256;
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
    /// How often each stream takes its turn; several, where streams begin and end.
    turns: Vec<Vec<u64>>,
}

/// When frames leave.
#[derive(Clone, Debug, PartialEq)]
pub enum Schedule {
    /// At this load, without end.
    Steady(Load),
    /// Now these streams and now those.
    Changing(Timeline),
}

/// How the streams of `parts` leave.
///
/// # Errors
/// When they cannot leave together, or not at these rates.
pub fn schedule(parts: &[Part<'_>]) -> Result<(Shape, Schedule), Failure> {
    let lanes = lanes(parts);
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
    let ports = parts.iter().map(|part| (part.port, part.revision, part.endpoint)).collect();
    let endless = |stream: &Stream| stream.mode == Mode::Continuous;
    if lanes.iter().all(|(_, stream)| endless(stream) && stream.wait.is_zero() && stream.self_start) {
        let load = load(parts, &rates)?;
        return Ok((Shape { ports, turns: vec![weights(&rates)?] }, Schedule::Steady(load)));
    }
    if let Some(rate) = rates.iter().find(|rate| !(1e-3..=1e9).contains(*rate)) {
        return Err(refused(format!(
            "{rate} packets/s of a stream cannot be sent: at least 0.001, at most 1e9"
        )));
    }
    let endless: Vec<usize> = (0..lanes.len()).filter(|lane| endless(lanes[*lane].1)).collect();
    let mut at_last = vec![0; lanes.len()];
    if !endless.is_empty() {
        let weights = weights(&endless.iter().map(|lane| rates[*lane]).collect::<Vec<_>>())?;
        endless.iter().zip(weights).for_each(|(lane, weight)| at_last[*lane] = weight);
    }
    let timeline = Timeline::new(timed(&lanes, &rates), at_last);
    let turns = all_turns(&timeline)?;
    Ok((Shape { ports, turns }, Schedule::Changing(timeline)))
}

/// The load of streams that never end.
fn load(parts: &[Part<'_>], rates: &[f64]) -> Result<Load, Failure> {
    let total: f64 = rates.iter().sum();
    let directions = if parts.iter().any(|part| part.port == 1) { 2 } else { 1 };
    let pps = total / f64::from(directions);
    if (1.0..=1e9).contains(&pps) {
        return Ok(Load::Rate(pps));
    }
    let least = if parts.len() == 1 { directions } else { 1 };
    Err(refused(format!(
        "{total} packets/s in all cannot be sent: at least {least}, at most 1e9 for each port"
    )))
}

/// The streams of all parts, each with its own.
pub fn lanes<'p, 'a>(parts: &'p [Part<'a>]) -> Vec<(&'p Part<'a>, &'a Stream)> {
    parts.iter().flat_map(|part| part.streams.iter().map(move |stream| (part, *stream))).collect()
}

/// The streams as a timeline knows them.
pub fn timed(lanes: &[(&Part<'_>, &Stream)], rates: &[f64]) -> Vec<Timed> {
    let lanes = lanes.iter().zip(rates).map(|((part, stream), pps)| Timed {
        port: part.port,
        pps: *pps,
        mode: stream.mode,
        wait: u64::try_from(stream.wait.as_nanos()).unwrap_or(u64::MAX),
        next: stream.next.and_then(|(id, _)| {
            lanes.iter().position(|(other, stream)| other.port == part.port && stream.id == id)
        }),
        turns: stream.next.and_then(|(_, turns)| turns),
        starts: stream.self_start,
    });
    lanes.collect()
}

/// The turns that streams take in the stretches of `timeline`, each once.
fn all_turns(timeline: &Timeline) -> Result<Vec<Vec<u64>>, Failure> {
    let mut all: Vec<Vec<u64>> = Vec::new();
    let mut rows = 0;
    let mut starts = VecDeque::new();
    for stretch in timeline.clone().take(LOOK_AHEAD) {
        starts.push_back(stretch.start);
        if starts.len() > CHANGES.0 {
            let first = starts.pop_front().unwrap_or(0);
            if stretch.start - first < CHANGES.1.as_nanos() as u64 {
                return Err(refused(format!(
                    "streams begin and end more often than {} times in {} ms: use longer bursts and pauses",
                    CHANGES.0,
                    CHANGES.1.as_millis()
                )));
            }
        }
        let turns = stretch.turns();
        if all.contains(&turns) {
            continue;
        }
        rows += turns.iter().sum::<u64>().max(LEAST_ROWS);
        all.push(turns);
        if all.len() > MOST_PATTERNS || rows > MOST_ROWS {
            return Err(refused(format!(
                "streams begin and end in more than {MOST_PATTERNS} different ways, or take more than {MOST_ROWS} \
                 packets until they repeat: use rates and lengths that have more in common"
            )));
        }
    }
    Ok(all)
}

/// How long all takes, where that is known to end.
pub fn length(timeline: &Timeline) -> Option<Duration> {
    let last = timeline.clone().take(LOOK_AHEAD + 1).enumerate().last();
    let (index, last) = last.filter(|(_, last)| last.end != timeline::NEVER)?;
    (index < LOOK_AHEAD).then_some(Duration::from_nanos(last.end))
}

/// The rows that the table has for each of its turns: the first, and how many.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ranges(Vec<(Vec<u64>, u64, u64)>);

impl Ranges {
    /// The part of the table that a stretch sends, if it has one.
    pub fn part(&self, stretch: &Stretch) -> Option<engine::Part> {
        let turns = stretch.turns();
        let (_, first, rows) = self.0.iter().find(|(known, ..)| *known == turns)?;
        let frames = if stretch.end == timeline::NEVER { ENDLESS } else { stretch.total() };
        Some(engine::Part { first: *first, rows: *rows, frames, pps: stretch.pps })
    }
}

/// The table of `parts`, which have this shape.
///
/// # Errors
/// When a frame is one that cannot be sent.
pub fn table(parts: &[Part<'_>], shape: &Shape) -> Result<(FrameTable, Ranges), Failure> {
    let mut lanes = sent_lanes(parts);
    let apart = Apart {
        streams: groups(parts).len(),
        latencies: lanes.iter().filter(|lane| lane.stream.is_fixed()).count(),
    };
    let mut builder = builder(&lanes)?;
    let (mut ranges, mut first, mut all) = (Ranges::default(), 0, 0_u64);
    for turns in &shape.turns {
        let (rows, period) = rows(&lanes, turns, shape.turns.len() as u64);
        for lane in &mut lanes {
            lane.run = lane.stream.program.run();
        }
        let order = interleave(turns);
        for turn in order.iter().cycle().take(rows as usize) {
            let Some(lane) = lanes.get_mut(*turn) else { continue };
            lane.push_to(&mut builder)?;
        }
        ranges.0.push((turns.clone(), first, rows));
        first += rows;
        all = all.saturating_add(period);
    }
    Ok((FrameTable { apart, ..builder.finish(all) }, ranges))
}

/// How many rows lanes with these turns have, and after how many they repeat, where so many kinds of turns share the
/// table.
pub fn rows(lanes: &[Lane<'_>], turns: &[u64], kinds: u64) -> (u64, u64) {
    let turn: u64 = turns.iter().sum();
    let cycles = lanes.iter().zip(turns).filter(|(_, turns)| **turns > 0).map(|(lane, turns)| {
        match lane.stream.program.period() {
            u64::MAX => u64::MAX,
            period => period / gcd(period, *turns).max(1),
        }
    });
    let period = turn.saturating_mul(cycles.fold(1, lcm));
    let rows = if period <= MOST_ROWS / kinds.max(1) {
        period
    } else {
        (SAMPLE_ROWS / kinds.max(1)).max(turn) / turn.max(1) * turn
    };
    // Each worker of an engine has rows of its own.
    (rows.max(1) * LEAST_ROWS.div_ceil(rows.max(1)).max(1), period)
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

/// A stream whose packets are made one after the other.
pub struct Lane<'a> {
    index: u8,
    direction: u8,
    packet: Vec<u8>,
    run: Run<'a>,
    stream: &'a Stream,
}

impl Lane<'_> {
    /// Adds its next packet.
    pub fn push_to(&mut self, builder: &mut raw::Builder) -> Result<(), Failure> {
        let length = self.run.next(&mut self.packet);
        builder.push(&self.packet, length, self.index, self.direction).map_err(refused)
    }
}

/// The streams of all parts, at their first packets.
pub fn sent_lanes<'a>(parts: &[Part<'a>]) -> Vec<Lane<'a>> {
    let all = lanes(parts).into_iter();
    let lanes = all.map(|(part, stream)| {
        let packet = addressed(stream, &part.endpoint);
        Lane { index: 0, direction: part.port as u8, packet, run: stream.program.run(), stream }
    });
    let mut lanes: Vec<Lane<'_>> = lanes.collect();
    for (index, (lane, _)) in numbered(parts).into_iter().enumerate() {
        lanes[lane].index = index as u8;
    }
    lanes
}

/// An empty table for their packets.
pub fn builder(lanes: &[Lane<'_>]) -> Result<raw::Builder, Failure> {
    let longest = lanes.iter().map(|lane| lane.stream.headers).max().unwrap_or(0);
    let fill = lanes.first().map_or(0, |lane| lane.stream.fill());
    raw::Builder::new(longest, fill).map_err(refused)
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
mod tests;
