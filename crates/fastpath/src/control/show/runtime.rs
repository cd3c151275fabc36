//! What each worker does, node by node: a snapshot of what it counted since a moment enters.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::table::{self, Column};
use crate::control::snapshot::Snapshot;
use crate::dataplane::node::Node;

/// What all workers do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Runtime {
    /// By worker.
    pub threads: Vec<Thread>,
}

/// What a worker does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Thread {
    /// Its number, as `show threads` has it.
    pub id: usize,
    /// Its name.
    pub name: String,
    /// Its core.
    pub core: usize,
    /// Seconds since this began to be counted.
    pub seconds: f64,
    /// Packets in a vector, over all nodes.
    pub vector_rate: f64,
    /// How often it asked its devices, a second.
    pub loops_per_second: f64,
    /// Packets a second.
    pub rates: Rates,
    /// What a packet costs; `None` without packets.
    pub clocks_per_packet: Option<Cost>,
    /// The nodes that had packets, in the order of the graph.
    pub nodes: Vec<Row>,
}

/// Packets a second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rates {
    /// They arrived.
    #[serde(rename = "in")]
    pub received: f64,
    /// They were sent.
    #[serde(rename = "out")]
    pub sent: f64,
    /// They were dropped.
    #[serde(rename = "drop")]
    pub dropped: f64,
    /// They went to the kernel.
    #[serde(rename = "punt")]
    pub punted: f64,
}

/// Clocks of the time stamp counter for a packet that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// All clocks: also those of asking devices, whether these had frames or not.
    pub with_polling: f64,
    /// Those of the nodes after device-input.
    pub without_polling: f64,
}

/// What a node does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The node.
    pub name: String,
    /// `polling`, or `active` where it works when it has packets.
    pub state: String,
    /// How often it worked; of device-input, how often it asked the devices.
    pub calls: u64,
    /// How many packets it had.
    pub vectors: u64,
    /// How often it waited: nodes here never do.
    pub suspends: u64,
    /// Clocks for a packet, or for a call where it had none.
    pub clocks: f64,
    /// Packets of a call.
    pub vectors_per_call: f64,
}

/// What a worker did in `seconds`, in which it `counted` so much.
#[must_use]
pub fn thread(id: usize, name: &str, core: usize, seconds: f64, counted: &Snapshot) -> Thread {
    let balance = counted.balance();
    let (calls, vectors) = counted
        .nodes
        .iter()
        .fold((0, 0), |(calls, vectors), node| (calls + node.calls, vectors + node.vectors));
    let rows = Node::ALL.iter().zip(&counted.nodes);
    Thread {
        id,
        name: name.to_owned(),
        core,
        seconds,
        vector_rate: ratio(vectors, calls as f64),
        loops_per_second: ratio(counted.loops, seconds),
        rates: Rates {
            received: ratio(balance.received, seconds),
            sent: ratio(balance.sent, seconds),
            dropped: ratio(balance.dropped, seconds),
            punted: ratio(balance.punted, seconds),
        },
        clocks_per_packet: cost(counted),
        nodes: rows.filter_map(|(node, _)| row(*node, counted)).collect(),
    }
}

fn row(node: Node, counted: &Snapshot) -> Option<Row> {
    let counts = counted.nodes.get(node as usize)?;
    let polls = node == Node::DeviceInput;
    let (calls, clocks) = if polls {
        (counted.loops, counts.clocks + counted.idle_clocks)
    } else {
        (counts.calls, counts.clocks)
    };
    (calls > 0).then(|| Row {
        name: node.name().to_owned(),
        state: if polls { "polling" } else { "active" }.to_owned(),
        calls,
        vectors: counts.vectors,
        suspends: 0,
        clocks: ratio(clocks, if counts.vectors > 0 { counts.vectors } else { calls } as f64),
        vectors_per_call: ratio(counts.vectors, calls as f64),
    })
}

fn cost(counted: &Snapshot) -> Option<Cost> {
    let input = counted.nodes.get(Node::DeviceInput as usize).filter(|input| input.vectors > 0)?;
    let all: u64 = counted.nodes.iter().map(|node| node.clocks).sum();
    Some(Cost {
        with_polling: ratio(all + counted.idle_clocks, input.vectors as f64),
        without_polling: ratio(all - input.clocks, input.vectors as f64),
    })
}

/// 0 where nothing was counted, or no time passed.
fn ratio(count: u64, of: f64) -> f64 {
    if of > 0.0 { count as f64 / of } else { 0.0 }
}

impl fmt::Display for Runtime {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        table::of_threads(formatter, &self.threads)
    }
}

impl fmt::Display for Thread {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        use Column::{Left, Right};
        let Rates { received, sent, dropped, punted } = self.rates;
        writeln!(formatter, "Thread {} {} (lcore {})", self.id, self.name, self.core)?;
        writeln!(
            formatter,
            "Time {:.1}, vector rate {:.2} loops/sec {:.2}",
            self.seconds, self.vector_rate, self.loops_per_second
        )?;
        writeln!(
            formatter,
            "  vector rates in {received:.4e}, out {sent:.4e}, drop {dropped:.4e}, punt {punted:.4e}"
        )?;
        if let Some(Cost { with_polling, without_polling }) = self.clocks_per_packet {
            writeln!(
                formatter,
                "  clocks/packet {with_polling:.1} with polling, {without_polling:.1} without"
            )?;
        }
        let columns = [
            Left("Name"),
            Left("State"),
            Right("Calls"),
            Right("Vectors"),
            Right("Suspends"),
            Right("Clocks"),
            Right("Vectors/Call"),
        ];
        let rows = self.nodes.iter().map(|row| {
            vec![
                row.name.clone(),
                row.state.clone(),
                row.calls.to_string(),
                row.vectors.to_string(),
                row.suspends.to_string(),
                format!("{:.2e}", row.clocks),
                format!("{:.2}", row.vectors_per_call),
            ]
        });
        table::write(formatter, &columns, rows)
    }
}
