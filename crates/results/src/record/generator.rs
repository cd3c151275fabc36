//! What generated in a measurement of generators.

use serde::{Deserialize, Serialize};

/// A generator, which may be another program, and what it says of itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Generator {
    /// Its name, like `trafgen`.
    pub program: String,
    /// Its version, as it tells it.
    pub version: String,
    /// Its exact command; `INPUT` stands for a file with `input`.
    pub command: Vec<String>,
    /// What it was given to send, in words or as it was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
    /// Bytes of UDP payload in each datagram.
    pub datagram: u16,
    /// The frames that a datagram leaves in, by their sizes in bytes, FCS included: several where
    /// it is fragmented.
    pub frames: Vec<u16>,
    /// The packets that it says it sent, from its start to its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said: Option<u64>,
    /// The packets that left its port meanwhile, by the kernel's count.
    pub left: u64,
    /// Those that a full queue refused there, which some programs take for sent, and others send again.
    pub refused: u64,
    /// How busy the core that it ran on was, 0 to 1, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core_busy: Option<f64>,
}
