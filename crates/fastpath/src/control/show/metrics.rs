//! Metrics in Prometheus's text format: what each worker counted since it started, and the interfaces' names, enter. Names
//! end in their base unit, sums in `_total`.

use std::fmt;

use serde::{Deserialize, Serialize};
use web::metrics::Text;

use crate::control::snapshot::{InterfaceCounts, NodeCounts, Snapshot};
use crate::dataplane::counters::Reason;
use crate::dataplane::forwarding::Forwarding;
use crate::dataplane::node::Node;

/// All metrics.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metrics {
    /// As Prometheus reads them.
    pub text: String,
}

impl fmt::Display for Metrics {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

/// The metrics of a router that runs since so many `seconds`, whose `workers`, by name, counted so much.
#[must_use]
pub fn metrics(forwarding: &Forwarding, workers: &[(String, Snapshot)], seconds: f64) -> Metrics {
    let mut text = Text::default();
    text.head("fastpath_info", "gauge", "The router, by its version; always 1.");
    text.line("fastpath_info", &[("version", env!("CARGO_PKG_VERSION"))], 1);
    text.head("fastpath_uptime_seconds", "gauge", "How long the router runs.");
    text.line("fastpath_uptime_seconds", &[], seconds);
    let all = workers.iter().fold(Snapshot::default(), |sum, (_, one)| one.and(&sum));
    interfaces(forwarding, &all, &mut text);
    let name = "fastpath_dropped_packets_total";
    text.head(name, "counter", "Packets that went no further, by node and reason.");
    for (reason, count) in Reason::ALL.iter().zip(&all.reasons).filter(|(_, count)| **count > 0) {
        text.line(name, &[("node", reason.node().name()), ("reason", reason.text())], count);
    }
    loops(workers, &mut text);
    nodes(workers, &mut text);
    Metrics { text: text.into() }
}

fn interfaces(forwarding: &Forwarding, all: &Snapshot, text: &mut Text) {
    text.head("fastpath_interface_up", "gauge", "Whether the interface takes and sends packets.");
    for interface in &forwarding.interfaces {
        text.line("fastpath_interface_up", &[("interface", interface.name.as_str())], u8::from(interface.up));
    }
    type Count = fn(&InterfaceCounts) -> u64;
    let counts: [(&str, &str, Count); 7] = [
        ("received_packets", "Packets that arrived.", |it| it.received),
        ("received_bytes", "Their bytes, without FCS.", |it| it.received_bytes),
        ("sent_packets", "Packets that were sent.", |it| it.sent),
        ("sent_bytes", "Their bytes, without FCS.", |it| it.sent_bytes),
        ("unsent_packets", "Packets that found the transmit ring full.", |it| it.no_room),
        ("dropped_packets", "Packets that had arrived there, and were dropped.", |it| it.dropped),
        ("punted_packets", "Packets that had arrived there, and went to the kernel.", |it| it.punted),
    ];
    for (what, help, count) in counts {
        let name = format!("fastpath_interface_{what}_total");
        text.head(&name, "counter", help);
        for (interface, counts) in forwarding.interfaces.iter().zip(&all.interfaces) {
            text.line(&name, &[("interface", interface.name.as_str())], count(counts));
        }
    }
}

fn loops(workers: &[(String, Snapshot)], text: &mut Text) {
    type Count = fn(&Snapshot) -> u64;
    let counts: [(&str, &str, Count); 3] = [
        ("fastpath_worker_loops_total", "How often a worker asked its devices for packets.", |it| it.loops),
        ("fastpath_worker_idle_loops_total", "How often none had any.", |it| it.idle_loops),
        ("fastpath_worker_idle_clocks_total", "Clocks of the time stamp counter for those.", |it| {
            it.idle_clocks
        }),
    ];
    for (name, help, count) in counts {
        text.head(name, "counter", help);
        for (worker, counted) in workers {
            text.line(name, &[("worker", worker.as_str())], count(counted));
        }
    }
}

fn nodes(workers: &[(String, Snapshot)], text: &mut Text) {
    type Count = fn(&NodeCounts) -> u64;
    let counts: [(&str, &str, Count); 3] = [
        ("fastpath_node_calls_total", "How often a node had packets.", |it| it.calls),
        ("fastpath_node_packets_total", "Packets that a node had.", |it| it.vectors),
        ("fastpath_node_clocks_total", "Clocks of the time stamp counter that a node took for them.", |it| {
            it.clocks
        }),
    ];
    for (name, help, count) in counts {
        text.head(name, "counter", help);
        for (worker, counted) in workers {
            for (node, counts) in Node::ALL.iter().zip(&counted.nodes).filter(|(_, counts)| counts.calls > 0)
            {
                text.line(name, &[("worker", worker.as_str()), ("node", node.name())], count(counts));
            }
        }
    }
}
