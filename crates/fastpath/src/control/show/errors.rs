//! Why packets went no further: a snapshot of what all workers counted enters.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::table::{self, Column};
use crate::control::snapshot::Snapshot;
use crate::dataplane::counters::{Reason, Severity};

/// The reasons that occurred.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Errors {
    /// In the order of the nodes.
    pub errors: Vec<Row>,
}

/// A reason that occurred.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// How often.
    pub count: u64,
    /// The node that found it.
    pub node: String,
    /// In words.
    pub reason: String,
    /// `error`, or `info` where nothing is wrong.
    pub severity: String,
}

/// Of all reasons those that were counted.
#[must_use]
pub fn errors(counted: &Snapshot) -> Errors {
    let found = Reason::ALL.iter().zip(&counted.reasons).filter(|(_, count)| **count > 0);
    let row = |(reason, count): (&Reason, &u64)| Row {
        count: *count,
        node: reason.node().name().to_owned(),
        reason: reason.text().to_owned(),
        severity: match reason.severity() {
            Severity::Information => "info",
            Severity::Error => "error",
        }
        .to_owned(),
    };
    Errors { errors: found.map(row).collect() }
}

impl fmt::Display for Errors {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        use Column::{Left, Right};
        let columns = [Right("Count"), Left("Node"), Left("Reason"), Left("Severity")];
        let rows = self.errors.iter().map(|row| {
            vec![row.count.to_string(), row.node.clone(), row.reason.clone(), row.severity.clone()]
        });
        table::write(formatter, &columns, rows)
    }
}
