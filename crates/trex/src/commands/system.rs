//! The handshake, and what is said of the server as a whole.

use serde_json::json;

use super::{Call, Reply, done};
use crate::rpc::{Failure, Parameters};
use crate::sending::Tester;
use crate::server::Server;

/// The version of the protocol.
const API: (u64, u64) = (5, 1);

fn synced<T>(server: &Server<T>, name: &str, major: u64, minor: u64) -> Reply {
    if name != "STL" {
        let name: String = name.chars().take(32).collect();
        return Err(Failure::execute(format!(
            "this server is stateless (STL), the client asks for '{name}'"
        )));
    }
    if major != API.0 || minor > API.1 {
        return Err(Failure::execute(format!(
            "API version mismatch: server is {}.{}, client is {major}.{minor}",
            API.0, API.1
        )));
    }
    Ok(json!({"api_h": server.api}))
}

pub fn api_sync_v2<T: Tester>(server: &mut Server<T>, Call { parameters, .. }: Call<'_>) -> Reply {
    let (major, minor) = (parameters.number("major", u64::MAX)?, parameters.number("minor", u64::MAX)?);
    synced(server, parameters.text("name")?, major, minor)
}

pub fn api_sync<T: Tester>(server: &mut Server<T>, Call { parameters, .. }: Call<'_>) -> Reply {
    let versions = parameters.list("api_vers")?;
    let handles = versions.iter().take(8).map(|version| {
        let version = version.as_object().map(Parameters);
        let version = version.ok_or_else(|| Failure::parameters("a version must be an object"))?;
        let (major, minor) = (version.number("major", u64::MAX)?, version.number("minor", u64::MAX)?);
        // What was one API of several, called core.
        synced(server, "STL", major, minor)?;
        Ok(json!({"type": version.text("type")?, "api_h": server.api}))
    });
    Ok(json!({"api_vers": handles.collect::<Result<Vec<_>, Failure>>()?}))
}

pub fn get_version<T: Tester>(server: &mut Server<T>, _: Call<'_>) -> Reply {
    let version = &server.version.version;
    Ok(json!({"version": version, "build_date": "", "build_time": "", "built_by": "linerate", "mode": "STL"}))
}

pub fn ping<T: Tester>(_: &mut Server<T>, Call { now, .. }: Call<'_>) -> Reply {
    Ok(json!({"ts": now.as_secs_f64()}))
}

pub fn get_supported_cmds<T: Tester>(_: &mut Server<T>, _: Call<'_>) -> Reply {
    Ok(json!(super::names::<T>()))
}

pub fn get_system_info<T: Tester>(server: &mut Server<T>, Call { now, .. }: Call<'_>) -> Reply {
    let ports = server.ports.iter().enumerate().map(|(index, port)| {
        let facts = &port.facts;
        json!({
            "index": index, "driver": facts.driver, "description": facts.name, "pci_addr": "N/A", "numa": -1,
            "hw_mac": facts.source.to_string(), "stack": "none", "supp_speeds": [], "cores": [],
            "is_prom_supported": server.tester.can_take_others(), "is_link_supported": false, "is_virtual": true,
            "is_fc_supported": false, "is_led_supported": false, "is_vxlan_supported": false,
            "is_ieee1588_supported": false, "rx": {"caps": [], "counters": 0},
        })
    });
    Ok(json!({
        "ports": ports.collect::<Vec<_>>(), "hostname": server.version.hostname,
        "uptime": format!("{} seconds", now.as_secs()), "port_count": server.ports.len(),
        "dp_core_count": 1, "dp_core_count_per_port": 1, "core_type": "Linerate",
    }))
}

pub fn get_async_events<T: Tester>(server: &mut Server<T>, Call { parameters, now, .. }: Call<'_>) -> Reply {
    let session = parameters.number("session_id", u64::from(u32::MAX))? as u32;
    for port in &mut server.ports {
        if let Some(owner) = port.owner.as_mut().filter(|owner| owner.session == session) {
            owner.heard = now;
        }
    }
    Ok(json!({"data": server.events.take(session, now)}))
}

pub fn publish_now<T: Tester>(server: &mut Server<T>, _: Call<'_>) -> Reply {
    server.events.wake();
    done()
}

pub fn get_utilization<T: Tester>(_: &mut Server<T>, _: Call<'_>) -> Reply {
    Ok(json!({"cpu": [], "mbuf_stats": {}}))
}

pub fn get_tpg_status<T: Tester>(_: &mut Server<T>, _: Call<'_>) -> Reply {
    Ok(json!({"enabled": false}))
}
