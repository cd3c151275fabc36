//! What was sent, and what came back.

use serde_json::{Value, json};

use super::{Call, Reply};
use crate::rpc::Failure;
use crate::sending::Tester;
use crate::server::Server;
use crate::statistics::Counters;

/// Numbers of a field at most.
const MOST_PGIDS: usize = 1152;

pub fn get_global_stats<T: Tester>(server: &mut Server<T>, _: Call<'_>) -> Reply {
    let counters = counters(server)?;
    let sum = |of: fn(&crate::statistics::Rate) -> f64| server.rates.now.iter().map(of).sum::<f64>();
    let (tx_bps, rx_bps) = (sum(|rate| rate.tx_bps), sum(|rate| rate.rx_bps));
    Ok(json!({
        "m_tx_bps": tx_bps, "m_rx_bps": rx_bps,
        "m_tx_pps": sum(|rate| rate.tx_pps), "m_rx_pps": sum(|rate| rate.rx_pps),
        "m_rx_drop_bps": (tx_bps - rx_bps).max(0.0),
        "m_total_queue_full": counters.iter().map(|port| port.unsent).sum::<u64>(),
    }))
}

pub fn get_port_stats<T: Tester>(server: &mut Server<T>, Call { port, .. }: Call<'_>) -> Reply {
    let Counters { sent, sent_bytes, unsent, received, received_bytes } = counters(server)?[port];
    let rate = server.rates.now[port];
    Ok(json!({
        "opackets": sent, "obytes": sent_bytes, "ipackets": received, "ibytes": received_bytes,
        "oerrors": unsent, "ierrors": 0,
        "m_total_tx_bps": rate.tx_bps, "m_total_tx_pps": rate.tx_pps,
        "m_total_rx_bps": rate.rx_bps, "m_total_rx_pps": rate.rx_pps,
    }))
}

pub fn get_port_xstats_names<T: Tester>(_: &mut Server<T>, _: Call<'_>) -> Reply {
    Ok(json!({"xstats_names": []}))
}

pub fn get_port_xstats_values<T: Tester>(_: &mut Server<T>, _: Call<'_>) -> Reply {
    Ok(json!({"xstats_values": []}))
}

pub fn get_active_pgids<T: Tester>(server: &mut Server<T>, _: Call<'_>) -> Reply {
    let [flow_stats, latency] = server.sending.groups.ids();
    Ok(json!({"ids": {"flow_stats": flow_stats, "latency": latency}}))
}

pub fn get_pgid_stats<T: Tester>(server: &mut Server<T>, Call { parameters, .. }: Call<'_>) -> Reply {
    let asked = parameters.or("pgids", [].as_slice(), |it| it.list("pgids"))?;
    if asked.len() > MOST_PGIDS {
        return Err(Failure::parameters(format!("field 'pgids' must have at most {MOST_PGIDS} numbers")));
    }
    let number = |it: &Value| it.as_u64().and_then(|id| u32::try_from(id).ok());
    let ids: Option<Vec<u32>> = asked.iter().map(number).collect();
    let ids = ids.ok_or_else(|| Failure::parameters("field 'pgids' must have numbers"))?;
    let totals = server.sending.group_totals().map_err(Failure::execute)?;
    let described = server.sending.groups.describe(&ids, &totals);
    described.map_err(|id| Failure::execute(format!("no stream has pg_id {id}")))
}

fn counters<T: Tester>(server: &mut Server<T>) -> Result<[Counters; 2], Failure> {
    server.sending.counters().map_err(Failure::execute)
}
