//! TRex's stateless profiles: the streams that one makes enter, as its library tells them in JSON; a profile for all
//! strategies leaves. A stream means the same here as to the server.

use serde_json::Value;
use traffic::{Endpoint, FrameTable, Profile};
use wire::MacAddress;

use crate::plan::{self, Part};
use crate::rpc::{Failure, Parameters};
use crate::stream::{Mode, Stream};

/// What rates in per cent refer to: only their proportions stay.
const LINE_RATE_BPS: f64 = 10e9;
/// Endpoints whose addresses are replaced.
const NOWHERE: Endpoint =
    Endpoint { source: MacAddress([2, 0, 0, 0, 0, 1]), destination: MacAddress([2, 0, 0, 0, 0, 2]) };

/// The profile `name`, whose text is `source`, of streams that leave by port 0, and of those by port 1 if both
/// directions are wanted. The proportions of rates stay, and both directions get the same load.
///
/// # Errors
/// When a stream is wrong, cannot be sent, or is no continuous one.
pub fn profile(
    name: &str,
    source: &str,
    forward: &[Value],
    reverse: Option<&[Value]>,
) -> Result<Profile, Failure> {
    let read = |streams: &[Value], port: usize| -> Result<Vec<Stream>, Failure> {
        let streams = streams.iter().enumerate().map(|(index, stream)| {
            one(stream, index as u32).map_err(|failure| {
                Failure::execute(format!("stream {} of port {port}: {}", index + 1, failure.reason))
            })
        });
        let streams = streams
            .collect::<Result<Vec<_>, _>>()?
            .into_iter()
            .filter(|stream| stream.enabled && stream.self_start);
        let streams: Vec<Stream> = streams.collect();
        if streams.is_empty() {
            return Err(Failure::execute(format!("the profile has no streams for port {port}")));
        }
        Ok(streams)
    };
    let forward = read(forward, 0)?;
    let mut notes = notes(&forward);
    let both = match reverse {
        Some(reverse) => {
            let reverse = read(reverse, 1)?;
            notes.extend(self::notes(&reverse));
            Some(table(&[part(0, &forward), part(1, &reverse)])?)
        }
        None => None,
    };
    let profile = Profile::from_tables(name, source, table(&[part(0, &forward)])?, both);
    let profile = profile.map_err(|error| Failure::execute(error.to_string()))?;
    notes.sort();
    notes.dedup();
    Ok(profile.with_description("a profile of TRex").with_notes(notes))
}

fn one(stream: &Value, id: u32) -> Result<Stream, Failure> {
    let stream = stream.as_object().ok_or_else(|| Failure::parameters("a stream must be an object"))?;
    if stream.get("next").is_some_and(|next| !next.is_null()) {
        return Err(Failure::execute(
            "chains of streams (next) are not supported here, since the load test says when frames leave: use linerate serve",
        ));
    }
    let stream = Stream::read(&Parameters(stream), id)?;
    if stream.next.is_some() || !stream.wait.is_zero() {
        return Err(Failure::execute(
            "chains (next) and delays (isg) are not supported here, since the load test says when frames leave: use \
             linerate serve",
        ));
    }
    match stream.mode {
        Mode::Continuous => Ok(stream),
        Mode::Bursts { .. } => Err(Failure::execute(
            "bursts are not supported here, since the load test says when frames leave: use linerate serve",
        )),
    }
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

fn table(parts: &[Part<'_>]) -> Result<FrameTable, Failure> {
    let (shape, _) = plan::schedule(parts)?;
    Ok(plan::table(parts, &shape)?.0)
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
        let mut burst = bench();
        burst["mode"] = json!({"type": "single_burst", "total_pkts": 5, "rate": {"type": "pps", "value": 1}});
        assert!(refusal(&[burst]).starts_with("stream 1 of port 0: bursts are not supported here"));
        let mut chain = bench();
        chain["next"] = json!("other");
        assert!(refusal(&[bench(), chain]).starts_with("stream 2 of port 0: chains"));
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
