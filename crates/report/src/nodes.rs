//! What a packet cost each node of a device that is a graph of them, as VPP and fastpath are: records
//! enter; the nodes in the order in which packets pass them, and sums over them, leave. The runs of a bench
//! against one device stand beside each other, load by load.
//!
//! Clocks are those that the device counts, of the processor's time stamp counter: it counts at one rate,
//! whatever the rate of the core.

mod table;

use std::collections::BTreeMap;

use results::Record;
use results::record::{Node, NodeRuntime};

use crate::bench::{Bench, Cell, Repeat, Test};
use crate::metric::Metric;
pub use table::{CLOCKS, Column, Figure, Line, Table, caption, table};

/// Devices' own input nodes: their cost includes idle polling.
const INPUTS: [&str; 12] = [
    "device-input",
    "memif-input",
    "dpdk-input",
    "pg-input",
    "af-packet-input",
    "af-xdp-input",
    "af_xdp-input",
    "avf-input",
    "rdma-input",
    "virtio-input",
    "vhost-user-input",
    "netmap-input",
];
/// Gives packets to the other workers that their flows belong to.
pub(crate) const HANDOFF: &str = "worker-handoff";
/// The nodes of a way through the graph; one that continues a name (`ip4-input-no-checksum`) stands with it.
const WAY: [&str; 25] = [
    "ethernet-input",
    "l2-input",
    "l2-learn",
    "l2-fwd",
    "l2-flood",
    "l2-output",
    "arp-input",
    "ip4-input",
    "acl-plugin-in-ip4-fa",
    "ip4-lookup",
    "acl-plugin-out-ip4-fa",
    "ip4-load-balance",
    "ip4-local",
    "ip4-arp",
    "ip4-frag",
    "ip4-rewrite",
    "ip4-icmp-error",
    "ip6-input",
    "acl-plugin-in-ip6-fa",
    "ip6-lookup",
    "acl-plugin-out-ip6-fa",
    "ip6-load-balance",
    "ip6-local",
    "ip6-rewrite",
    "ip6-icmp-error",
];
/// Where packets end that are not sent.
const ENDS: [&str; 4] = ["punt", "error-punt", "error-drop", "drop"];
/// A thread with a smaller share of the packets of the busiest one does not forward, and a node with a
/// smaller share of all packets is not on their way.
const RARE: f64 = 0.01;

/// Which part of a packet's way a node is, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    /// Takes packets from a device.
    Input,
    /// Decides where they go; with its place in [`WAY`].
    Forwarding(usize),
    /// Gives them to a device.
    Tx,
    /// Does not send them.
    End,
}

impl Part {
    fn of(name: &str) -> Self {
        let continues = |part: &&str| name.strip_prefix(*part).is_some_and(|rest| rest.starts_with('-'));
        let place = WAY.iter().position(|part| *part == name).or_else(|| WAY.iter().position(continues));
        match name {
            _ if INPUTS.contains(&name) => Self::Input,
            _ if ENDS.contains(&name) => Self::End,
            _ if name == "tx" || name.ends_with("-tx") => Self::Tx,
            _ if place.is_none() && name.ends_with("-output") => Self::Forwarding(WAY.len() + 1),
            _ => Self::Forwarding(place.unwrap_or(WAY.len())),
        }
    }
}

/// Whether the node that is called `name` takes packets from a device.
pub(crate) fn is_input(name: &str) -> bool {
    Part::of(name) == Part::Input
}

/// What a row of `node` is called. A node that takes packets from a device is called at each look for some, by fastpath and
/// by VPP, and looks that found none are among its calls and clocks.
pub(crate) fn label(node: &Node) -> String {
    let polls = if is_input(&node.name) { " (with idle polling)" } else { "" };
    format!("{} {}{polls}", node.thread, node.name)
}

/// Where the node that is called `name` stands among others: the less, the earlier packets pass it.
fn place(name: &str) -> impl Ord {
    (Part::of(name), name)
}

/// Where `node` stands among those of its device: thread by thread, in the order in which packets pass them.
pub(crate) fn in_order(node: &Node) -> impl Ord {
    (node.thread.as_str(), place(&node.name))
}

/// What the nodes of a device's forwarding threads did in one run, all such threads together.
#[derive(Clone, Debug, PartialEq)]
pub struct Costs<'a> {
    /// In the order in which packets pass them.
    pub nodes: Vec<NodeCost<'a>>,
    /// Packets that came in.
    pub packets: u64,
    /// Clocks a packet from ethernet-input to output, without input and tx.
    pub forwarding: f64,
    /// Clocks a packet of all nodes but the input: the work, without idle polling.
    pub without_polling: f64,
    /// Clocks a packet of all nodes, idle polling included.
    pub with_polling: f64,
    /// Clocks a second that each thread spent in its nodes, where the time is known. Of threads that never
    /// sleep it is the rate of the time stamp counter.
    pub clock_hz: Option<f64>,
}

/// What one node did.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NodeCost<'a> {
    /// As the device calls it.
    pub name: &'a str,
    /// Packets that it was given.
    pub packets: u64,
    /// How often it was called.
    pub calls: u64,
    /// All its clocks.
    pub clocks: f64,
}

impl NodeCost<'_> {
    /// Clocks for each packet that it was given.
    #[must_use]
    pub fn per_packet(&self) -> f64 {
        self.clocks / self.packets.max(1) as f64
    }

    /// Packets a call.
    #[must_use]
    pub fn vectors_per_call(&self) -> f64 {
        self.packets as f64 / self.calls.max(1) as f64
    }
}

impl<'a> Costs<'a> {
    /// What `record` says; `None` if its device is no graph of nodes, no packet came, or most passed no node.
    #[must_use]
    pub fn of(record: &'a Record) -> Option<Self> {
        Self::of_nodes(&record.nodes, record.nodes_s, record.forwarded())
    }

    /// What `nodes` did in so many `seconds`, where these are known, of a device that `forwarded` so many frames
    /// meanwhile; `None` without packets, or if most passed no node.
    #[must_use]
    pub fn of_nodes(nodes: &'a [Node], seconds: Option<f64>, forwarded: u64) -> Option<Self> {
        if !Node::had_most(nodes, forwarded) {
            return None;
        }
        let did: Vec<(&str, &str, NodeRuntime)> = nodes
            .iter()
            .filter_map(|node| Some((node.thread.as_str(), node.name.as_str(), node.meanwhile()?)))
            .collect();
        let mut threads: BTreeMap<&str, u64> = BTreeMap::new();
        for (thread, _, did) in &did {
            let most = threads.entry(thread).or_default();
            *most = did.vectors.max(*most);
        }
        let busiest = threads.values().max().copied().filter(|most| *most > 0)?;
        threads.retain(|_, most| *most as f64 >= busiest as f64 * RARE);
        let mut nodes: Vec<NodeCost> = Vec::new();
        for (_, name, did) in did.into_iter().filter(|(thread, _, _)| threads.contains_key(thread)) {
            let at = nodes.iter().position(|node| node.name == name).unwrap_or_else(|| {
                nodes.push(NodeCost { name, packets: 0, calls: 0, clocks: 0.0 });
                nodes.len() - 1
            });
            let node = &mut nodes[at];
            node.packets += did.vectors;
            node.calls += did.calls;
            node.clocks += did.spent();
        }
        nodes.sort_by(|one, other| place(one.name).cmp(&place(other.name)));
        let seconds = seconds.filter(|seconds| *seconds > 0.0);
        Some(Self::summed(nodes, seconds.map(|seconds| seconds * threads.len() as f64)))
    }

    /// Sums over `nodes`, whose threads had `thread_seconds` together.
    fn summed(nodes: Vec<NodeCost<'a>>, thread_seconds: Option<f64>) -> Self {
        let packets_of = |is: fn(Part) -> bool| -> u64 {
            nodes.iter().filter(|node| is(Part::of(node.name))).map(|node| node.packets).sum()
        };
        let clocks_of = |is: fn(Part) -> bool| -> f64 {
            nodes.iter().filter(|node| is(Part::of(node.name))).map(|node| node.clocks).sum()
        };
        // A device whose input is not known by name has all its packets in one of its nodes at least.
        let most = nodes.iter().map(|node| node.packets).max().unwrap_or(0);
        // What was handed over came in twice, by two workers.
        let hands_over = nodes.iter().any(|node| node.name == HANDOFF && node.packets > 0);
        let came = match nodes.iter().find(|node| hands_over && node.name == "ethernet-input") {
            Some(node) => node.packets,
            None => packets_of(|part| part == Part::Input),
        };
        let packets = Some(came).filter(|packets| *packets > 0).unwrap_or(most);
        let each = |clocks: f64| clocks / packets.max(1) as f64;
        Self {
            packets,
            forwarding: each(clocks_of(|part| matches!(part, Part::Forwarding(_)))),
            without_polling: each(clocks_of(|part| part != Part::Input)),
            with_polling: each(clocks_of(|_| true)),
            clock_hz: thread_seconds.map(|seconds| clocks_of(|_| true) / seconds),
            nodes,
        }
    }

    /// The nodes that enough of the packets passed.
    pub fn on_the_way(&self) -> impl Iterator<Item = &NodeCost<'a>> {
        self.nodes.iter().filter(|node| node.packets as f64 >= self.packets as f64 * RARE)
    }

    /// The node that is called `name`, if enough of the packets passed it.
    #[must_use]
    pub fn node(&self, name: &str) -> Option<&NodeCost<'a>> {
        self.on_the_way().find(|node| node.name == name)
    }
}

/// One device of a bench at each of its loads.
pub struct Graph<'a> {
    /// As `--dut` takes it, like `vpp:mode=xconnect`.
    pub device: String,
    /// As the bench has them: device by device, test by test.
    pub loads: Vec<Load<'a>>,
}

/// A cell of a bench.
pub struct Load<'a> {
    /// What was sent.
    pub test: &'a Test<'a>,
    /// The device, as the bench calls it, and its runs.
    pub cell: &'a Cell<'a>,
    /// The run whose forwarding costs the median; of an even number, the lower of the two in the middle.
    pub run: &'a Repeat<'a>,
    /// What its nodes did.
    pub costs: Costs<'a>,
    /// The least and the most that forwarding cost in a run of the cell.
    pub range: (f64, f64),
    /// How many runs that are.
    pub runs: usize,
}

impl Load<'_> {
    /// What it is called beside the others of `graph`: the device, with its test if there are several.
    #[must_use]
    pub fn name(&self, graph: &Graph) -> String {
        let device = &self.cell.dut.name;
        let several = graph.loads.iter().any(|load| load.test.name() != self.test.name());
        if several { format!("{device}, {}", self.test.title()) } else { device.clone() }
    }

    /// The highest rate that came back, if the run has one: frames a second, all directions added up.
    #[must_use]
    pub fn forwarded_pps(&self) -> Option<f64> {
        Metric::MaxForwarded.read(self.run.record).ok().map(|reading| reading.value)
    }
}

/// The devices of `bench` that are graphs of nodes.
#[must_use]
pub fn graphs<'a>(bench: &'a Bench<'a>) -> Vec<Graph<'a>> {
    let mut graphs: Vec<Graph> = Vec::new();
    for at in 0..bench.description.duts.len() {
        let tests = bench.tests.iter().filter_map(|test| Some((test, test.cells.get(at)?)));
        for load in tests.filter_map(|(test, cell)| load(test, cell)) {
            let device = load.run.record.dut.label();
            match graphs.iter_mut().find(|graph| graph.device == device) {
                Some(graph) => graph.loads.push(load),
                None => graphs.push(Graph { device, loads: vec![load] }),
            }
        }
    }
    graphs
}

fn load<'a>(test: &'a Test<'a>, cell: &'a Cell<'a>) -> Option<Load<'a>> {
    let costs = |run: &'a Repeat<'a>| Some((Costs::of(run.record)?, run));
    let mut runs: Vec<(Costs, &Repeat)> = cell.repeats.iter().filter_map(costs).collect();
    runs.sort_by(|(one, _), (other, _)| one.forwarding.total_cmp(&other.forwarding));
    let count = runs.len();
    let range = (runs.first()?.0.forwarding, runs.last()?.0.forwarding);
    let (costs, run) = runs.swap_remove((count - 1) / 2);
    Some(Load { test, cell, run, costs, range, runs: count })
}

#[cfg(test)]
mod tests;
