//! How a run's packets were spread over the workers of a device that is a graph of nodes: what its nodes did enters; each
//! worker's share of the packets, its clocks and its vectors leave, and a sentence where the shares are uneven.

use std::collections::BTreeMap;

use results::Record;
use results::record::{Node, NodeRuntime};
use wire::human::count;

use crate::nodes::{HANDOFF, is_input};

/// A share this many times as large as an even one is uneven.
const UNEVEN: f64 = 1.2;
/// With fewer packets than these, shares say nothing.
const FEW: u64 = 1000;

/// A thread of the device that forwards, or was to.
#[derive(Clone, Debug, PartialEq)]
pub struct Worker<'a> {
    /// As the device calls it.
    pub name: &'a str,
    /// Packets that it forwarded; those that it handed over to another worker are the other's.
    pub packets: u64,
    /// Those as a share of all workers', 0 to 1.
    pub share: f64,
    /// Clocks for each of them, without polling.
    pub clocks: f64,
    /// Packets in a vector, on average.
    pub vector: f64,
}

impl Worker<'_> {
    /// What it did, in words.
    #[must_use]
    pub fn text(&self) -> String {
        let Self { packets, share, clocks, vector, .. } = self;
        let share = share * 100.0;
        format!(
            "{share:.0} % of the packets ({}), {clocks:.1} clocks each, {vector:.1} in a vector",
            count(*packets)
        )
    }
}

/// The workers among the threads of `nodes`, by name; none where fewer than two could forward, or no packet came.
#[must_use]
pub fn workers(nodes: &[Node]) -> Vec<Worker<'_>> {
    let mut threads: BTreeMap<&str, Vec<(&str, NodeRuntime)>> = BTreeMap::new();
    for node in nodes {
        let did = node.meanwhile().map(|did| (node.name.as_str(), did));
        threads.entry(&node.thread).or_default().extend(did);
    }
    let mut workers: Vec<Worker> = threads.into_iter().map(|(name, did)| worker(name, &did)).collect();
    // A main thread beside workers forwards nothing.
    workers.retain(|worker| worker.packets > 0 || !worker.name.ends_with("main"));
    let all: u64 = workers.iter().map(|worker| worker.packets).sum();
    if all == 0 || workers.len() < 2 {
        return Vec::new();
    }
    workers.iter_mut().for_each(|worker| worker.share = worker.packets as f64 / all as f64);
    workers
}

/// A thread of which the nodes `did` so much. All that it forwarded passed one of its nodes.
fn worker<'a>(name: &'a str, did: &[(&str, NodeRuntime)]) -> Worker<'a> {
    let forwarding = did.iter().filter(|(node, _)| !is_input(node) && *node != HANDOFF);
    let most =
        forwarding.max_by_key(|(_, did)| did.vectors).map_or_else(NodeRuntime::default, |(_, did)| *did);
    let work = did.iter().filter(|(node, did)| !is_input(node) && did.vectors > 0);
    let clocks: f64 = work.map(|(_, did)| did.spent()).sum();
    Worker {
        name,
        packets: most.vectors,
        share: 0.0,
        clocks: clocks / most.vectors.max(1) as f64,
        vector: most.vectors_per_call(),
    }
}

/// That one worker of the device forwarded more than its share, and what spreads packets more evenly.
#[must_use]
pub fn uneven(record: &Record) -> Option<String> {
    let workers = workers(&record.nodes);
    let busiest = workers.iter().max_by(|one, other| one.share.total_cmp(&other.share))?;
    let all: u64 = workers.iter().map(|worker| worker.packets).sum();
    if all < FEW || busiest.share * (workers.len() as f64) < UNEVEN {
        return None;
    }
    let hands_over = record
        .nodes
        .iter()
        .any(|node| node.name == HANDOFF && node.meanwhile().is_some_and(|did| did.vectors > 0));
    let remedy = match (&record.dut.remote, hands_over) {
        (_, true) => "more flows spread them",
        (None, false) => "more flows or rss=on spread them",
        (Some(_), false) => "more flows, or more receive queues, spread them",
    };
    let (name, share) = (busiest.name, busiest.share * 100.0);
    Some(format!("{name} forwarded {share:.0} % of the packets: flows are spread unevenly; {remedy}"))
}

#[cfg(test)]
mod tests {
    use results::fixtures::Scenario;

    use super::*;

    /// A node that did nothing before: calls, packets and clocks a packet.
    fn node(thread: &str, name: &str, (calls, vectors, clocks): (u64, u64, f64)) -> Node {
        let after = NodeRuntime { calls, vectors, suspends: 0, clocks };
        Node { thread: thread.to_owned(), name: name.to_owned(), before: NodeRuntime::default(), after }
    }

    /// Worker 0 polls 10,000 packets, and hands `handed` of them over to worker 1.
    fn nodes(handed: u64) -> Vec<Node> {
        let kept = 10_000 - handed;
        vec![
            node("worker 0", "device-input", (5_000, 10_000, 90.0)),
            node("worker 0", "worker-handoff", (100, 10_000, 10.0)),
            node("worker 0", "ethernet-input", (100, kept, 4.0)),
            node("worker 0", "ip4-lookup", (100, kept, 6.0)),
            node("worker 1", "device-input", (9_000, handed, 70.0)),
            node("worker 1", "ethernet-input", (50, handed, 4.0)),
            node("worker 1", "ip4-lookup", (50, handed, 6.0)),
            node("main", "unix-epoll-input", (50, 0, 1e5)),
        ]
    }

    #[test]
    fn a_packet_is_that_worker_s_that_forwarded_it() {
        let nodes = nodes(5_000);
        let [zero, one] = workers(&nodes).try_into().unwrap();
        assert_eq!((zero.name, zero.packets, zero.share), ("worker 0", 5_000, 0.5));
        assert_eq!((one.name, one.packets, one.share), ("worker 1", 5_000, 0.5));
        // What it handed over is its own work.
        assert!(
            (zero.clocks - (20.0 + 10.0)).abs() < 1e-9 && (one.clocks - 10.0).abs() < 1e-9,
            "{zero:?} {one:?}"
        );
        assert_eq!((zero.vector, one.vector), (50.0, 100.0));
        assert_eq!(one.text(), "50 % of the packets (5,000), 10.0 clocks each, 100.0 in a vector");
    }

    /// What the author of "VPP on FreeBSD, part 2" recorded of three workers.
    #[test]
    fn of_three_workers_one_with_47_percent_is_named() {
        let mut record = Scenario::default().record();
        let recorded = [(6_809_002, 413_802_792), (912_224, 233_529_344), (912_226, 233_529_856)];
        for (at, (calls, vectors)) in recorded.into_iter().enumerate() {
            let thread = format!("vpp_wk_{at}");
            record.nodes.push(node(&thread, "dpdk-input", (7_128_012, vectors, 87.7)));
            record.nodes.push(node(&thread, "l2-input", (calls, vectors, 18.1)));
        }
        record.nodes.push(node("vpp_main", "unix-epoll-input", (100, 0, 1e5)));
        let said = uneven(&record).unwrap();
        assert!(said.starts_with("vpp_wk_0 forwarded 47 % of the packets: "), "{said}");
    }

    #[test]
    fn uneven_shares_are_named_with_what_spreads_them() {
        let mut record = Scenario::default().record();
        let mut said = |nodes: Vec<Node>| {
            record.nodes = nodes;
            uneven(&record)
        };
        assert_eq!(said(nodes(5_000)), None);
        assert_eq!(said(nodes(4_100)), None);
        let flows =
            "worker 0 forwarded 61 % of the packets: flows are spread unevenly; more flows spread them";
        assert_eq!(said(nodes(3_900)).as_deref(), Some(flows));
        let without: Vec<Node> = nodes(0).into_iter().filter(|node| node.name != HANDOFF).collect();
        let rss = "worker 0 forwarded 100 % of the packets: flows are spread unevenly; more flows or rss=on spread them";
        assert_eq!(said(without).as_deref(), Some(rss));
        let alone = nodes(0).into_iter().filter(|node| node.thread != "worker 1").collect();
        assert_eq!(said(alone), None, "one worker cannot be uneven");
        assert_eq!(
            said(vec![node("worker 0", "tx", (1, 9, 1.0)), node("worker 1", "tx", (0, 0, 0.0))]),
            None
        );
    }
}
