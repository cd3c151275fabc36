//! The dearest call of each node: a snapshot of what a worker counted since a moment enters.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::runtime::Thread;
use super::table::{self, Column};
use crate::control::snapshot::Snapshot;
use crate::dataplane::node::Node;

/// The dearest calls of all workers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RuntimeMax {
    /// By worker.
    pub threads: Vec<ThreadMax>,
}

/// The dearest calls of a worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ThreadMax {
    /// Its number, as `show threads` has it.
    pub id: usize,
    /// Its name.
    pub name: String,
    /// Its core.
    pub core: usize,
    /// Seconds since this began to be noted.
    pub seconds: f64,
    /// The nodes that had packets, in the order of the graph.
    pub nodes: Vec<Row>,
}

/// The dearest call of a node that had packets, and the average one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The node.
    pub name: String,
    /// Clocks of the time stamp counter for that call.
    pub max_node_clocks: u64,
    /// Packets that it had.
    pub vectors_at_max: u64,
    /// Clocks for each of them.
    pub max_clocks: f64,
    /// Clocks for a packet, of all calls: as `show runtime` has it.
    pub clocks: f64,
    /// Packets of a call, of all calls.
    pub vectors_per_call: f64,
}

/// The dearest calls in `counted`, of which `thread` is what `show runtime` says.
#[must_use]
pub fn thread(thread: Thread, counted: &Snapshot) -> ThreadMax {
    let row = |row: super::runtime::Row| {
        let node = Node::ALL.iter().find(|node| node.name() == row.name)?;
        let call = counted.dearest.get(*node as usize).filter(|call| call.vectors > 0)?;
        Some(Row {
            name: row.name,
            max_node_clocks: call.clocks,
            vectors_at_max: call.vectors,
            max_clocks: call.clocks as f64 / call.vectors as f64,
            clocks: row.clocks,
            vectors_per_call: row.vectors_per_call,
        })
    };
    let Thread { id, name, core, seconds, nodes, .. } = thread;
    ThreadMax { id, name, core, seconds, nodes: nodes.into_iter().filter_map(row).collect() }
}

impl fmt::Display for RuntimeMax {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        table::of_threads(formatter, &self.threads)
    }
}

impl fmt::Display for ThreadMax {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        use Column::{Left, Right};
        writeln!(formatter, "Thread {} {} (lcore {})", self.id, self.name, self.core)?;
        writeln!(formatter, "Time {:.1}", self.seconds)?;
        let columns = [
            Left("Name"),
            Right("Max Node Clocks"),
            Right("Vectors at Max"),
            Right("Max Clocks"),
            Right("Avg Clocks"),
            Right("Avg Vectors/Call"),
        ];
        let rows = self.nodes.iter().map(|row| {
            vec![
                row.name.clone(),
                row.max_node_clocks.to_string(),
                row.vectors_at_max.to_string(),
                format!("{:.2e}", row.max_clocks),
                format!("{:.2e}", row.clocks),
                format!("{:.2}", row.vectors_per_call),
            ]
        });
        table::write(formatter, &columns, rows)
    }
}
