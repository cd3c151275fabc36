//! What trex-loadtest.py writes: its JSON enters; samples and all else of a record but the verdict leave.
//!
//! The form is that which trex-loadtest-viz reads: `vars` with the parameters, `stats` with an object for each second,
//! whose order is that of time. Of each port the rates `tx_pps` and `rx_pps` are used. They are TRex's smoothed rates and no
//! counts, and nothing is known of the device, the machines or the frames' headers: a record says so in its notes.

use std::collections::BTreeMap;
use std::fmt;
use std::time::SystemTime;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::Value;
use wire::rate::Rate;
use wire::size::{pps_to_l1_bps, pps_to_l2_bps};

use crate::record::{
    DirectionSample, Dut, Environment, Finding, Phase, Profile, Record, SCHEMA, Sample, Status, Strategy,
    Tester,
};
use crate::{store, time};

/// The most seconds of a file.
const MOST_SECONDS: usize = 100_000;
/// The most frames a second that a file may tell of.
const MOST_PPS: f64 = 1e12;
/// A rate below this stands for none.
const NOTHING_PPS: f64 = 0.01;
/// The mean sizes of frames, FCS included, of TRex's own profiles that have no tunable for it, by how their names begin.
const SIZES: [(&str, f64); 2] = [("imix", IMIX), ("udp_1pkt_simple", 64.0)];
/// Frames of 64, 594 and 1,518 bytes at rates of 28, 16 and 4.
const IMIX: f64 = (28.0 * 64.0 + 16.0 * 594.0 + 4.0 * 1518.0) / 48.0;
/// What stands for text that the file does not tell.
const UNKNOWN: &str = "unknown";

/// Why a file is none of these.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It is no JSON of this form.
    #[error("not what trex-loadtest.py writes ({0}): name a JSON file that it wrote")]
    Form(String),
    /// It does not say how large frames were.
    #[error(
        "the size of the frames of {0} is not in the file: give --frame-size (the mean, FCS included), or --line-rate \
         where the ports' use is in the file"
    )]
    Size(String),
    /// It does not say how fast the line was.
    #[error("the line rate is not in the file: give --line-rate")]
    LineRate,
}

/// A file as it was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Loadtest {
    vars: Vars,
    /// Both ports, second by second.
    seconds: Vec<[Port; 2]>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
struct Vars {
    #[serde(default)]
    warmup_mult: Value,
    #[serde(default)]
    warmup_duration: Value,
    #[serde(default)]
    rampup_target: Value,
    #[serde(default)]
    rampup_duration: Value,
    #[serde(default)]
    hold_duration: Value,
    profile_file: String,
}

/// What a port sent and received in a second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Port {
    tx_pps: f64,
    rx_pps: f64,
    /// Of the line rate (L1), in percent, where it is known.
    tx_util: Option<f64>,
}

/// What the user knows beside the file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    /// What the device is called.
    pub dut: Option<String>,
    /// What reports call the run.
    pub name: String,
    /// What reports compare it under.
    pub test: Option<String>,
    /// The mean size of frames in bytes, FCS included.
    pub frame_size: Option<f64>,
    /// The line rate (L1) in bits a second.
    pub line_rate_bps: Option<f64>,
    /// A sample with more than this share of its frames lost is lossy.
    pub loss_threshold: f64,
    /// When the file was written.
    pub written: Option<SystemTime>,
    /// The command that imports it.
    pub command: Vec<String>,
}

/// A record without a verdict, and what the verdict needs.
#[derive(Clone, Debug, PartialEq)]
pub struct Imported {
    /// The record: `directions` is empty.
    pub record: Record,
    /// The load that the ramp was to reach, in frames a second.
    pub target_pps: f64,
    /// Frames sent and forwarded in each direction, by the rates.
    pub totals: Vec<[u64; 2]>,
}

#[derive(Deserialize)]
struct File {
    vars: Vars,
    stats: Ordered,
}

/// An object in the order of the text, which is that of time.
struct Ordered(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Ordered {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = Ordered;
            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object with a member for each second")
            }
            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Ordered, M::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    if entries.len() == MOST_SECONDS {
                        return Err(serde::de::Error::custom(format!("more than {MOST_SECONDS} seconds")));
                    }
                    entries.push(entry);
                }
                Ok(Ordered(entries))
            }
        }
        deserializer.deserialize_map(Entries)
    }
}

/// Reads the text of a file.
///
/// # Errors
/// [`Error::Form`], with the second and the member that is wrong.
pub fn read(text: &str) -> Result<Loadtest, Error> {
    let File { vars, stats } = serde_json::from_str(text).map_err(|error| Error::Form(error.to_string()))?;
    let second = |(key, second): &(String, Value)| -> Result<[Port; 2], Error> {
        let port = |number: &str| -> Result<Port, Error> {
            let rate = |name: &str| {
                let value = second.get(number).and_then(|port| port.get(name)).and_then(Value::as_f64);
                let value = value.filter(|value| (0.0..=MOST_PPS).contains(value));
                value.ok_or_else(|| {
                    let key: String = key.chars().take(64).collect();
                    Error::Form(format!("in second '{key}' port {number} has no rate '{name}'"))
                })
            };
            let used = second.get(number).and_then(|port| port.get("tx_util")).and_then(Value::as_f64);
            Ok(Port { tx_pps: rate("tx_pps")?, rx_pps: rate("rx_pps")?, tx_util: used })
        };
        Ok([port("0")?, port("1")?])
    };
    let seconds: Vec<[Port; 2]> = stats.0.iter().map(second).collect::<Result<_, _>>()?;
    if seconds.iter().flatten().all(|port| port.tx_pps < NOTHING_PPS) {
        return Err(Error::Form("nothing was sent in any second of 'stats'".to_owned()));
    }
    Ok(Loadtest { vars, seconds })
}

impl Loadtest {
    /// The record of this test, to be judged.
    ///
    /// # Errors
    /// When neither the file nor `facts` tell how large frames or how fast the line was.
    pub fn record(&self, facts: Facts) -> Result<Imported, Error> {
        let profile = self.vars.profile_file.rsplit('/').next().unwrap_or_default();
        let profile = profile.strip_suffix(".py").unwrap_or(profile).to_owned();
        let (size, line_rate_bps, mut notes) = self.size_and_line_rate(&profile, &facts)?;
        let loaded = |port: usize| self.seconds.iter().any(|second| second[port].tx_pps >= NOTHING_PPS);
        let ports: Vec<usize> = (0..2).filter(|port| loaded(*port)).collect();
        let bidirectional = ports.len() == 2;
        let ways = if loaded(1) { 2 } else { 1 };
        let (samples, more_came_back) = self.samples(ways, size);
        notes.push(
            "imported from trex-loadtest: rates are TRex's smoothed ones, and frames are rates times a second, no \
             counts; the load asked for in each second is taken for what was sent"
                .to_owned(),
        );
        notes.push(
            "not known, and not zero: flows, latency, duplicates, order, unsent frames, the device's configuration, the \
             tester's cores and cards, the machine, and what it did beside the measurement"
                .to_owned(),
        );
        notes.push("when it ran is not known: the time is that of the file".to_owned());
        if more_came_back > 0 {
            notes.push(format!(
                "in {more_came_back} seconds TRex shows more frames received than sent in a direction; these count as \
                 without loss"
            ));
        }
        if ports == [1] {
            notes.push("only port 1 sent: nothing is known of the direction 0->1".to_owned());
        }
        let sum = |direction: usize| {
            let each = samples.iter().filter_map(|sample| sample.directions.get(direction));
            each.fold([0, 0], |[sent, came], it| [sent + it.offered, came + it.forwarded])
        };
        let totals = (0..ways).map(sum).collect();
        let most = self.seconds.iter().flatten().map(|port| port.tx_pps).fold(0.0, f64::max);
        let target_pps = self.target(size, line_rate_bps).unwrap_or(most);
        let planned =
            self.seconds_of(&self.vars.rampup_duration).zip(self.seconds_of(&self.vars.hold_duration));
        // The last samples are often missing.
        let cut =
            planned.is_some_and(|(rise, hold)| self.seconds.len() as f64 * 1.05 + 2.0 < (rise + hold) as f64);
        let written = facts.written.unwrap_or(SystemTime::UNIX_EPOCH);
        let test = facts.test.unwrap_or_else(|| {
            if bidirectional { format!("{profile} bidirectional") } else { profile.clone() }
        });
        let dut = facts.dut.unwrap_or_else(|| UNKNOWN.to_owned());
        let record = Record {
            schema: SCHEMA.to_owned(),
            id: store::id(written, &dut, &format!("{} {test}", facts.name)),
            name: facts.name,
            test,
            labels: BTreeMap::new(),
            started: time::rfc3339(written),
            elapsed_s: samples.len() as f64,
            status: if cut { Status::Interrupted } else { Status::Complete },
            reason: cut.then(|| "the file ends before the ramp and the hold that it announces".to_owned()),
            command: facts.command,
            strategy: self.strategy(facts.loss_threshold),
            profile: Profile {
                name: profile,
                tunables: BTreeMap::new(),
                bidirectional,
                mean_frame_size: size,
                flows: 0,
                rows: 0,
                period: 0,
                source: None,
            },
            dut: Dut { name: dut, ..Dut::default() },
            tester: Tester {
                engine: "TRex, by trex-loadtest".to_owned(),
                engine_reason: None,
                cores: Vec::new(),
                receive_core: None,
                receive_cores: Vec::new(),
                receive_cost_ns: None,
                receive_share: None,
                ports: Vec::new(),
                self_test: None,
            },
            environment: Environment {
                linerate: env!("CARGO_PKG_VERSION").to_owned(),
                kernel: UNKNOWN.to_owned(),
                os: UNKNOWN.to_owned(),
                cpu: UNKNOWN.to_owned(),
                cores: 0,
                memory_bytes: 0,
                hypervisor: None,
                host: None,
            },
            line_rate_bps,
            samples,
            directions: Vec::new(),
            finding: Finding::Ramp(None),
            cross_check: Vec::new(),
            queues: Vec::new(),
            nodes: Vec::new(),
            nodes_s: None,
            gauges: None,
            switch: None,
            notes,
        };
        Ok(Imported { record, target_pps, totals })
    }

    /// The mean frame size in bytes, the line rate in bits a second, and where they come from.
    fn size_and_line_rate(&self, profile: &str, facts: &Facts) -> Result<(f64, f64, Vec<String>), Error> {
        let known = SIZES.iter().find(|(name, _)| profile.starts_with(name)).map(|(_, size)| *size);
        let used = self.seconds.iter().flatten().filter_map(|port| {
            let share = port.tx_util.filter(|used| *used > 0.1 && used.is_finite())? / 100.0;
            (port.tx_pps >= 1.0).then_some((port.tx_pps, share))
        });
        // The busiest second is the most exact.
        let busiest = used.max_by(|(one, _), (two, _)| one.total_cmp(two));
        let mut notes = Vec::new();
        let line_of = |size: f64| busiest.map(|(pps, share)| rounded(pps_to_l1_bps(pps, size) / share));
        let size_of = |line: f64| {
            let (pps, share) = busiest?;
            let size = line * share / (8.0 * pps) - f64::from(wire::size::L1_OVERHEAD);
            (64.0..=9_216.0).contains(&size).then_some(size)
        };
        let size = match (facts.frame_size.or(known), facts.line_rate_bps) {
            (Some(size), _) => {
                if facts.frame_size.is_none() {
                    notes.push(format!(
                        "the size of the frames is that of TRex's own profile {profile}: {size:.1} bytes"
                    ));
                }
                size
            }
            (None, Some(line)) => {
                let size = size_of(line).ok_or_else(|| Error::Size(profile.to_owned()))?;
                notes
                    .push(format!("the size of the frames is computed from the ports' use: {size:.1} bytes"));
                size
            }
            (None, None) => return Err(Error::Size(profile.to_owned())),
        };
        let line = match facts.line_rate_bps {
            Some(line) => line,
            None => {
                let line = line_of(size).ok_or(Error::LineRate)?;
                notes.push(format!("the line rate is computed from the ports' use: {:.3} Gb/s", line / 1e9));
                line
            }
        };
        Ok((size, line, notes))
    }

    /// Each second as a sample with so many directions, and in how many of them more came back than was sent.
    fn samples(&self, ways: usize, size: f64) -> (Vec<Sample>, usize) {
        let rise = self.seconds_of(&self.vars.rampup_duration).map_or(usize::MAX, |rise| rise as usize);
        let mut more_came_back = 0;
        let sample = |(at, ports): (usize, &[Port; 2])| {
            let mut more = false;
            let directions = [(0, 1), (1, 0)].into_iter().take(ways).map(|(from, to)| {
                let (sent, came) = (ports[from].tx_pps, ports[to].rx_pps);
                let (offered, received) = (sent.round() as u64, came.round() as u64);
                more |= received > offered;
                let forwarded = received.min(offered);
                let forwarded_pps = came.min(sent);
                DirectionSample {
                    intended_pps: sent,
                    offered_pps: sent,
                    forwarded_pps,
                    offered,
                    forwarded,
                    loss_ratio: (offered - forwarded) as f64 / offered.max(1) as f64,
                    l1_bps: pps_to_l1_bps(forwarded_pps, size),
                    l2_bps: pps_to_l2_bps(forwarded_pps, size),
                    ..DirectionSample::default()
                }
            });
            let directions = directions.collect();
            more_came_back += usize::from(more);
            Sample {
                at_s: at as f64,
                duration_s: 1.0,
                phase: if at < rise { Phase::Ramp } else { Phase::Hold },
                dut_core_busy: None,
                disturbed: None,
                noise: None,
                directions,
            }
        };
        let samples: Vec<Sample> = self.seconds.iter().enumerate().map(sample).collect();
        (samples, more_came_back)
    }

    /// A duration among the parameters, in seconds.
    fn seconds_of(&self, value: &Value) -> Option<u64> {
        let seconds = match value {
            Value::String(text) => text.trim_end_matches('s').parse().ok(),
            number => number.as_f64(),
        };
        seconds.filter(|seconds| (0.0..=1e9).contains(seconds)).map(|seconds| seconds as u64)
    }

    /// The load at the end of the ramp, in frames a second.
    fn target(&self, size: f64, line_rate_bps: f64) -> Option<f64> {
        let rate: Rate = self.vars.rampup_target.as_str()?.parse().ok()?;
        rate.to_pps(size, line_rate_bps).filter(|pps| (1.0..=MOST_PPS).contains(pps))
    }

    fn strategy(&self, loss_threshold: f64) -> Strategy {
        let text = |value: &Value, unit: &str| match value {
            Value::String(text) => text.chars().take(64).collect(),
            Value::Number(number) => format!("{number}{unit}"),
            _ => UNKNOWN.to_owned(),
        };
        let vars = &self.vars;
        let parameters = [
            ("warm-up", text(&vars.warmup_mult, "")),
            ("warm-up-duration", text(&vars.warmup_duration, "s")),
            ("target", text(&vars.rampup_target, "")),
            ("ramp-duration", text(&vars.rampup_duration, "s")),
            ("hold-duration", text(&vars.hold_duration, "s")),
        ];
        let parameters = parameters.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        Strategy { name: "ramp".to_owned(), parameters, loss_threshold }
    }
}

/// To three digits: the use of a port is a smoothed figure.
fn rounded(bps: f64) -> f64 {
    let unit = 10_f64.powf(bps.log10().floor() - 2.0);
    (bps / unit).round() * unit
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::consistency;
    use crate::export;
    use crate::fixtures::Scenario;
    use serde_json::json;

    /// A test of a device that forwards 6 Mpps of 64-byte frames on a line of 10 Gb/s, as the visualizer reads it: keys
    /// that are not in the order of time when they are sorted.
    fn loadtest() -> String {
        let seconds: Vec<String> = (0..25)
            .map(|second: u32| {
                let tx = 14.88e6 * f64::from((second + 1).min(20)) / 20.0;
                let port = |tx: f64, rx: f64| {
                    json!({"tx_pps": tx, "rx_pps": rx, "tx_util": tx * 672.0 / 1e8, "rx_util": rx * 672.0 / 1e8})
                };
                let stats = json!({"0": port(tx, 0.000_001), "1": port(0.000_001, tx.min(6e6)), "global": {}});
                format!("\"{}\": {stats}", f64::from(second) + 0.5)
            })
            .collect();
        let vars = json!({"warmup_mult": "1kpps", "warmup_duration": 30, "rampup_target": "100%",
            "rampup_duration": 20, "hold_duration": 5, "profile_file": "/stl/udp_1pkt_simple.py"});
        format!("{{\"vars\": {vars}, \"stats\": {{{}}}}}", seconds.join(","))
    }

    fn facts() -> Facts {
        Facts { name: "netgate".to_owned(), loss_threshold: 0.001, ..Facts::default() }
    }

    #[test]
    fn a_file_becomes_samples_of_seconds() {
        let imported = read(&loadtest()).unwrap().record(facts()).unwrap();
        let record = &imported.record;
        assert_eq!((record.profile.mean_frame_size, record.line_rate_bps), (64.0, 1e10));
        assert_eq!((record.samples.len(), record.test.as_str()), (25, "udp_1pkt_simple"));
        let phases = |phase| record.samples.iter().filter(|sample| sample.phase == phase).count();
        assert_eq!((phases(Phase::Ramp), phases(Phase::Hold)), (20, 5));
        let last = &record.samples[24].directions;
        assert_eq!((last.len(), last[0].offered, last[0].forwarded), (1, 14_880_000, 6_000_000));
        assert!((imported.target_pps / 14_880_952.0 - 1.0).abs() < 1e-3);
        assert_eq!(record.status, Status::Complete);
        assert!(record.notes.iter().any(|note| note.contains("line rate is computed")));
        assert_eq!(consistency::contradictions(record), Vec::<String>::new());
    }

    #[test]
    fn what_is_exported_comes_back() {
        let text = export::trex_loadtest::export(&Scenario::default().record()).unwrap();
        let known = Facts { frame_size: Some(64.0), ..facts() };
        let imported = read(&text).unwrap().record(known).unwrap();
        assert!(!imported.record.samples.is_empty());
        assert_eq!(consistency::contradictions(&imported.record), Vec::<String>::new());
    }

    #[test]
    fn what_the_file_does_not_tell_is_asked_for() {
        let text = loadtest().replace("udp_1pkt_simple", "bench");
        let other = read(&text).unwrap();
        assert!(other.record(facts()).unwrap_err().to_string().contains("--frame-size"));
        let by_line = other.record(Facts { line_rate_bps: Some(1e10), ..facts() }).unwrap();
        assert!((by_line.record.profile.mean_frame_size - 64.0).abs() < 0.01);
        let without = read(&loadtest().replace("tx_util", "other")).unwrap();
        assert!(without.record(facts()).unwrap_err().to_string().contains("--line-rate"));
        let given = without.record(Facts { line_rate_bps: Some(1e10), ..facts() }).unwrap();
        assert_eq!(given.record.line_rate_bps, 1e10);
    }

    #[test]
    fn what_is_no_such_file_is_refused_with_the_place() {
        let wrong = |text: &str| read(text).unwrap_err().to_string();
        for text in
            ["", "{}", "[]", r#"{"vars": {}, "stats": {}}"#, r#"{"vars": {"profile_file": 7}, "stats": {}}"#]
        {
            assert!(wrong(text).contains("not what trex-loadtest.py writes"), "{text}");
        }
        let second = |port: &str| format!(r#"{{"vars": {{"profile_file": "x"}}, "stats": {{"9": {port}}}}}"#);
        assert!(
            wrong(&second(r#"{"0": {"tx_pps": "N/A"}}"#)).contains("second '9' port 0 has no rate 'tx_pps'")
        );
        let zero = r#"{"tx_pps": 0, "rx_pps": 0}"#;
        assert!(
            wrong(&second(&format!(r#"{{"0": {zero}, "1": {{"tx_pps": 1e99, "rx_pps": 0}}}}"#)))
                .contains("port 1")
        );
        assert!(wrong(&second(&format!(r#"{{"0": {zero}, "1": {zero}}}"#))).contains("nothing was sent"));
    }
}
