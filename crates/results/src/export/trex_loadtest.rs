//! What trex-loadtest.py writes and trex-loadtest-viz's `graph.rb` reads: a record enters, JSON
//! with `vars` and `stats` leaves.
//!
//! The reader takes the order of `stats` as seconds, so samples are averaged over whole seconds.
//! Warm-up is left out, as trex-loadtest.py does. Port 0's `rx` is what direction 1->0 forwarded,
//! port 1's is what 0->1 forwarded. Loss is computed as (tx − rx) / tx: values are floats, and
//! where nothing was offered both are [`NOTHING`] instead of zero, so that nothing counts as lost.

use serde::{Serialize, Serializer};
use wire::size;

use crate::record::{DirectionSample, Phase, Record, Sample};

/// Frames a second that stand for none.
pub const NOTHING: f64 = 1e-6;

/// Why a record has no such form.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is nothing to plot.
    #[error("{id} has no sample after its warm-up, and trex-loadtest-viz reads no empty test; leave it out")]
    NoSamples {
        /// The record's id.
        id: String,
    },
    /// A value is not finite.
    #[error("{id} holds a value that JSON cannot express ({source})")]
    NotRepresentable {
        /// The record's id.
        id: String,
        /// Which one.
        source: serde_json::Error,
    },
}

#[derive(Serialize)]
struct Loadtest {
    vars: Vars,
    #[serde(serialize_with = "in_order")]
    stats: Vec<(usize, Second)>,
}

/// The first five are mandatory. Durations are whole seconds, so that repeats compare as equal.
#[derive(Serialize)]
struct Vars {
    warmup_mult: String,
    warmup_duration: u64,
    rampup_target: String,
    rampup_duration: u64,
    hold_duration: u64,
    profile_file: String,
    unidirectional: bool,
}

#[derive(Serialize)]
struct Second {
    #[serde(rename = "0")]
    port_0: PortStats,
    #[serde(rename = "1")]
    port_1: PortStats,
    global: Global,
}

#[derive(Serialize)]
struct PortStats {
    tx_pps: f64,
    rx_pps: f64,
    tx_util: f64,
    rx_util: f64,
}

#[derive(Serialize)]
struct Global {
    tx_pps: f64,
    rx_pps: f64,
}

/// `record` as JSON for `graph.rb`.
///
/// # Errors
/// [`Error::NoSamples`] if there is nothing to plot.
pub fn export(record: &Record) -> Result<String, Error> {
    let stats = seconds(record);
    if stats.is_empty() {
        return Err(Error::NoSamples { id: record.id.clone() });
    }
    let loadtest = Loadtest { vars: vars(record), stats };
    serde_json::to_string(&loadtest)
        .map_err(|source| Error::NotRepresentable { id: record.id.clone(), source })
}

/// The parameters as they were carried out, from the samples.
fn vars(record: &Record) -> Vars {
    let of = |phase| record.samples.iter().filter(move |sample| sample.phase == phase);
    let duration = |phase| of(phase).map(|sample| sample.duration_s).sum::<f64>().round() as u64;
    let intended = |phase| of(phase).flat_map(|s| &s.directions).map(|d| d.intended_pps).fold(0.0, f64::max);
    let target = intended(Phase::Ramp).max(intended(Phase::Hold));
    Vars {
        warmup_mult: format!("{}pps", intended(Phase::WarmUp).round()),
        warmup_duration: duration(Phase::WarmUp),
        rampup_target: format!("{}%", percent_of_line_rate(record, target).round()),
        rampup_duration: duration(Phase::Ramp),
        hold_duration: duration(Phase::Hold),
        // The reader draws tests of one profile into one graph, and strips directories.
        profile_file: record.test.replace('/', "-"),
        unidirectional: !record.profile.bidirectional,
    }
}

fn percent_of_line_rate(record: &Record, pps: f64) -> f64 {
    size::pps_to_l1_bps(pps, record.profile.mean_frame_size) / record.line_rate_bps * 100.0
}

/// The mean of what was measured in each whole second since the warm-up. Seconds in which nothing
/// was measured are left out.
fn seconds(record: &Record) -> Vec<(usize, Second)> {
    let samples: Vec<_> = record.samples.iter().filter(|sample| sample.phase != Phase::WarmUp).collect();
    let (Some(first), Some(last)) = (samples.first(), samples.last()) else { return Vec::new() };
    let count = (last.at_s + last.duration_s - first.at_s).round().max(1.0) as usize;
    let second = |number| {
        let from = first.at_s + number as f64;
        let overlaps: Vec<_> = samples
            .iter()
            .map(|sample| (*sample, overlap(sample, from)))
            .filter(|(_, part)| *part > 0.0)
            .collect();
        (!overlaps.is_empty()).then(|| (number, mean_second(record, &overlaps)))
    };
    (0..count).filter_map(second).collect()
}

/// How much of the second that begins at `from` the sample covers.
fn overlap(sample: &Sample, from: f64) -> f64 {
    (sample.at_s + sample.duration_s).min(from + 1.0) - sample.at_s.max(from)
}

/// The mean over samples, weighted by the part of the second that each covers.
fn mean_second(record: &Record, samples: &[(&Sample, f64)]) -> Second {
    let covered: f64 = samples.iter().map(|(_, part)| part).sum();
    let mean = |direction: usize, value: fn(&DirectionSample) -> f64| {
        let weighted = samples.iter().map(|(s, part)| s.directions.get(direction).map_or(0.0, value) * part);
        weighted.sum::<f64>() / covered
    };
    let rates = [0, 1].map(|direction| {
        let offered = mean(direction, |d| d.offered_pps).max(NOTHING);
        let forwarded = mean(direction, |d| d.forwarded_pps);
        (offered, if offered > NOTHING { forwarded } else { forwarded.max(NOTHING) })
    });
    let port = |sends: usize, receives: usize| PortStats {
        tx_pps: rates[sends].0,
        rx_pps: rates[receives].1,
        tx_util: percent_of_line_rate(record, rates[sends].0),
        rx_util: mean(receives, |d| d.l1_bps) / record.line_rate_bps * 100.0,
    };
    Second {
        port_0: port(0, 1),
        port_1: port(1, 0),
        global: Global { tx_pps: rates[0].0 + rates[1].0, rx_pps: rates[0].1 + rates[1].1 },
    }
}

/// A JSON object in the order of the list, which the reader depends on.
fn in_order<S: Serializer>(seconds: &[(usize, Second)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(seconds.iter().map(|(number, second)| (number.to_string(), second)))
}

#[cfg(test)]
mod tests;
