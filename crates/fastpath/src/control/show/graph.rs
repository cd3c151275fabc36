//! The graph: its nodes, and where packets go from each.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::table::{self, Column};
use crate::dataplane::node::Node;

/// The graph.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Graph {
    /// In the order in which packets go through them.
    pub nodes: Vec<Row>,
}

/// A node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// Its name.
    pub name: String,
    /// The nodes that packets may go to from here.
    pub next: Vec<String>,
}

/// The graph of every router.
#[must_use]
pub fn graph() -> Graph {
    let names = |nodes: &[Node]| nodes.iter().map(|node| node.name().to_owned()).collect();
    let row = |node: &Node| Row { name: node.name().to_owned(), next: names(node.next()) };
    Graph { nodes: Node::ALL.iter().map(row).collect() }
}

impl fmt::Display for Graph {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = [Column::Left("Name"), Column::Left("Next")];
        table::write(
            formatter,
            &columns,
            self.nodes.iter().map(|row| vec![row.name.clone(), row.next.join(" ")]),
        )
    }
}
