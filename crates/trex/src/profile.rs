//! TRex's stateless profiles: the streams that one makes enter, as its library tells them in JSON; a profile for all
//! strategies leaves. A stream means the same here as to the server, but that bursts and chains are repeated.

use std::time::Duration;

use serde_json::Value;
use traffic::{Endpoint, FrameTable, Profile};
use wire::MacAddress;

use traffic::timeline::Mode;

use crate::plan::{self, Part};
use crate::repeated;
use crate::rpc::{Failure, Parameters};
use crate::stream::Stream;

/// What rates in per cent refer to: only their proportions stay.
const LINE_RATE_BPS: f64 = 10e9;
/// Endpoints whose addresses are replaced.
const NOWHERE: Endpoint =
    Endpoint { source: MacAddress([2, 0, 0, 0, 0, 1]), destination: MacAddress([2, 0, 0, 0, 0, 2]) };

/// The profile `name`, whose text is `source`, of streams that leave by port 0, and of those by port 1 if both
/// directions are wanted. The proportions of rates stay, and both directions get the same load.
///
/// # Errors
/// When a stream is wrong or cannot be sent, or when bursts and chains come to an end.
pub fn profile(
    name: &str,
    source: &str,
    forward: &[Value],
    reverse: Option<&[Value]>,
) -> Result<Profile, Failure> {
    let forward = read(forward, 0)?;
    let reverse = reverse.map(|streams| read(streams, 1)).transpose()?;
    let mut notes = notes(&forward);
    let (one_way, note) = table(&[part(0, &forward)])?;
    notes.extend(note);
    let mut both = None;
    if let Some(reverse) = &reverse {
        notes.extend(self::notes(reverse));
        let (table, note) = table(&[part(0, &forward), part(1, reverse)])?;
        notes.extend(note);
        both = Some(table);
    }
    let profile = Profile::from_tables(name, source, one_way, both);
    let profile = profile.map_err(|error| Failure::execute(error.to_string()))?;
    notes.sort();
    notes.dedup();
    Ok(profile.with_description("a profile of TRex").with_notes(notes))
}

/// The streams of a port that are ever sent.
fn read(streams: &[Value], port: usize) -> Result<Vec<Stream>, Failure> {
    let place = |index: usize, failure: Failure| {
        Failure::execute(format!("stream {} of port {port}: {}", index + 1, failure.reason))
    };
    let read = streams.iter().enumerate().map(|(index, stream)| {
        let stream = with_next(stream, streams).and_then(|stream| one(&stream, index as u32));
        stream.map_err(|failure| place(index, failure))
    });
    let read = read.collect::<Result<Vec<Stream>, Failure>>()?;
    let followed =
        |id: u32| read.iter().any(|stream| stream.enabled && stream.next.is_some_and(|(next, _)| next == id));
    let sent = read.iter().filter(|stream| stream.enabled && (stream.self_start || followed(stream.id)));
    let mut sent: Vec<Stream> = sent.cloned().collect();
    if sent.iter().all(|stream| stream.mode == Mode::Continuous) {
        // They all send, but for a moment at the beginning.
        sent.iter_mut().for_each(|stream| stream.wait = Duration::ZERO);
    }
    if sent.is_empty() {
        return Err(Failure::execute(format!("the profile has no streams for port {port}")));
    }
    Ok(sent)
}

/// A stream whose next one is named by its place, as a client does that sends them to a server.
fn with_next(stream: &Value, all: &[Value]) -> Result<Value, Failure> {
    let Some(next) = stream.get("next").filter(|next| !next.is_null()) else { return Ok(stream.clone()) };
    let place = all.iter().position(|other| other.get("name") == Some(next));
    let place = place.ok_or_else(|| {
        let next: String = next.to_string().chars().take(64).collect();
        Failure::execute(format!("its next stream {next} does not exist"))
    })?;
    let mut stream = stream.clone();
    stream["next_stream_id"] = place.into();
    Ok(stream)
}

fn one(stream: &Value, id: u32) -> Result<Stream, Failure> {
    let stream = stream.as_object().ok_or_else(|| Failure::parameters("a stream must be an object"))?;
    Stream::read(&Parameters(stream), id)
}

fn notes(streams: &[Stream]) -> Vec<String> {
    let mut notes = Vec::new();
    if streams.iter().any(|stream| stream.keeps != [false; 2]) {
        notes.push("the profile's own MAC addresses are replaced by those of the ports".to_owned());
    }
    if streams.iter().any(|stream| stream.group.is_some()) {
        notes.push("pg_id is left out: the report has loss and latency of all frames".to_owned());
    }
    notes
}

/// The part of a port: its streams add up to one frame a second, so that both ports send alike.
fn part(port: usize, streams: &[Stream]) -> Part<'_> {
    let pps: f64 = streams.iter().map(|stream| stream.rates(LINE_RATE_BPS).pps).sum();
    Part {
        port,
        factors: [1e6 / pps; 2],
        line_rate_bps: LINE_RATE_BPS,
        endpoint: NOWHERE,
        revision: 0,
        streams: streams.iter().collect(),
    }
}

/// The table of `parts`, and a note if their streams have bursts.
fn table(parts: &[Part<'_>]) -> Result<(FrameTable, Option<String>), Failure> {
    let plain =
        |stream: &&Stream| stream.mode == Mode::Continuous && stream.wait.is_zero() && stream.self_start;
    if !parts.iter().flat_map(|part| &part.streams).all(plain) {
        return repeated::table(parts).map(|(table, note)| (table, Some(note)));
    }
    let (shape, _) = plan::schedule(parts)?;
    Ok((plan::table(parts, &shape)?.0, None))
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use traffic::{Directions, Endpoints};

    use super::*;
    use crate::stream::tests::bench;

    fn with_rate(pps: f64) -> Value {
        let mut stream = bench();
        stream["mode"]["rate"]["value"] = json!(pps);
        stream
    }

    #[test]
    fn streams_of_both_ports_make_a_profile_that_loads_both_alike() {
        let profile =
            profile("x", "text", &[with_rate(3.0), with_rate(1.0)], Some(&[with_rate(700.0)])).unwrap();
        assert_eq!((profile.name(), profile.source(), profile.largest_size()), ("x", Some("text"), 64));
        let endpoint = |last| Endpoint {
            source: MacAddress([2, 9, 0, 0, 0, last]),
            destination: MacAddress([2, 9, 0, 0, 1, last]),
        };
        let endpoints = Endpoints([endpoint(0), endpoint(1)]);
        let forward = profile.table(&endpoints, Directions::Forward);
        assert_eq!((forward.directions(), forward.rows.len()), (1, 4 * 251));
        assert_eq!(forward.frame(0)[..12], [2, 9, 0, 0, 1, 0, 2, 9, 0, 0, 0, 0]);
        assert_eq!(forward.rows.iter().filter(|row| row.stream == 1).count(), 251);
        let both = profile.table(&endpoints, Directions::Both);
        let of = |direction| both.rows.iter().filter(move |row| row.direction == direction);
        assert_eq!(of(0).count(), of(1).count());
        let reverse = both.rows.iter().position(|row| row.direction == 1).unwrap();
        assert_eq!(both.frame(reverse)[..12], [2, 9, 0, 0, 1, 1, 2, 9, 0, 0, 0, 1]);
    }

    #[test]
    fn what_no_load_test_can_send_is_refused_by_name() {
        let refusal = |streams: &[Value]| profile("x", "", streams, None).unwrap_err().reason;
        assert!(refusal(&[]).contains("no streams for port 0"));
        assert!(refusal(&[json!(7)]).contains("must be an object"));
        assert!(refusal(&[single(5)]).contains("the bursts end after 5 frames"));
        let mut chain = single(5);
        chain["next"] = json!("other");
        assert!(refusal(&[bench(), chain]).starts_with("stream 2 of port 0: its next stream \"other\""));
        let both = profile("x", "", &[multi(5)], Some(&[multi(6)])).unwrap_err().reason;
        assert!(both.contains("port 0 sends 5 frames in a period of its bursts, and port 1 6"), "{both}");
    }

    fn single(frames: u64) -> Value {
        let mut burst = bench();
        burst["mode"] =
            json!({"type": "single_burst", "total_pkts": frames, "rate": {"type": "pps", "value": 1e6}});
        burst
    }

    fn multi(frames: u64) -> Value {
        let mut burst = bench();
        burst["mode"] = json!({"type": "multi_burst", "pkts_per_burst": frames, "count": 3, "ibg": 1e3 - frames as f64,
            "rate": {"type": "pps", "value": 1e6}});
        burst
    }

    #[test]
    fn bursts_and_chains_are_repeated_with_their_times() {
        let of = |profile: &Profile, directions| {
            let endpoint = Endpoint { source: MacAddress([2; 6]), destination: MacAddress([4; 6]) };
            profile.table(&Endpoints([endpoint; 2]), directions)
        };
        let profile_of = |streams: &[Value]| profile("x", "text", streams, Some(streams)).unwrap();
        let bursts = profile_of(&[multi(10)]);
        let table = of(&bursts, Directions::Forward);
        // 251 source addresses and bursts of 10: all repeats after 2,510 frames.
        assert_eq!((table.rows.len(), table.times.len()), (2510, 2510));
        let distances = table.distances(1);
        // 1 us of a mean of 100 us, and the rest of a millisecond.
        assert!(distances[..9].iter().all(|distance| distance.abs_diff(655) <= 1), "{:?}", &distances[..10]);
        assert_eq!(distances[9], distances[19]);
        assert!(
            bursts.notes().iter().any(|note| note.contains("up to 100.0 times as fast")),
            "{:?}",
            bursts.notes()
        );
        let both = of(&bursts, Directions::Both);
        assert_eq!(both.rows.iter().filter(|row| row.direction == 1).count() * 2, both.rows.len());
        // What streams without end wait at the beginning is left out.
        let mut late = bench();
        late["isg"] = json!(5e6);
        assert!(of(&profile_of(&[late.clone(), bench()]), Directions::Forward).times.is_empty());
        let beside = of(&profile_of(&[late, multi(10)]), Directions::Forward);
        let steady = beside.rows.iter().filter(|row| row.stream == 0).count();
        assert_eq!((steady > 0, steady * 10_001), (true, beside.rows.len()));
        // A chain that leads back to its first stream.
        let (mut first, mut second) = (single(3), single(5));
        (first["name"], first["next"], first["isg"]) = (json!("a"), json!("b"), json!(2e3));
        (second["name"], second["next"], second["self_start"]) = (json!("b"), json!("a"), json!(false));
        let table = of(&profile_of(&[first, second]), Directions::Forward);
        let streams: Vec<u8> = table.rows.iter().take(9).map(|row| row.stream).collect();
        assert_eq!(streams, [0, 0, 0, 1, 1, 1, 1, 1, 0]);
    }

    #[test]
    fn what_is_left_out_is_noted() {
        let mut stream = bench();
        stream["flags"] = json!(3);
        stream["flow_stats"] = json!({"enabled": true, "stream_id": 7, "rule_type": "stats"});
        let profile = profile("x", "", &[stream.clone(), stream], None).unwrap();
        assert_eq!(profile.notes().len(), 2, "{:?}", profile.notes());
    }
}
