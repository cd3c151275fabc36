//! The threads of the router: what the kernel says of each enters.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::table::{self, Column};

/// All threads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Threads {
    /// The main thread, the workers, then the others.
    pub threads: Vec<Row>,
}

/// A thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// Its number: 0 is the main thread, workers are from 1 on.
    pub id: usize,
    /// Its name.
    pub name: String,
    /// `main`, `worker` or `helper`.
    #[serde(rename = "type")]
    pub kind: String,
    /// How the kernel knows it.
    pub lwp: i32,
    /// The scheduling policy, with its priority or nice value.
    pub policy: String,
    /// The processor that it last ran on; of a worker, the one that it is pinned to.
    pub lcore: usize,
    /// The core that this belongs to, if the kernel tells.
    pub core: Option<usize>,
    /// The socket of that, if the kernel tells.
    pub socket: Option<usize>,
    /// What it does now: `running`, `sleeping`, `waiting` …
    pub state: String,
}

/// What the kernel says of a thread in `/proc/PID/task/LWP/stat` (`proc_pid_stat(5)`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stat {
    /// Its name.
    pub name: String,
    /// What it does now.
    pub state: String,
    /// The processor that it last ran on.
    pub processor: usize,
    /// The scheduling policy, with its priority or nice value.
    pub policy: String,
}

impl Stat {
    /// Reads it.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        // The name may hold anything, so that the last parenthesis ends it.
        let (before, after) = text.rsplit_once(')')?;
        let (_, name) = before.split_once('(')?;
        let fields: Vec<&str> = after.split_whitespace().collect();
        // The fields are numbered from 1 on, and the first two stand before.
        let field = |number: usize| fields.get(number - 3).copied();
        let state = match field(3)? {
            "R" => "running",
            "S" | "I" => "sleeping",
            "D" => "waiting",
            "T" | "t" => "stopped",
            other => other,
        };
        let (nice, priority) = (field(19)?, field(40)?);
        let policy = match field(41)? {
            "0" => format!("other (nice {nice})"),
            "1" => format!("fifo (priority {priority})"),
            "2" => format!("round robin (priority {priority})"),
            "3" => format!("batch (nice {nice})"),
            "5" => "idle".to_owned(),
            other => format!("policy {other}"),
        };
        Some(Self {
            name: name.to_owned(),
            state: state.to_owned(),
            processor: field(39)?.parse().ok()?,
            policy,
        })
    }
}

impl fmt::Display for Threads {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        use Column::{Left, Right};
        let columns = [
            Right("ID"),
            Left("Name"),
            Left("Type"),
            Right("LWP"),
            Left("Sched Policy"),
            Right("lcore"),
            Right("Core"),
            Right("Socket"),
            Left("State"),
        ];
        let told = |number: Option<usize>| number.map_or_else(|| "-".to_owned(), |number| number.to_string());
        let rows = self.threads.iter().map(|row| {
            vec![
                row.id.to_string(),
                row.name.clone(),
                row.kind.clone(),
                row.lwp.to_string(),
                row.policy.clone(),
                row.lcore.to_string(),
                told(row.core),
                told(row.socket),
                row.state.clone(),
            ]
        });
        table::write(formatter, &columns, rows)
    }
}
