//! Streams: the JSON of one enters, checked; what it sends, and how fast, leaves.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use traffic::raw;
use traffic::timeline::Mode;
use wire::size;

use crate::groups::Group;
use crate::multiplier::Rates;
use crate::program::Program;
use crate::rpc::{Failure, Parameters};

/// The shortest packet, FCS not counted: shorter ones are filled up.
const SHORTEST: usize = (size::MIN - size::FCS) as usize;
/// Inter-stream gaps below this are left out, so that streams of one load stay one.
const LEAST_WAIT: Duration = Duration::from_millis(1);
/// The longest time that streams and bursts wait.
const LONGEST_PAUSE: Duration = Duration::from_hours(24);
/// The byte that fills payloads where a packet has none.
const FILL: u8 = b'x';

/// One stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Stream {
    /// The packet, FCS not counted, at least 60 bytes.
    pub packet: Vec<u8>,
    /// What varies in it.
    pub program: Program,
    /// Bytes of its headers.
    pub headers: usize,
    /// When its frames leave.
    pub mode: Mode,
    /// Its number.
    pub id: u32,
    /// How long it waits before its first frame, each time that it begins.
    pub wait: Duration,
    /// The stream that begins when it has ended, and how often, if not without end.
    pub next: Option<(u32, Option<u64>)>,
    /// Whether it sends at all, and whether it begins by itself.
    pub enabled: bool,
    /// See `enabled`.
    pub self_start: bool,
    /// Whether the packet's own source and destination are kept, instead of the ports'.
    pub keeps: [bool; 2],
    /// Where its frames are counted apart. The rate of one whose latency is counted has no multiplier.
    pub group: Option<Group>,
    rate: Rate,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Rate {
    Pps(f64),
    BpsL1(f64),
    BpsL2(f64),
    Percentage(f64),
}

impl Stream {
    /// Reads the field `stream` of a call.
    ///
    /// # Errors
    /// When it is wrong, or asks for what cannot be done.
    pub fn read(stream: &Parameters<'_>, id: u32) -> Result<Self, Failure> {
        let packet = packet(stream)?;
        let headers = raw::headers(&packet).map_err(refused)?;
        let program = program(stream, packet.len(), u64::from(id))?;
        let (least, _) = program.lengths(packet.len());
        let builder = raw::Builder::new(headers, FILL).map_err(refused)?;
        if least < builder.smallest(headers) {
            return Err(refused(raw::RawError::TooShort {
                length: least,
                headers,
                smallest: builder.smallest(headers),
            }));
        }
        if program.reach() > headers {
            return Err(refused(format!(
                "field engine writes behind the {headers} bytes of headers: payloads are this tester's own"
            )));
        }
        if stream.or("start_paused", false, |it| it.flag("start_paused"))? {
            return Err(refused("start_paused is not supported"));
        }
        let wait = stream.or("isg", Duration::ZERO, |it| microseconds(it, "isg"))?;
        let group = stream.or("flow_stats", None, |it| read_group(&it.object("flow_stats")?))?;
        let flags = stream.or("flags", 0, |it| it.number("flags", u64::from(u16::MAX)))?;
        if flags & 0b1000 != 0 {
            return Err(refused("dummy streams are not supported"));
        }
        let enabled = stream.or("enabled", true, |it| it.flag("enabled"))?;
        let self_start = stream.or("self_start", true, |it| it.flag("self_start"))?;
        let mode = stream.object("mode")?;
        Ok(Self {
            headers,
            program,
            mode: read_mode(&mode)?,
            id,
            wait: if wait < LEAST_WAIT { Duration::ZERO } else { wait },
            next: read_next(stream)?,
            enabled,
            self_start,
            keeps: [flags & 1 == 1, (flags >> 1) & 0b11 == 1],
            group,
            rate: read_rate(&mode.object("rate")?)?,
            packet,
        })
    }

    /// What it sends at factor 1 on a line of `line_rate_bps`.
    pub fn rates(&self, line_rate_bps: f64) -> Rates {
        let (_, length) = self.program.lengths(self.packet.len());
        let one = Rates::of(1.0, length);
        let pps = match self.rate {
            Rate::Pps(pps) => pps,
            Rate::BpsL1(bps) => bps / one.bps_l1,
            Rate::BpsL2(bps) => bps / one.bps_l2,
            Rate::Percentage(percentage) => percentage / 100.0 * line_rate_bps / one.bps_l1,
        };
        Rates::of(pps, length)
    }

    /// Whether multipliers leave its rate as it is.
    pub fn is_fixed(&self) -> bool {
        self.group.is_some_and(|group| group.latency)
    }

    /// The byte that its payload is filled with.
    pub fn fill(&self) -> u8 {
        self.packet.get(self.headers).copied().unwrap_or(FILL)
    }
}

fn read_group(flow_stats: &Parameters<'_>) -> Result<Option<Group>, Failure> {
    if !flow_stats.or("enabled", false, |it| it.flag("enabled"))? {
        return Ok(None);
    }
    let id = flow_stats.number("stream_id", u64::from(u32::MAX))? as u32;
    for unknown in ["vxlan", "ieee_1588"] {
        if flow_stats.or(unknown, false, |it| it.flag(unknown))? {
            return Err(refused(format!("flow statistics with {unknown} are not supported")));
        }
    }
    match flow_stats.or("rule_type", "stats", |it| it.text("rule_type"))? {
        "stats" => Ok(Some(Group { id, latency: false })),
        "latency" => Ok(Some(Group { id, latency: true })),
        other => {
            let other: String = other.chars().take(32).collect();
            Err(refused(format!("flow statistics of the type '{other}' are not supported: stats or latency")))
        }
    }
}

fn packet(stream: &Parameters<'_>) -> Result<Vec<u8>, Failure> {
    let text = stream.object("packet")?.text("binary")?;
    let packet = STANDARD.decode(text);
    let mut packet = packet.map_err(|_| Failure::parameters("field 'binary' must be base64"))?;
    if packet.len() > usize::from(size::MAX - size::FCS) {
        return Err(refused(raw::RawError::TooLong(packet.len())));
    }
    packet.resize(packet.len().max(SHORTEST), 0);
    Ok(packet)
}

fn program(stream: &Parameters<'_>, length: usize, id: u64) -> Result<Program, Failure> {
    let seed = stream.or("random_seed", 0, |it| it.number("random_seed", u64::MAX))?;
    let seed = seed.wrapping_add(id << 32);
    match stream.optional("vm").and_then(|vm| vm.as_object()).map(Parameters) {
        Some(vm) if vm.optional("instructions").is_some() => {
            Program::read(vm.list("instructions")?, length, seed)
        }
        _ => Ok(Program::default()),
    }
}

/// The stream that follows: TRex's `action_count` says how often this one is sent before that ends, and 0 never.
fn read_next(stream: &Parameters<'_>) -> Result<Option<(u32, Option<u64>)>, Failure> {
    let id = stream.or("next_stream_id", -1, |it| it.signed("next_stream_id"))?;
    let count = stream.or("action_count", 0, |it| it.number("action_count", u64::from(u32::MAX)))?;
    Ok(u32::try_from(id).ok().map(|id| (id, count.checked_sub(1))))
}

/// A time in microseconds that is not negative, of at most a day.
fn microseconds(parameters: &Parameters<'_>, key: &str) -> Result<Duration, Failure> {
    let time = parameters.float(key)?;
    let wanted = Duration::try_from_secs_f64(time / 1e6).ok().filter(|time| *time <= LONGEST_PAUSE);
    wanted
        .ok_or_else(|| refused(format!("field '{key}' must be from 0 to a day of microseconds, not {time}")))
}

fn read_mode(mode: &Parameters<'_>) -> Result<Mode, Failure> {
    let frames = |key| match mode.number(key, u64::from(u32::MAX))? {
        0 => Err(refused(format!("field '{key}' must be 1 or more"))),
        frames => Ok(frames),
    };
    match mode.text("type")? {
        "continuous" => Ok(Mode::Continuous),
        "single_burst" => Ok(Mode::Bursts { frames: frames("total_pkts")?, count: 1, gap: Duration::ZERO }),
        "multi_burst" => {
            let gap = microseconds(mode, "ibg")?;
            Ok(Mode::Bursts { frames: frames("pkts_per_burst")?, count: frames("count")?, gap })
        }
        other => {
            Err(refused(format!("unknown stream type '{}'", other.chars().take(32).collect::<String>())))
        }
    }
}

fn read_rate(rate: &Parameters<'_>) -> Result<Rate, Failure> {
    let value = rate.float("value")?;
    if !value.is_finite() || value <= 0.0 {
        return Err(refused(format!("a rate of {value} sends nothing")));
    }
    match rate.text("type")? {
        "pps" => Ok(Rate::Pps(value)),
        "bps_L1" => Ok(Rate::BpsL1(value)),
        "bps_L2" => Ok(Rate::BpsL2(value)),
        "percentage" => Ok(Rate::Percentage(value)),
        other => Err(refused(format!("unknown rate type '{}'", other.chars().take(32).collect::<String>()))),
    }
}

fn refused(reason: impl ToString) -> Failure {
    Failure::execute(reason.to_string())
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use serde_json::{Value, json};

    /// The stream that TRex's `bench.py -t size=64,vm=var2` sends, with its own packet.
    pub fn bench() -> Value {
        json!({"flags": 0, "action_count": 0, "enabled": true, "self_start": true, "start_paused": false,
            "isg": 0, "core_id": -1, "mode": {"type": "continuous", "rate": {"type": "pps", "value": 1}},
            "packet": {"binary": "AAAAAQAAAAAAAgAACABFAAAuAAEAAEAROrcQAAAEMAAABAQBAAwAGgAAeHh4eHh4eHh4eHh4eHh4eHh4", "meta": ""},
            "vm": {"instructions": [
                {"type": "flow_var", "name": "src", "size": 4, "op": "inc", "next_var": null, "split_to_cores": true,
                    "init_value": 268435460, "min_value": 268435460, "max_value": 268435710, "step": 1},
                {"type": "write_flow_var", "name": "src", "pkt_offset": 26, "add_value": 0, "is_big_endian": true},
                {"type": "fix_checksum_ipv4", "pkt_offset": 14}]},
            "flow_stats": {"enabled": false}, "next_stream_id": -1})
    }

    pub fn read(stream: &Value) -> Result<Stream, Failure> {
        Stream::read(&Parameters(stream.as_object().unwrap()), 1)
    }

    #[test]
    fn a_stream_of_trex_is_read_and_its_rates_are_those_of_its_size() {
        let stream = read(&bench()).unwrap();
        assert_eq!((stream.packet.len(), stream.headers, stream.program.period()), (60, 42, 251));
        assert_eq!(stream.rates(10e9), Rates { pps: 1.0, bps_l2: 512.0, bps_l1: 672.0 });
        let mut percentage = bench();
        percentage["mode"]["rate"] = json!({"type": "percentage", "value": 10});
        let rates = read(&percentage).unwrap().rates(10e9);
        assert!((rates.bps_l1 - 1e9).abs() < 1.0);
    }

    #[test]
    fn what_follows_and_how_often_is_read() {
        let next = |id: i64, count: u64| {
            let mut stream = bench();
            (stream["next_stream_id"], stream["action_count"]) = (json!(id), json!(count));
            read(&stream).unwrap().next
        };
        assert_eq!([next(-1, 0), next(2, 0), next(2, 3)], [None, Some((2, None)), Some((2, Some(2)))]);
    }

    #[test]
    fn what_cannot_be_sent_is_refused_by_name() {
        let refusal = |change: &dyn Fn(&mut Value)| {
            let mut stream = bench();
            change(&mut stream);
            read(&stream).unwrap_err().reason
        };
        let group = |kind: &str| json!({"enabled": true, "stream_id": 7, "rule_type": kind});
        assert!(refusal(&|it| it["flow_stats"] = group("tpg")).contains("flow statistics of the type 'tpg'"));
        assert!(refusal(&|it| it["flow_stats"] = json!({"enabled": true})).contains("stream_id"));
        assert!(refusal(&|it| it["packet"]["binary"] = json!("!")).contains("base64"));
        assert!(refusal(&|it| it["packet"]["binary"] = json!("AAAA")).contains("not IPv4"));
        assert!(refusal(&|it| it["isg"] = json!(-1)).contains("isg"));
        assert!(refusal(&|it| it["mode"]["type"] = json!("x")).contains("unknown stream type"));
        assert!(refusal(&|it| it["mode"]["rate"]["value"] = json!(0)).contains("sends nothing"));
        assert!(
            refusal(&|it| it["vm"]["instructions"][1]["pkt_offset"] = json!(50)).contains("behind the 42")
        );
        let burst = json!({"type": "multi_burst", "pkts_per_burst": 4, "count": 2, "ibg": 1e30,
            "rate": {"type": "pps", "value": 1}});
        assert!(refusal(&|it| it["mode"] = burst.clone()).contains("'ibg' must be from 0"));
    }
}
