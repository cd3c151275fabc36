//! The record of one run, schema `linerate/run/1`: all that is known of it, in one JSON object.
//!
//! Strategies fill these types and reports read them; there is no other form of a result.
//! Units stand in the names: `_s` seconds, `_ns` nanoseconds, `_pps` frames a second,
//! `_bps` bits a second. Frame sizes include the FCS.

mod cost;
mod cross_check;
mod dut;
mod evidence;
mod finding;
mod gauges;
mod generator;
mod host;
mod latency;
mod node;
mod port_facts;
mod queues;
mod remote;
mod rfc2544;
mod sample;
#[cfg(test)]
mod schema;
mod search;
mod self_test;
mod soak;
mod stall_search;
mod switch;

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub use cost::{Basis, Cost, LoadCost};
pub use cross_check::{CrossCheck, Point};
pub use dut::{Dut, FilterProof, States};
pub use evidence::{Evidence, LossBegan, RateInterval};
pub use finding::Finding;
pub use gauges::{GaugeReading, Gauges};
pub use generator::{BuiltFrames, Generator, WaterfallStep};
pub use host::{Cache, Core, Environment, Host, Topology};
pub use latency::{Distribution, LatencyTest, LoadLatency, Percentiles};
pub use node::{Node, NodeRuntime, NodeRuntimes};
pub use port_facts::{Controller, Pause, PortFacts, PortInterrupt, Queues, Rings, XdpFeature, XdpProgram};
pub use queues::{InterfaceQueues, QueueUse};
pub use remote::{Count, Remote, RemoteCore};
pub use rfc2544::{
    BackToBack, Deviation, LatencyAtThroughput, LatencyStream, LossPoint, Recovery, RecoveryRepeat, Reset,
    Rfc2544, Throughput,
};
pub use sample::{DirectionSample, Latency, Phase, Sample, Undisturbed};
pub use search::{GoalResult, Irregular, Search, Trial, TrialDirection, TrialVerdict};
pub use self_test::SelfTest;
pub use soak::{
    Counted, DeviceCounted, EventCounters, Hiccup, LatencyDrift, LossEvent, LossPattern, LossPeriod, Measure,
    Soak, SoakDirection, SoakStall,
};
pub use stall_search::{RateStall, Recovered, StallRange, StallRate, StallSearch, StallVerdict, Untold};
pub use switch::{Switch, SwitchInterface};

/// The schema this version writes and reads.
pub const SCHEMA: &str = "linerate/run/1";

/// One complete strategy against one configuration of a device under test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(remote = "Self")]
pub struct Record {
    /// Always `linerate/run/1`.
    #[cfg_attr(test, schemars(extend("const" = SCHEMA)))]
    pub schema: String,
    /// Unique within a store, and its file name.
    pub id: String,
    /// What reports call it, like `linux-router 64 B bidirectional`.
    pub name: String,
    /// What reports compare it under: runs of one test against different devices share it,
    /// like `64 B bidirectional`.
    pub test: String,
    /// Labels that the user gave it, to find it by.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// When it began, RFC 3339, UTC.
    pub started: String,
    /// How long it took, in seconds.
    pub elapsed_s: f64,
    /// How it ended.
    pub status: Status,
    /// Why it ended so, where that needs words (a diagnosis, an error).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The exact command.
    pub command: Vec<String>,
    /// What was done.
    pub strategy: Strategy,
    /// What was sent.
    pub profile: Profile,
    /// What it was sent through.
    pub dut: Dut,
    /// What sent it.
    pub tester: Tester,
    /// Where all this ran.
    pub environment: Environment,
    /// The line rate (L1) that percentages refer to, per direction, in bits per second.
    pub line_rate_bps: f64,
    /// What was measured, in order of time.
    pub samples: Vec<Sample>,
    /// The verdict, one for each direction.
    pub directions: Vec<Direction>,
    /// What the strategy found.
    #[serde(flatten)]
    pub finding: Finding,
    /// Linerate's counters beside the kernel's, one for each direction.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cross_check: Vec<CrossCheck>,
    /// The switch that the ports are plugged into, and what it counted, if it was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switch: Option<Box<Switch>>,
    /// Which queues of the device's interfaces the frames took, where they can be seen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub queues: Vec<InterfaceQueues>,
    /// What the device's nodes did, where it is a graph of them (fastpath, VPP), by thread.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<Node>,
    /// Seconds between the two readings of `nodes`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes_s: Option<f64>,
    /// Power, frequency and temperature of the machine beside it, where anything tells them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gauges: Option<Box<Gauges>>,
    /// What a reader should know: degraded parts by name, disturbances, samples of long tables.
    #[serde(default)]
    pub notes: Vec<String>,
}

impl Serialize for Record {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Self::serialize(self, serializer)
    }
}

/// Reads the fields, and takes the finding for that of the strategy that they name.
impl<'de> Deserialize<'de> for Record {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut record = Self::deserialize(deserializer)?;
        record.finding = record.finding.of_strategy(&record.strategy.name);
        Ok(record)
    }
}

impl Record {
    /// Frames that came back, of all samples and directions.
    #[must_use]
    pub fn forwarded(&self) -> u64 {
        self.samples.iter().flat_map(|sample| &sample.directions).map(|direction| direction.forwarded).sum()
    }

    /// Whether at least half of the frames that came back passed the device's nodes, as [`Node::had_most`] says.
    #[must_use]
    pub fn nodes_had_most(&self) -> bool {
        Node::had_most(&self.nodes, self.forwarded())
    }

    /// What reports call the device: the name of its configuration where a bench gave it one (labels
    /// its records with `cell` = `NAME/PROFILE/DIRECTION`), else the generator where that was measured,
    /// else the device with its parameters.
    #[must_use]
    pub fn device(&self) -> String {
        let configuration = self.labels.get("cell").and_then(|cell| cell.split_once('/'));
        match (configuration, self.finding.generator()) {
            (Some((name, _)), _) => name.to_owned(),
            (None, Some(generator)) => generator.program.clone(),
            (None, None) => self.dut.label(),
        }
    }
}

/// How a run ended, so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// It goes on, or its process was killed.
    Running,
    /// It came to its end.
    Complete,
    /// The user stopped it; what was measured until then stands.
    Interrupted,
    /// It could not be carried out; `reason` says why.
    Failed,
}

/// The strategy and its parameters, as given.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Strategy {
    /// `ramp`, `saturate`, `search`, `latency`, `rfc2544`, `soak`, `stall`, `generator` or `cost`.
    pub name: String,
    /// Its parameters by name, as `--help` names them, values with their units.
    pub parameters: BTreeMap<String, String>,
    /// A sample with more than this share of its frames lost is lossy.
    pub loss_threshold: f64,
}

/// The profile that was sent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Profile {
    /// Its name, like `bench`.
    pub name: String,
    /// Its tunables as given, like `size` = `64` and `vm` = `var2`.
    pub tunables: BTreeMap<String, String>,
    /// Whether both directions were sent at once.
    pub bidirectional: bool,
    /// Mean frame size in bytes.
    pub mean_frame_size: f64,
    /// Distinct flows in one direction.
    pub flows: u64,
    /// Rows in the frame table, and the frames after which the profile repeats.
    pub rows: u64,
    /// See `rows`.
    pub period: u64,
    /// The text of a profile that is not built in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

/// What sent and counted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Tester {
    /// The engine, like `xdp`.
    pub engine: String,
    /// Why it is that engine, where it was chosen by what the ports can do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine_reason: Option<String>,
    /// The cores that generate, one worker each.
    pub cores: Vec<usize>,
    /// The core that receives, where that is known.
    pub receive_core: Option<usize>,
    /// The cores that receive in user space, one worker each, where they are not those that generate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub receive_cores: Vec<usize>,
    /// What receiving one frame costs the core it runs on, if that was measured, in nanoseconds.
    pub receive_cost_ns: Option<f64>,
    /// The share of the device's core that receiving took while the device was at its limit, 0 to 1, if both
    /// shared that core and it was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive_share: Option<f64>,
    /// The two ports.
    pub ports: Vec<Port>,
    /// Its own limits, where they are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub self_test: Option<SelfTest>,
}

/// A tester's interface.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Port {
    /// The interface's name.
    pub name: String,
    /// Its driver, where the kernel says so.
    pub driver: Option<String>,
    /// Its MAC address.
    pub mac: String,
    /// Its MTU.
    pub mtu: u32,
    /// Its speed, where the kernel says so, in bits per second.
    pub speed_bps: Option<f64>,
    /// `native` or `generic` XDP. Of the engine `af_xdp`: how the kernel serves its sockets, and who counts what
    /// arrives and why.
    pub xdp_mode: String,
    /// What the kernel and the driver said of it before the first frame, where it is a real interface.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub facts: Option<Box<PortFacts>>,
}

/// What set the limit of a direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum LimitedBy {
    /// The device lost frames.
    Dut,
    /// The load reached its target without loss: line rate, or the share of it asked for.
    LineRate,
    /// The tester could not offer more.
    Tester,
    /// The run did not get far enough to say.
    Unknown,
}

/// The verdict on one direction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Direction {
    /// `0->1` or `1->0`.
    pub name: String,
    /// Highest offered rate that was held with no more loss than the threshold, in frames per second; of a
    /// search, with no more than its strictest goal forgives.
    #[serde(alias = "max_lossless_pps")]
    pub max_rate_pps: f64,
    /// What `max_rate_pps` would be if the tester did not receive on the device's core, in frames per second:
    /// by the share of the core that receiving took. Absent where that is not known, or the core was not the
    /// limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unshared_rate_pps: Option<f64>,
    /// Highest rate that came back, in frames per second.
    pub max_forwarded_pps: f64,
    /// `max_forwarded_pps` as L1, in bits per second.
    pub l1_bps: f64,
    /// `max_forwarded_pps` as L2, in bits per second.
    pub l2_bps: f64,
    /// `l1_bps` as a share of the line rate, in percent.
    pub line_rate_percent: f64,
    /// What limited it.
    pub limited_by: LimitedBy,
    /// What a search found, by goal, by the losses of this direction alone while all directions
    /// were loaded.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub results: BTreeMap<String, GoalResult>,
    /// When and after how many forwarded frames it stopped forwarding for good, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stalled: Option<Stall>,
    /// Lossy samples below that rate, after which the device recovered.
    #[serde(default)]
    pub lossy_samples_below: usize,
    /// What its samples prove, in a ramp or a saturation; absent in other runs and in old records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
    /// Frames over the whole run that left: the port's driver took them.
    pub offered: u64,
    /// Those of them that the device's full receive queue refused, where that is known: lost by the device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<u64>,
    /// Frames that came back, over the whole run.
    pub forwarded: u64,
    /// Frames that the tester gave up: they were too late, or the port did not take them.
    pub unsent: u64,
    /// Those that the port did not take, by its reason in words; the others were too late.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub untaken: BTreeMap<String, u64>,
    /// Frames that came back more than once.
    pub duplicates: u64,
    /// Frames that came back after one that left later.
    pub reordered: u64,
    /// Linerate's frames that came back at the port they left by.
    pub returned: u64,
    /// Frames at the receiving port that Linerate did not send.
    pub foreign: u64,
    /// How late departures were: (lowest value of the bucket in ns, count).
    pub lateness_ns: Vec<(u64, u64)>,
    /// Time between departure and return: (lowest value of the bucket in ns, count).
    pub latency_ns: Vec<(u64, u64)>,
}

impl Direction {
    /// The share of the frames due that it was too late for, 0 to 1.
    #[must_use]
    pub fn too_late(&self) -> f64 {
        too_late(self.offered, self.unsent, self.untaken.values().sum())
    }
}

/// A tester that is too late for more than this share of the frames due is not held up but at its limit:
/// the delay of the others says how long it waits before it gives them up.
pub const AT_ITS_LIMIT: f64 = 0.01;

/// The share of the frames due that it was too late for, 0 to 1: `offered` left, `unsent` did not, and
/// `untaken` of these because the port did not take them.
#[must_use]
pub fn too_late(offered: u64, unsent: u64, untaken: u64) -> f64 {
    unsent.saturating_sub(untaken) as f64 / (offered + unsent).max(1) as f64
}

/// A device that stopped forwarding.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Stall {
    /// Seconds since the run's start.
    pub at_s: f64,
    /// Frames it had forwarded by then.
    pub after_frames: u64,
}
