//! Whose a port is, and how it is set.

use std::time::Duration;

use serde_json::{Value, json};

use crate::events::Kind;
use crate::port::Owner;
use crate::rpc::{Failure, Parameters};
use crate::sending::Tester;
use crate::server::Server;

/// The most characters of a user's name.
const LONGEST_USER: usize = 128;

pub fn get_port_status<T: Tester>(
    server: &mut Server<T>,
    _parameters: &Parameters<'_>,
    port: usize,
    _now: Duration,
) -> Result<Value, Failure> {
    Ok(server.ports[port].status())
}

pub fn get_owner<T: Tester>(
    server: &mut Server<T>,
    _parameters: &Parameters<'_>,
    port: usize,
    _now: Duration,
) -> Result<Value, Failure> {
    Ok(json!({"owner": server.ports[port].owner.as_ref().map_or("", |owner| owner.user.as_str())}))
}

pub fn acquire<T: Tester>(
    server: &mut Server<T>,
    parameters: &Parameters<'_>,
    port: usize,
    now: Duration,
) -> Result<Value, Failure> {
    let user = parameters.text("user")?;
    if user.is_empty() || user.chars().count() > LONGEST_USER {
        return Err(Failure::parameters(format!("field 'user' must have 1 to {LONGEST_USER} characters")));
    }
    let session = parameters.number("session_id", u64::from(u32::MAX))? as u32;
    let force = parameters.or("force", false, |it| it.flag("force"))?;
    if let Some(owner) = server.ports[port].owner.as_ref().filter(|_| !force) {
        return Err(Failure::execute(format!("port is already taken by '{}'", owner.user)));
    }
    let handler = server.handle_name();
    let data = json!({"port_id": port, "who": user, "session_id": session, "force": force});
    let user = user.to_owned();
    server.ports[port].owner = Some(Owner { user, session, handler: handler.clone(), heard: now });
    server.events.tell(Kind::Acquired, &data);
    Ok(json!(handler))
}

pub fn release<T: Tester>(
    server: &mut Server<T>,
    _parameters: &Parameters<'_>,
    port: usize,
    now: Duration,
) -> Result<Value, Failure> {
    server.give_up(port, now);
    Ok(json!({}))
}

/// Asks for nothing but what is so already; another wish is refused.
pub fn set_port_attr<T: Tester>(
    _server: &mut Server<T>,
    parameters: &Parameters<'_>,
    _port: usize,
    _now: Duration,
) -> Result<Value, Failure> {
    let attributes = parameters.object("attr")?;
    for (name, value) in attributes.0 {
        let is = |key: &str, wanted: bool| value.get(key).and_then(Value::as_bool) == Some(wanted);
        let as_it_is = match name.as_str() {
            "promiscuous" | "multicast" => is("enabled", false),
            "link_status" => is("up", true),
            "led_status" => is("on", false),
            "flow_ctrl_mode" => value.get("mode").and_then(Value::as_u64) == Some(0),
            "rx_filter_mode" => value.get("mode").and_then(Value::as_str) == Some("hw"),
            "vxlan_fs" => value.as_array().is_some_and(Vec::is_empty),
            _ => false,
        };
        if !as_it_is {
            let name: String = name.chars().take(64).collect();
            return Err(Failure::execute(format!("port attribute '{name}' cannot be changed to this here")));
        }
    }
    Ok(json!({}))
}

pub fn service<T: Tester>(
    server: &mut Server<T>,
    parameters: &Parameters<'_>,
    port: usize,
    _now: Duration,
) -> Result<Value, Failure> {
    let enabled = parameters.flag("enabled")?;
    let filtered = parameters.or("filtered", false, |it| it.flag("filtered"))?;
    server.ports[port].service = (enabled && !filtered, filtered);
    Ok(json!({}))
}

pub fn set_l2<T: Tester>(
    server: &mut Server<T>,
    parameters: &Parameters<'_>,
    port: usize,
    _now: Duration,
) -> Result<Value, Failure> {
    let address = parameters.text("dst_mac")?.parse();
    let address = address.map_err(|_| Failure::parameters("field 'dst_mac' must be a MAC address"))?;
    idle(server, port)?;
    set_destination(server, port, address);
    server.ports[port].ipv4 = json!({"state": "none"});
    Ok(json!({}))
}

pub fn set_l3<T: Tester>(
    server: &mut Server<T>,
    parameters: &Parameters<'_>,
    port: usize,
    _now: Duration,
) -> Result<Value, Failure> {
    let address = |key| {
        let address: Result<std::net::Ipv4Addr, _> = parameters.text(key)?.parse();
        address.map_err(|_| Failure::parameters(format!("field '{key}' must be an IPv4 address")))
    };
    let (source, destination) = (address("src_addr")?.to_string(), address("dst_addr")?.to_string());
    idle(server, port)?;
    server.ports[port].ipv4 = if parameters.optional("resolved_mac").is_some() {
        let mac = parameters.text("resolved_mac")?.parse();
        let mac = mac.map_err(|_| Failure::parameters("field 'resolved_mac' must be a MAC address"))?;
        set_destination(server, port, mac);
        json!({"state": "resolved", "src": source, "dst": destination})
    } else {
        json!({"state": "unresolved", "src": source, "dst": destination})
    };
    Ok(json!({}))
}

pub fn set_vlan<T: Tester>(
    _server: &mut Server<T>,
    parameters: &Parameters<'_>,
    _port: usize,
    _now: Duration,
) -> Result<Value, Failure> {
    if parameters.list("vlan")?.is_empty() {
        Ok(json!({}))
    } else {
        Err(Failure::execute("VLANs of ports are not supported: write the tags into the streams' packets"))
    }
}

pub fn conf_ipv6<T: Tester>(
    _server: &mut Server<T>,
    parameters: &Parameters<'_>,
    _port: usize,
    _now: Duration,
) -> Result<Value, Failure> {
    if parameters.flag("enabled")? {
        Err(Failure::execute("IPv6 addresses of ports are not supported: streams may be of IPv6"))
    } else {
        Ok(json!({}))
    }
}

pub fn set_rx_feature<T: Tester>(
    _server: &mut Server<T>,
    parameters: &Parameters<'_>,
    _port: usize,
    _now: Duration,
) -> Result<Value, Failure> {
    if parameters.flag("enabled")? {
        Err(Failure::execute("queues of received packets are not supported: use tcpdump on the port"))
    } else {
        Ok(json!({}))
    }
}

pub fn get_rx_queue_pkts<T: Tester>(
    _server: &mut Server<T>,
    _parameters: &Parameters<'_>,
    _port: usize,
    _now: Duration,
) -> Result<Value, Failure> {
    Ok(json!({"pkts": []}))
}

fn idle<T>(server: &Server<T>, port: usize) -> Result<(), Failure> {
    match server.ports[port].state_name() {
        "IDLE" | "STREAMS" => Ok(()),
        state => Err(Failure::execute(format!("operation cannot be executed in current state: '{state}'"))),
    }
}

fn set_destination<T>(server: &mut Server<T>, port: usize, address: wire::MacAddress) {
    server.ports[port].facts.destination = address;
}
