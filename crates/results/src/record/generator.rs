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
    /// Whether it sent through the device to port 1, where the kernel counted what arrived, instead of to the device.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub across: bool,
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
    /// What a frame costs one core at each step from a buffer in memory to this port, in the order of the steps; empty
    /// where only the program was measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waterfall: Vec<WaterfallStep>,
    /// Frames that were built beside that and not sent, by place, size and cores.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub built: Vec<BuiltFrames>,
}

/// What a frame costs at one step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WaterfallStep {
    /// Where the frames went: `memory`, `memif`, `null`, `net_memif`, or by which engine they were sent: `af_xdp`, `xdp`.
    pub name: String,
    /// Frames a second of one core.
    pub pps: f64,
}

impl WaterfallStep {
    /// What a frame takes of the core, in nanoseconds.
    #[must_use]
    pub fn ns_per_frame(&self) -> f64 {
        1e9 / self.pps
    }
}

/// Frames that some cores built in one size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct BuiltFrames {
    /// Where they went: `memory`, `memif`, `null` or `net_memif`.
    pub onto: String,
    /// Bytes with FCS, on average.
    pub frame_size: f64,
    /// The cores that built.
    pub cores: Vec<usize>,
    /// Frames a second of all of them together.
    pub pps: f64,
    /// Cores that took the frames out of shared memory: those that built, in turns with that, where no others were left.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sinks: Vec<usize>,
}
