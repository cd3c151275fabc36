//! The streams of a port.

use serde_json::{Map, Value, json};

use super::{Call, Reply, default_profile, done, stopped};
use crate::port::Port;
use crate::rpc::{Failure, Parameters};
use crate::sending::Tester;
use crate::server::Server;
use crate::stream::Stream;

/// The most streams of a port.
const MOST_STREAMS: usize = 256;
/// The most bytes of a stream's JSON, which clients get back.
const LONGEST_STREAM: usize = 64 << 10;

pub fn get_profile_list<T: Tester>(_: &mut Server<T>, _: Call<'_>) -> Reply {
    Ok(json!(["_"]))
}

pub fn get_stream_list<T: Tester>(server: &mut Server<T>, Call { port, .. }: Call<'_>) -> Reply {
    Ok(json!(server.ports[port].streams.keys().collect::<Vec<_>>()))
}

pub fn get_stream<T: Tester>(server: &mut Server<T>, Call { parameters, port, .. }: Call<'_>) -> Reply {
    let id = stream_id(parameters)?;
    let stream = server.ports[port].streams.get(&id).ok_or_else(|| missing(id))?;
    Ok(json!({"stream": stream.1}))
}

pub fn get_all_streams<T: Tester>(server: &mut Server<T>, Call { port, .. }: Call<'_>) -> Reply {
    let streams = server.ports[port].streams.iter().map(|(id, (_, json))| (id.to_string(), json.clone()));
    Ok(json!({"profiles": {"_": streams.collect::<Map<_, _>>()}}))
}

pub fn add_stream<T: Tester>(server: &mut Server<T>, call: Call<'_>) -> Reply {
    changeable(server, call)?;
    let id = stream_id(call.parameters)?;
    let described = call.parameters.value("stream")?;
    let stream = Stream::read(&call.parameters.object("stream")?, id)?;
    if described.to_string().len() > LONGEST_STREAM {
        return Err(Failure::execute(format!("stream {id} has more than {LONGEST_STREAM} bytes of JSON")));
    }
    if let Some(group) = stream.group {
        let others = server.ports.iter().flat_map(|port| port.streams.values());
        let differs = |(other, _): &(Stream, Value)| {
            other.group.is_some_and(|other| other.id == group.id && other.latency != group.latency)
        };
        if others.into_iter().any(differs) {
            return Err(Failure::execute(format!(
                "pg_id {} cannot have streams with latency and streams without",
                group.id
            )));
        }
    }
    let it = &mut server.ports[call.port];
    if it.streams.contains_key(&id) {
        return Err(Failure::execute(format!("stream {id} already exists")));
    }
    if it.streams.len() >= MOST_STREAMS {
        return Err(Failure::execute(format!("a port has at most {MOST_STREAMS} streams")));
    }
    it.streams.insert(id, (stream, described.clone()));
    it.newest = it.newest.max(id);
    it.revision += 1;
    server.streams_changed();
    done()
}

pub fn remove_stream<T: Tester>(server: &mut Server<T>, call: Call<'_>) -> Reply {
    let it = changeable(server, call)?;
    let id = stream_id(call.parameters)?;
    it.streams.remove(&id).ok_or_else(|| missing(id))?;
    it.revision += 1;
    server.streams_changed();
    done()
}

pub fn remove_all_streams<T: Tester>(server: &mut Server<T>, call: Call<'_>) -> Reply {
    let it = changeable(server, call)?;
    it.streams.clear();
    it.newest = 0;
    it.revision += 1;
    server.streams_changed();
    done()
}

/// The port of the call, if its streams may change now.
fn changeable<'s, T>(server: &'s mut Server<T>, call: Call<'_>) -> Result<&'s mut Port, Failure> {
    default_profile(call.parameters)?;
    let port = &mut server.ports[call.port];
    stopped(port)?;
    Ok(port)
}

fn stream_id(parameters: &Parameters<'_>) -> Result<u32, Failure> {
    Ok(parameters.number("stream_id", u64::from(u32::MAX))? as u32)
}

fn missing(id: u32) -> Failure {
    Failure::execute(format!("stream {id} does not exist"))
}
