//! Frames become streams: a frame table enters; TRex's streams for one of its directions leave, which send the same
//! frames in the same proportions.
//!
//! Frames of one length are one stream. What differs between them is written by flow variables that advance together:
//! a range where the values rise evenly, else the list of them. The order within a stream is the table's;
//! streams of different lengths are mixed as the server does it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use traffic::FrameTable;
use wire::signature;

/// The most bytes of a stream's JSON. `linerate serve` takes no more.
const LONGEST_STREAM: usize = 60_000;
/// The most streams of a port. As above.
const MOST_STREAMS: usize = 64;
/// Where an Ethernet header has its type.
const TYPE: usize = 12;

/// The streams of `direction`, at one frame a second for each row of the table.
///
/// # Errors
/// What of the profile cannot be sent by streams, with the remedy.
pub fn streams(table: &FrameTable, direction: u8) -> Result<Vec<Value>, String> {
    if !table.times.is_empty() {
        return Err(
            "the profile has bursts, and these servers are given streams without end: choose another engine"
                .to_owned(),
        );
    }
    if !table.is_complete() {
        return Err(format!(
            "the profile repeats after {} frames only, which streams of TRex cannot say: choose one with fewer flows",
            table.period
        ));
    }
    let mut lengths: Vec<(u16, Vec<usize>)> = Vec::new();
    for (index, row) in table.rows.iter().enumerate().filter(|(_, row)| row.direction == direction) {
        match lengths.iter().position(|(length, _)| *length == row.length) {
            Some(at) => lengths[at].1.push(index),
            None if lengths.len() < MOST_STREAMS => lengths.push((row.length, vec![index])),
            None => {
                return Err(format!(
                    "frames of more than {MOST_STREAMS} sizes need as many streams: choose a profile with fewer sizes"
                ));
            }
        }
    }
    lengths.iter().map(|(_, rows)| stream(table, rows)).collect()
}

/// The same streams, which send exactly `frames` together and end together.
///
/// # Errors
/// When so many frames cannot be divided by the streams' rates.
pub fn bursts(streams: &[Value], frames: u64) -> Result<Vec<Value>, String> {
    let rows = |stream: &Value| stream.pointer("/mode/rate/value").and_then(Value::as_u64).unwrap_or(0);
    let all: u64 = streams.iter().map(rows).sum::<u64>().max(1);
    let burst = |stream: &Value| {
        let share = u128::from(frames) * u128::from(rows(stream));
        if share % u128::from(all) != 0 {
            return Err(format!(
                "{frames} frames cannot be divided by the {} sizes of this profile as it mixes them: choose a profile of \
                 one size, or a multiple of {all} frames",
                streams.len()
            ));
        }
        let mut stream = stream.clone();
        if let Some(mode) = stream.get_mut("mode").and_then(Value::as_object_mut) {
            mode.insert("type".to_owned(), json!("single_burst"));
            mode.insert("total_pkts".to_owned(), json!((share / u128::from(all)) as u64));
        }
        Ok(stream)
    };
    streams.iter().map(burst).collect()
}

/// One stream that sends `rows`, which have the same length.
fn stream(table: &FrameTable, rows: &[usize]) -> Result<Value, String> {
    let first = rows.first().copied().unwrap_or_default();
    let mut packet = table.frame(first);
    let payload = packet.len().saturating_sub(signature::LENGTH);
    packet[payload..].fill(table.fill);
    let layers = Layers::of(&packet, table.rows[first].checksum.is_some())?;
    let checksum = table.rows[first].checksum.map(|checksum| usize::from(checksum.offset));
    let computed = |at: usize| {
        let of_ipv4 = layers.is_ipv4 && (layers.network + 10..layers.network + 12).contains(&at);
        of_ipv4 || checksum.is_some_and(|offset| (offset..offset + 2).contains(&at))
    };
    let end = table.header_length.min(payload);
    let varies =
        |at: usize| !computed(at) && rows.iter().any(|row| table.header(*row)[at] != table.header(first)[at]);
    let varying: Vec<usize> = (0..end).filter(|at| varies(*at)).collect();
    let mut instructions = Vec::new();
    let mut writes = Vec::new();
    for (number, (offset, size)) in fields(&varying, &computed).into_iter().enumerate() {
        let value = |row: &usize| {
            let bytes = &table.header(*row)[offset..offset + size];
            bytes.iter().fold(0_u64, |value, byte| value << 8 | u64::from(*byte))
        };
        let name = format!("field{number}");
        instructions.push(variable(&name, size, &rows.iter().map(value).collect::<Vec<_>>()));
        writes.push(json!({
            "type": "write_flow_var", "name": name, "pkt_offset": offset, "add_value": 0, "is_big_endian": true,
        }));
    }
    instructions.append(&mut writes);
    instructions.extend(layers.mend(!varying.is_empty()));
    let stream = json!({
        "flags": 0, "action_count": 0, "enabled": true, "self_start": true, "start_paused": false, "isg": 0.0,
        "core_id": -1, "next_stream_id": -1, "flow_stats": {"enabled": false},
        "mode": {"type": "continuous", "rate": {"type": "pps", "value": rows.len()}},
        "packet": {"binary": STANDARD.encode(&packet), "meta": ""},
        "vm": {"instructions": instructions},
    });
    let length = stream.to_string().len();
    if length > LONGEST_STREAM {
        return Err(format!(
            "{} frames of {} bytes differ in no simple order, and a stream that lists them has {length} bytes, more \
             than {LONGEST_STREAM}: choose a profile with fewer flows",
            rows.len(),
            packet.len() + 4
        ));
    }
    Ok(stream)
}

/// A variable with these values, one for each frame.
fn variable(name: &str, size: usize, values: &[u64]) -> Value {
    let (first, last) = (values.first().copied().unwrap_or(0), values.last().copied().unwrap_or(0));
    let step = values.get(1).and_then(|second| second.checked_sub(first)).filter(|step| *step > 0);
    let rises =
        step.is_some_and(|step| values.windows(2).all(|two| two[1].checked_sub(two[0]) == Some(step)));
    let mut variable = json!({
        "type": "flow_var", "name": name, "size": size, "op": "inc", "next_var": null, "split_to_cores": true,
        "step": 1,
    });
    let more = match step.filter(|_| rises) {
        Some(step) => {
            json!({"init_value": first, "min_value": first, "max_value": last, "step": step})
        }
        None => json!({"value_list": values}),
    };
    if let (Some(variable), Value::Object(more)) = (variable.as_object_mut(), more) {
        variable.extend(more);
    }
    variable
}

/// The fields that hold all bytes at `varying`, in their order: each an offset and a size of 1, 2 or 4 bytes.
fn fields(varying: &[usize], computed: &impl Fn(usize) -> bool) -> Vec<(usize, usize)> {
    let mut fields: Vec<(usize, usize)> = Vec::new();
    let mut rest = varying;
    while let Some(start) = rest.first().copied() {
        let run = rest.iter().zip(start..).take_while(|(at, expected)| *at == expected).count();
        let from = fields.last().map_or(0, |(offset, size)| offset + size);
        let (offset, size) = match run {
            1 | 2 => (start, run),
            // An address whose first byte is the same in all.
            3 if start > from && !computed(start - 1) => (start - 1, 4),
            3 => (start, 2),
            _ => (start, 4),
        };
        fields.push((offset, size));
        rest = &rest[rest.partition_point(|at| *at < offset + size)..];
    }
    fields
}

/// Where a frame has its layers, as far as checksums need it.
struct Layers {
    network: usize,
    is_ipv4: bool,
    /// Of frames whose checksum covers the payload: the length of the network's header, and TRex's number for what is
    /// in it.
    transport: Option<(usize, u8)>,
}

impl Layers {
    fn of(packet: &[u8], has_checksum: bool) -> Result<Self, String> {
        let word = |at: usize| packet.get(at..at + 2).map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]]));
        let mut at = TYPE;
        while matches!(word(at), Some(0x8100 | 0x88a8)) {
            at += 4;
        }
        let (network, kind) = (at + 2, word(at).unwrap_or_default());
        let byte = |at: usize| packet.get(network + at).copied().unwrap_or_default();
        let (length, protocol) = match kind {
            0x0800 => (usize::from(byte(0) & 15) * 4, byte(9)),
            0x86dd => (40, byte(6)),
            other => {
                return Err(format!(
                    "frames of Ethernet type {other:#06x} cannot be sent by streams: use IP"
                ));
            }
        };
        let transport = match (has_checksum, protocol) {
            (false, _) => None,
            (true, 17) => Some((length, 11)),
            (true, 6) => Some((length, 13)),
            (true, other) => {
                return Err(format!(
                    "TRex has no instruction for the checksum of IP protocol {other}: choose a profile of UDP or TCP"
                ));
            }
        };
        Ok(Self { network, is_ipv4: kind == 0x0800, transport })
    }

    /// The instruction that sets checksums right, if one is needed.
    fn mend(&self, varies: bool) -> Option<Value> {
        match self.transport {
            Some((length, kind)) => Some(json!({
                "type": "fix_checksum_hw", "l2_len": self.network, "l3_len": length, "l4_type": kind,
            })),
            None if self.is_ipv4 && varies => {
                Some(json!({"type": "fix_checksum_ipv4", "pkt_offset": self.network}))
            }
            None => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rpc::Parameters;
    use crate::stream::Stream;
    use traffic::tunable::Vm;
    use traffic::{Directions, Endpoint, Endpoints, Profile, Tunables};
    use wire::MacAddress;

    fn table(name: &str, size: &str, flows: Option<&str>, ip: Option<&str>) -> FrameTable {
        let size = (!size.is_empty()).then(|| size.parse().unwrap());
        let vm: Option<Vm> = flows.map(|flows| flows.parse().unwrap());
        let ip = ip.map(|ip| ip.parse().unwrap());
        let profile = Profile::builtin(name, &Tunables { size, vm, ip, vlan: None }).unwrap();
        let endpoint = Endpoint { source: MacAddress([2; 6]), destination: MacAddress([4; 6]) };
        profile.table(&Endpoints([endpoint; 2]), Directions::Both)
    }

    /// What our own server makes of the streams: each frame's headers, without checksums, beside the table's.
    fn holds(table: &FrameTable) {
        for direction in 0..2 {
            for stream in streams(table, direction).unwrap() {
                let read = Stream::read(&Parameters(stream.as_object().unwrap()), 1).unwrap();
                let length = read.packet.len();
                let rows = table.rows.iter().enumerate();
                let rows =
                    rows.filter(|(_, row)| row.direction == direction && usize::from(row.length) == length);
                let rows: Vec<usize> = rows.map(|(index, _)| index).collect();
                assert_eq!(read.rates(1e9).pps, rows.len() as f64);
                let mut packet = read.packet.clone();
                let mut run = read.program.run();
                // More than once through, to see that all variables begin again together.
                for index in rows.iter().chain(&rows) {
                    run.next(&mut packet);
                    let (mut ours, mut theirs) = (table.frame(*index), packet.clone());
                    for frame in [&mut ours, &mut theirs] {
                        if frame[12..14] == [8, 0] {
                            frame[24..26].fill(0);
                        }
                        if let Some(checksum) = table.rows[*index].checksum {
                            frame[usize::from(checksum.offset)..][..2].fill(0);
                        }
                        frame.truncate(length - signature::LENGTH);
                    }
                    assert_eq!(ours, theirs, "frame {index}");
                }
            }
        }
    }

    #[test]
    fn streams_send_the_frames_of_the_table() {
        holds(&table("bench", "64", None, None));
        holds(&table("bench", "128", Some("var1"), None));
        holds(&table("bench", "64", Some("var2"), None));
        holds(&table("bench", "256", Some("var2"), Some("6")));
        holds(&table("bench", "imix", Some("var2"), None));
    }

    #[test]
    fn what_streams_cannot_say_is_refused_by_name() {
        let refusal = streams(&table("bench", "64", Some("random"), None), 0).unwrap_err();
        assert!(refusal.contains("fewer flows"), "{refusal}");
    }

    #[test]
    fn a_burst_is_divided_by_the_rates_or_refused() {
        let imix = streams(&table("bench", "imix", None, None), 0).unwrap();
        let all: u64 = imix.iter().map(|stream| stream["mode"]["rate"]["value"].as_u64().unwrap()).sum();
        let burst = bursts(&imix, 10 * all).unwrap();
        for (burst, stream) in burst.iter().zip(&imix) {
            let total = burst["mode"]["total_pkts"].as_u64().unwrap();
            assert_eq!(total, 10 * stream["mode"]["rate"]["value"].as_u64().unwrap());
            let read = Stream::read(&Parameters(burst.as_object().unwrap()), 1).unwrap();
            assert!(
                matches!(read.mode, traffic::timeline::Mode::Bursts { frames, count: 1, .. } if frames == total)
            );
        }
        assert!(bursts(&imix, 10 * all + 1).unwrap_err().contains("one size"));
        let single = streams(&table("bench", "64", Some("var2"), None), 0).unwrap();
        assert_eq!(bursts(&single, 7).unwrap()[0]["mode"]["total_pkts"], 7);
    }

    #[test]
    fn fields_cover_what_varies() {
        let none = |_| false;
        assert_eq!(fields(&[29, 33], &none), [(29, 1), (33, 1)]);
        assert_eq!(fields(&[27, 28, 29], &none), [(26, 4)]);
        assert_eq!(fields(&[26, 27, 28, 29, 30, 31], &none), [(26, 4), (30, 2)]);
        assert_eq!(fields(&[27, 28, 29], &|at| at == 26), [(27, 2), (29, 1)]);
    }
}
