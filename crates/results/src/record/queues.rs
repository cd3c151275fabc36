//! Which queues of an interface the frames of a run took.

use serde::{Deserialize, Serialize};

/// What the queues of one interface did in a run, or, where those are not counted, the cores.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct InterfaceQueues {
    /// The interface.
    pub interface: String,
    /// Where the counters come from, in words.
    pub source: String,
    /// Each queue, or core.
    pub queues: Vec<QueueUse>,
    /// How unevenly packets were received: the busiest against the mean, max / mean − 1. Absent where
    /// none were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive_imbalance: Option<f64>,
    /// The same of packets sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_imbalance: Option<f64>,
}

/// What one queue, or core, did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct QueueUse {
    /// Like `rx 0`, `tx 1` or `core 2`.
    pub place: String,
    /// Packets a second, over the whole run.
    pub pps: f64,
    /// Its share of what those of its kind did, 0 to 1.
    pub share: f64,
    /// The cores that serve it, where the kernel says.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cores: Vec<usize>,
    /// Packets per second dropped because its ring was full, where that is counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dropped_pps: Option<f64>,
}
