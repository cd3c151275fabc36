//! Whose a port is, and how it is set.

use engine::Others;
use serde_json::{Value, json};

use super::{Call, Reply, done, only_off, stopped};
use crate::events::Kind;
use crate::port::Owner;
use crate::rpc::{Failure, Parameters};
use crate::sending::Tester;
use crate::server::Server;

/// The most characters of a user's name.
const LONGEST_USER: usize = 128;

pub fn get_port_status<T: Tester>(server: &mut Server<T>, Call { port, .. }: Call<'_>) -> Reply {
    Ok(server.ports[port].status())
}

pub fn get_owner<T: Tester>(server: &mut Server<T>, Call { port, .. }: Call<'_>) -> Reply {
    Ok(json!({"owner": server.ports[port].owner.as_ref().map_or("", |owner| owner.user.as_str())}))
}

pub fn acquire<T: Tester>(server: &mut Server<T>, Call { parameters, port, now }: Call<'_>) -> Reply {
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

pub fn release<T: Tester>(server: &mut Server<T>, Call { port, now, .. }: Call<'_>) -> Reply {
    server.give_up(port, now);
    done()
}

/// Which frames a port takes; of other attributes only what is so already.
pub fn set_port_attr<T: Tester>(server: &mut Server<T>, Call { parameters, port, .. }: Call<'_>) -> Reply {
    let attributes = parameters.object("attr")?;
    let mut others = Vec::new();
    for (name, value) in attributes.0 {
        let is = |key: &str, wanted: bool| value.get(key).and_then(Value::as_bool) == Some(wanted);
        let as_it_is = match name.as_str() {
            "promiscuous" | "multicast" => {
                let enabled = value.get("enabled").and_then(Value::as_bool);
                let which = if name == "promiscuous" { Others::All } else { Others::Groups };
                others.extend(enabled.map(|enabled| (which, enabled)));
                enabled.is_some()
            }
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
    for (which, enabled) in others {
        let kept = &mut server.ports[port].others[usize::from(which == Others::Groups)];
        match enabled {
            true if kept.is_some() => {}
            true => *kept = Some(server.tester.take_others(port, which).map_err(Failure::execute)?),
            false => *kept = None,
        }
    }
    done()
}

pub fn service<T: Tester>(server: &mut Server<T>, Call { parameters, port, .. }: Call<'_>) -> Reply {
    let enabled = parameters.flag("enabled")?;
    let filtered = parameters.or("filtered", false, |it| it.flag("filtered"))?;
    server.ports[port].service = (enabled && !filtered, filtered);
    if !enabled && !filtered {
        server.end_service(port);
    }
    done()
}

pub fn set_l2<T: Tester>(server: &mut Server<T>, Call { parameters, port, .. }: Call<'_>) -> Reply {
    let address = mac_address(parameters, "dst_mac")?;
    stopped(&server.ports[port])?;
    set_destination(server, port, address);
    server.ports[port].ipv4 = json!({"state": "none"});
    done()
}

pub fn set_l3<T: Tester>(server: &mut Server<T>, Call { parameters, port, .. }: Call<'_>) -> Reply {
    let address = |key| {
        let address: Result<std::net::Ipv4Addr, _> = parameters.text(key)?.parse();
        address.map_err(|_| Failure::parameters(format!("field '{key}' must be an IPv4 address")))
    };
    let (source, destination) = (address("src_addr")?.to_string(), address("dst_addr")?.to_string());
    stopped(&server.ports[port])?;
    server.ports[port].ipv4 = if parameters.optional("resolved_mac").is_some() {
        set_destination(server, port, mac_address(parameters, "resolved_mac")?);
        json!({"state": "resolved", "src": source, "dst": destination})
    } else {
        json!({"state": "unresolved", "src": source, "dst": destination})
    };
    done()
}

pub fn set_vlan<T: Tester>(_: &mut Server<T>, Call { parameters, .. }: Call<'_>) -> Reply {
    let wanted = !parameters.list("vlan")?.is_empty();
    only_off(wanted, "VLANs of ports are not supported: write the tags into the streams' packets")
}

pub fn conf_ipv6<T: Tester>(_: &mut Server<T>, Call { parameters, .. }: Call<'_>) -> Reply {
    let wanted = parameters.flag("enabled")?;
    only_off(wanted, "IPv6 addresses of ports are not supported: streams may be of IPv6")
}

pub fn set_rx_feature<T: Tester>(_: &mut Server<T>, Call { parameters, .. }: Call<'_>) -> Reply {
    let wanted = parameters.flag("enabled")?;
    only_off(wanted, "queues of received packets are not supported: use tcpdump on the port")
}

pub fn get_rx_queue_pkts<T: Tester>(_: &mut Server<T>, _: Call<'_>) -> Reply {
    Ok(json!({"pkts": []}))
}

fn mac_address(parameters: &Parameters<'_>, key: &str) -> Result<wire::MacAddress, Failure> {
    let address = parameters.text(key)?.parse();
    address.map_err(|_| Failure::parameters(format!("field '{key}' must be a MAC address")))
}

fn set_destination<T>(server: &mut Server<T>, port: usize, address: wire::MacAddress) {
    server.ports[port].facts.destination = address;
}
