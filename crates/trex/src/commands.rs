//! The methods of the protocol: each by its name, with what it needs, in the file of its subject.

mod ports;
mod service;
mod statistics;
mod streams;
mod system;
mod traffic;

use std::time::Duration;

use serde_json::{Value, json};

use crate::port::Port;
use crate::rpc::{Failure, Parameters};
use crate::sending::Tester;
use crate::server::Server;

/// What a call must carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Nothing.
    Nothing,
    /// The handle that the client got when it connected.
    Api,
    /// That, and a port.
    Port,
    /// That, and the handle of the port's owner.
    Owner,
}

/// What a method gets of a call.
#[derive(Clone, Copy)]
pub struct Call<'a> {
    /// What the client wrote.
    pub parameters: &'a Parameters<'a>,
    /// The port, where the method needs one; else 0.
    pub port: usize,
    /// The time since the server began.
    pub now: Duration,
}

/// What the client gets back.
pub type Reply = Result<Value, Failure>;

/// What answers a call.
pub type Method<T> = fn(&mut Server<T>, Call<'_>) -> Reply;

/// What the method of this name needs, and does.
pub fn find<T: Tester>(name: &str) -> Option<(Needs, Method<T>)> {
    all::<T>().into_iter().find(|(known, ..)| *known == name).map(|(_, needs, method)| (needs, method))
}

/// The names of all methods.
pub fn names<T: Tester>() -> Vec<&'static str> {
    let mut names: Vec<&str> = all::<T>().into_iter().map(|(name, ..)| name).collect();
    names.sort_unstable();
    names
}

fn all<T: Tester>() -> Vec<(&'static str, Needs, Method<T>)> {
    use Needs::{Api, Nothing, Owner, Port};
    vec![
        ("api_sync", Nothing, system::api_sync),
        ("api_sync_v2", Nothing, system::api_sync_v2),
        ("get_version", Nothing, system::get_version),
        ("ping", Nothing, system::ping),
        ("get_supported_cmds", Api, system::get_supported_cmds),
        ("get_system_info", Api, system::get_system_info),
        ("get_async_events", Api, system::get_async_events),
        ("publish_now", Api, system::publish_now),
        ("get_utilization", Api, system::get_utilization),
        ("get_tpg_status", Api, system::get_tpg_status),
        ("capture", Api, service::capture),
        ("stop_capture_port", Owner, service::stop_capture_port),
        ("push_pkts", Port, service::push_pkts),
        ("push_remote", Port, service::push_remote),
        ("get_port_status", Port, ports::get_port_status),
        ("get_owner", Port, ports::get_owner),
        ("acquire", Port, ports::acquire),
        ("release", Owner, ports::release),
        ("set_port_attr", Owner, ports::set_port_attr),
        ("service", Owner, ports::service),
        ("set_l2", Owner, ports::set_l2),
        ("set_l3", Owner, ports::set_l3),
        ("set_vlan", Owner, ports::set_vlan),
        ("conf_ipv6", Owner, ports::conf_ipv6),
        ("set_rx_feature", Owner, ports::set_rx_feature),
        ("get_rx_queue_pkts", Owner, ports::get_rx_queue_pkts),
        ("get_profile_list", Port, streams::get_profile_list),
        ("get_stream_list", Port, streams::get_stream_list),
        ("get_stream", Port, streams::get_stream),
        ("get_all_streams", Port, streams::get_all_streams),
        ("add_stream", Owner, streams::add_stream),
        ("remove_stream", Owner, streams::remove_stream),
        ("remove_all_streams", Owner, streams::remove_all_streams),
        ("validate", Owner, traffic::validate),
        ("start_traffic", Owner, traffic::start_traffic),
        ("stop_traffic", Owner, traffic::stop_traffic),
        ("pause_traffic", Owner, traffic::pause_traffic),
        ("resume_traffic", Owner, traffic::resume_traffic),
        ("update_traffic", Owner, traffic::update_traffic),
        ("pause_streams", Owner, traffic::not_by_stream),
        ("resume_streams", Owner, traffic::not_by_stream),
        ("update_streams", Owner, traffic::not_by_stream),
        ("remove_rx_filters", Owner, traffic::remove_rx_filters),
        ("get_global_stats", Api, statistics::get_global_stats),
        ("get_port_stats", Port, statistics::get_port_stats),
        ("get_port_xstats_names", Port, statistics::get_port_xstats_names),
        ("get_port_xstats_values", Port, statistics::get_port_xstats_values),
        ("get_active_pgids", Api, statistics::get_active_pgids),
        ("get_pgid_stats", Api, statistics::get_pgid_stats),
    ]
}

pub(crate) use traffic::factors;

/// The answer of methods that return nothing.
fn done() -> Reply {
    Ok(json!({}))
}

/// Accepts that a feature is left off; refuses to turn it on, for `reason`.
fn only_off(wanted: bool, reason: &str) -> Reply {
    if wanted { Err(Failure::execute(reason)) } else { done() }
}

/// Refuses a port that is sending or paused.
fn stopped(port: &Port) -> Result<(), Failure> {
    if matches!(port.state_name(), "IDLE" | "STREAMS") { Ok(()) } else { Err(wrong_state(port)) }
}

fn wrong_state(port: &Port) -> Failure {
    Failure::execute(format!("operation cannot be executed in current state: '{}'", port.state_name()))
}

/// Refuses profiles but the one that clients use where none is named.
fn default_profile(parameters: &Parameters<'_>) -> Result<(), Failure> {
    match parameters.or("profile_id", "_", |it| it.text("profile_id"))? {
        "_" | "*" => Ok(()),
        other => {
            let other: String = other.chars().take(64).collect();
            Err(Failure::execute(format!("profile '{other}': only the default profile '_' is supported")))
        }
    }
}
