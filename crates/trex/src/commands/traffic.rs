//! Starting, changing and stopping what ports send.

use std::time::Duration;

use serde_json::json;

use super::{Call, Reply, default_profile, done, stopped, wrong_state};
use crate::events::Kind;
use crate::multiplier::Multiplier;
use crate::plan::{self, Schedule};
use crate::port::{Order, Port, State};
use crate::rpc::{Failure, Parameters};
use crate::sending::Tester;
use crate::server::Server;

/// By how much line rate may be passed by rounding.
const ROUNDING: f64 = 1.0001;

pub fn validate<T: Tester>(server: &mut Server<T>, Call { parameters, port, .. }: Call<'_>) -> Reply {
    default_profile(parameters)?;
    let it = &server.ports[port];
    let (_, schedule) = plan::schedule(&[it.part(port, [1.0; 2])])?;
    let [scaled, fixed] = it.rates();
    let rates = scaled.plus(fixed);
    let length = match schedule {
        Schedule::Steady(_) => None,
        Schedule::Changing(timeline) => plan::length(&timeline),
    };
    let expected = length.map_or(-1.0, |length| length.as_secs_f64() * 1e6);
    Ok(json!({
        "rate": {"max_bps_l2": rates.bps_l2, "max_bps_l1": rates.bps_l1, "max_pps": rates.pps,
            "max_line_util": rates.bps_l1 / it.facts.line_rate_bps * 100.0},
        "graph": {"expected_duration": expected},
    }))
}

pub fn start_traffic<T: Tester>(server: &mut Server<T>, Call { parameters, port, now }: Call<'_>) -> Reply {
    default_profile(parameters)?;
    if server.ports[port].state_name() != "STREAMS" {
        return Err(wrong_state(&server.ports[port]));
    }
    let factors = factors(&server.ports[port], parameters, None)?;
    let seconds = parameters.or("duration", -1.0, |it| it.float("duration"))?;
    let length = if seconds < 0.0 {
        None
    } else {
        let length = Duration::try_from_secs_f64(seconds).ok().filter(|length| !length.is_zero());
        Some(length.ok_or_else(|| Failure::parameters("field 'duration' must be more than 0, or -1"))?)
    };
    if parameters.or("start_at_ts", 0.0, |it| it.float("start_at_ts"))? != 0.0 {
        return Err(Failure::execute(
            "start_at_ts is not supported: ports started one after the other begin together",
        ));
    }
    let parts = server.parts(Some((port, factors)));
    let (_, schedule) = plan::schedule(&parts)?;
    let others_began =
        server.ports.iter().any(|other| matches!(other.state, State::Sending(Order { began: Some(_), .. })));
    if others_began && matches!(schedule, Schedule::Changing(_)) {
        return Err(Failure::execute(
            "streams that begin and end cannot join the other port's: start both ports together",
        ));
    }
    let [factor, fixed] = factors;
    server.ports[port].state = State::Sending(Order { factor, fixed, length, began: None });
    server.tell_port(port, Kind::Started);
    server.change(now);
    Ok(json!({"multiplier": factor, "ts": now.as_secs_f64()}))
}

pub fn stop_traffic<T: Tester>(server: &mut Server<T>, Call { parameters, port, now }: Call<'_>) -> Reply {
    default_profile(parameters)?;
    server.halt(port, now);
    done()
}

pub fn pause_traffic<T: Tester>(server: &mut Server<T>, Call { parameters, port, now }: Call<'_>) -> Reply {
    default_profile(parameters)?;
    let State::Sending(order) = server.ports[port].state else {
        return Err(wrong_state(&server.ports[port]));
    };
    continuous(server)?;
    server.ports[port].state = State::Paused(order);
    server.tell_port(port, Kind::Paused);
    if server.parts(None).is_empty() {
        server.apply(now);
    } else {
        server.change(now);
    }
    done()
}

pub fn resume_traffic<T: Tester>(server: &mut Server<T>, Call { parameters, port, now }: Call<'_>) -> Reply {
    default_profile(parameters)?;
    let State::Paused(order) = server.ports[port].state else {
        return Err(wrong_state(&server.ports[port]));
    };
    plan::schedule(&server.parts(Some((port, order.factors()))))?;
    server.ports[port].state = State::Sending(order);
    server.tell_port(port, Kind::Resumed);
    server.change(now);
    done()
}

pub fn update_traffic<T: Tester>(server: &mut Server<T>, Call { parameters, port, now }: Call<'_>) -> Reply {
    default_profile(parameters)?;
    let (State::Sending(order) | State::Paused(order)) = server.ports[port].state else {
        return Err(wrong_state(&server.ports[port]));
    };
    continuous(server)?;
    let factors = factors(&server.ports[port], parameters, Some(order.factors()))?;
    plan::schedule(&server.parts(Some((port, factors))))?;
    let [factor, fixed] = factors;
    let order = Order { factor, fixed, ..order };
    if matches!(server.ports[port].state, State::Sending(_)) {
        server.ports[port].state = State::Sending(order);
        server.change(now);
    } else {
        server.ports[port].state = State::Paused(order);
    }
    Ok(json!({"multiplier": factor}))
}

pub fn not_by_stream<T: Tester>(_: &mut Server<T>, _: Call<'_>) -> Reply {
    Err(Failure::execute(
        "streams of one port cannot be paused or changed apart: use pause, resume and update",
    ))
}

pub fn remove_rx_filters<T: Tester>(
    server: &mut Server<T>,
    Call { parameters, port, .. }: Call<'_>,
) -> Reply {
    default_profile(parameters)?;
    stopped(&server.ports[port])?;
    // There are none.
    done()
}

/// The factors that `mul` asks for, if line rate allows it or the caller insists.
pub(crate) fn factors(
    port: &Port,
    parameters: &Parameters<'_>,
    current: Option<[f64; 2]>,
) -> Result<[f64; 2], Failure> {
    let force = parameters.or("force", false, |it| it.flag("force"))?;
    let rates = port.rates();
    let line_rate = port.facts.line_rate_bps;
    let factors = Multiplier::read(parameters)?.factors(rates, line_rate, current)?;
    let load = rates[0].times(factors[0]).plus(rates[1].times(factors[1]));
    if !force && load.bps_l1 > line_rate * ROUNDING {
        return Err(Failure::execute(format!(
            "Expected L1 B/W: '{:.2} Gbps' exceeds port line rate: '{:.2} Gbps'",
            load.bps_l1 / 1e9,
            line_rate / 1e9
        )));
    }
    Ok(factors)
}

fn continuous<T: Tester>(server: &Server<T>) -> Result<(), Failure> {
    if server.in_bursts() {
        return Err(Failure::execute("bursts and chains cannot be paused or changed: stop them"));
    }
    Ok(())
}
