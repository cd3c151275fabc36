//! What ports do in service mode: single packets are pushed and captured, beside the engine's.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use wire::size;

use super::{Call, Reply, done};
use crate::captures::{MOST_PACKETS, Wanted};
use crate::filter::Filter;
use crate::rpc::{Failure, Parameters};
use crate::sending::Tester;
use crate::server::Server;

/// The most packets of a call.
const MOST_PUSHED: usize = 1_000;
/// The most packets of one fetch.
const MOST_FETCHED: u64 = 1_000;
/// The longest pause between two pushed packets.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

pub fn capture<T: Tester>(server: &mut Server<T>, Call { parameters, now, .. }: Call<'_>) -> Reply {
    let id = || parameters.number("capture_id", u64::MAX);
    let snaplen = snaplen(parameters)?;
    match parameters.text("command")? {
        "status" => Ok(server.service.captures.status()),
        "start" => start(server, parameters, now),
        "stop" => {
            let count = server.service.captures.stop(id()?).map_err(Failure::execute)?;
            Ok(json!({"pkt_count": count}))
        }
        "fetch" => {
            let most = parameters.number("pkt_limit", u64::MAX)?.min(MOST_FETCHED) as usize;
            server.service.captures.fetch(id()?, most, snaplen).map_err(Failure::execute)
        }
        "remove" => {
            server.service.captures.remove(id()?).map_err(Failure::execute)?;
            done()
        }
        other => {
            let other: String = other.chars().take(32).collect();
            Err(Failure::parameters(format!("unknown capture command '{other}'")))
        }
    }
}

/// The most bytes of each packet.
fn snaplen(parameters: &Parameters<'_>) -> Result<usize, Failure> {
    Ok(match parameters.or("snaplen", 0, |it| it.number("snaplen", u64::from(u32::MAX)))? {
        0 => usize::from(size::MAX),
        length => length as usize,
    })
}

fn start<T: Tester>(server: &mut Server<T>, parameters: &Parameters<'_>, now: Duration) -> Reply {
    if !parameters.or("endpoint", "", |it| it.text("endpoint"))?.is_empty() {
        return Err(Failure::execute("captures to an endpoint are not supported: fetch them"));
    }
    let ports = |key: &str| -> Result<[bool; 2], Failure> {
        let mut ways = [false; 2];
        for port in parameters.or(key, [].as_slice(), |it| it.list(key))? {
            let way = port.as_u64().and_then(|port| ways.get_mut(usize::try_from(port).ok()?));
            *way.ok_or_else(|| Failure::parameters(format!("field '{key}' must have ports, 0 or 1")))? = true;
        }
        Ok(ways)
    };
    let (sent, received) = (ports("tx")?, ports("rx")?);
    let used = [0, 1].map(|port| sent[port] || received[port]);
    if used == [false; 2] {
        return Err(Failure::parameters("a capture needs a port, in 'tx' or 'rx'"));
    }
    for port in (0..2).filter(|port| used[*port]) {
        in_service(server, port)?;
    }
    let cyclic = match parameters.or("mode", "fixed", |it| it.text("mode"))? {
        "fixed" => false,
        "cyclic" => true,
        _ => return Err(Failure::parameters("field 'mode' must be fixed or cyclic")),
    };
    let text = parameters.or("filter", "", |it| it.text("filter"))?;
    let filter = (Filter::read(text).map_err(Failure::execute)?, text.to_owned());
    let limit = parameters.number("limit", MOST_PACKETS)?.max(1);
    for port in (0..2).filter(|port| received[*port]) {
        server.open_service(port).map_err(Failure::execute)?;
    }
    let wanted = Wanted { sent, received, limit, cyclic, length: snaplen(parameters)?, filter };
    let id = server.service.captures.start(wanted, now).map_err(Failure::execute)?;
    Ok(json!({"capture_id": id, "start_ts": now.as_secs_f64()}))
}

pub fn push_pkts<T: Tester>(server: &mut Server<T>, Call { parameters, port, now }: Call<'_>) -> Reply {
    in_service(server, port)?;
    let packets = parameters.list("pkts")?;
    if packets.len() > MOST_PUSHED {
        return Err(Failure::execute(format!("at most {MOST_PUSHED} packets are pushed at once")));
    }
    let pause = parameters.or("ipg_usec", 0.0, |it| it.float("ipg_usec"))?;
    let pause = Duration::try_from_secs_f64(pause / 1e6).ok().filter(|pause| *pause <= LONGEST_PAUSE);
    let pause = pause.ok_or_else(|| Failure::parameters("field 'ipg_usec' must be from 0 to 1,000,000"))?;
    let facts = &server.ports[port].facts;
    let read = |packet: &Value| -> Result<Vec<u8>, Failure> {
        let packet = packet.as_object().map(Parameters);
        let packet = packet.ok_or_else(|| Failure::parameters("a packet must be an object"))?;
        let bytes = STANDARD.decode(packet.text("binary")?);
        let mut bytes = bytes.map_err(|_| Failure::parameters("field 'binary' must be base64"))?;
        let (least, most) = (usize::from(size::MIN - size::FCS), usize::from(size::MAX - size::FCS));
        if bytes.len() < 14 || bytes.len() > most {
            return Err(Failure::execute(format!(
                "a packet of {} bytes: 14 to {most} can be pushed",
                bytes.len()
            )));
        }
        bytes.resize(bytes.len().max(least), 0);
        for (key, at, address) in
            [("use_port_dst_mac", 0, facts.destination), ("use_port_src_mac", 6, facts.source)]
        {
            if packet.or(key, false, |it| it.flag(key))?
                && let Some(place) = bytes.get_mut(at..at + 6)
            {
                place.copy_from_slice(&address.0);
            }
        }
        Ok(bytes)
    };
    let packets = packets.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    server.open_service(port).map_err(Failure::execute)?;
    let sent = packets.len();
    server.service.push(port, packets, pause, now).map_err(Failure::execute)?;
    server.serve_ports(now);
    Ok(json!({"sent": sent, "ts": now.as_secs_f64()}))
}

/// Refuses a port that nobody has put into service mode.
fn in_service<T>(server: &Server<T>, port: usize) -> Result<(), Failure> {
    let it = &server.ports[port];
    if it.owner.is_some() && (it.service.0 || it.service.1) {
        return Ok(());
    }
    Err(Failure::execute(format!("port {port} is not in service mode: set_service_mode")))
}

pub fn stop_capture_port<T: Tester>(_: &mut Server<T>, _: Call<'_>) -> Reply {
    // There is none.
    done()
}

pub fn push_remote<T: Tester>(_: &mut Server<T>, _: Call<'_>) -> Reply {
    Err(Failure::execute("pushing captures is not supported: use linerate send FILE.pcap"))
}
