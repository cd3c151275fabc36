//! What users say to a running router: a request a line enters the control socket as JSON, and a reply a
//! line leaves it. [`crate::control::client`] is the other end.

use std::fmt;
use std::path::PathBuf;

use clap::{Subcommand, ValueEnum};
use serde::{Deserialize, Serialize};

use crate::control::capture::Pcap;
use crate::control::show::acl::AccessLists;
use crate::control::show::bridge::Bridges;
use crate::control::show::cpu::Cpu;
use crate::control::show::errors::Errors;
use crate::control::show::fib::Fib;
use crate::control::show::flows::Flows;
use crate::control::show::graph::Graph;
use crate::control::show::hardware::Hardware;
use crate::control::show::interfaces::Interfaces;
use crate::control::show::metrics::Metrics;
use crate::control::show::neighbours::Neighbours;
use crate::control::show::runtime::Runtime;
use crate::control::show::runtime_max::RuntimeMax;
use crate::control::show::threads::Threads;
use crate::control::show::trace::Trace;

/// What is asked of a router.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Request {
    /// To be told something.
    Show(Show),
    /// To count from now on.
    Clear(Clear),
    /// To change something. The configuration file does not change with it.
    Set(Set),
    /// To note what nodes see of so many packets more, of each worker.
    Trace(u32),
    /// To capture packets to a file.
    Pcap(Pcap),
    /// To become what a configuration says.
    Reload {
        /// The file with it; the one that the router began with if none is named.
        file: Option<PathBuf>,
    },
}

/// What there is to be told, in the words of `fastpathctl show`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Subcommand)]
#[serde(rename_all = "kebab-case")]
pub enum Show {
    /// What each worker does, node by node.
    #[command(skip)] // fastpathctl has it with the word that makes it the next one
    Runtime,
    /// The dearest call of each node.
    #[command(skip)]
    RuntimeMax,
    /// Interfaces and what went through them.
    #[command(skip)]
    Interfaces,
    /// Why packets went no further.
    #[command(alias = "error")]
    Errors,
    /// All that is counted, in Prometheus's text format.
    Metrics,
    /// The threads of the router.
    Threads,
    /// The processor.
    Cpu,
    /// Devices, and which worker serves which queue.
    #[command(visible_alias = "hardware-interfaces")]
    Hardware,
    /// Bridges and their stations.
    Bridge,
    /// Access lists, and how many packets each of their rules matched.
    Acl {
        /// The list; all if none is named, with the first thousand rules of each.
        #[serde(default)]
        name: Option<String>,
    },
    /// Flows that access lists keep states of: how many, and some of them.
    Flows,
    /// The nodes, and where packets go from each.
    Graph,
    /// Which program runs, and for how long.
    Version,
    /// The routes of one version of IP.
    Fib {
        /// Which.
        version: IpVersion,
        /// A prefix, for its routes and those of longer ones within, or an address, for the route that its
        /// packets take; all if there is neither.
        #[serde(default)]
        of: Option<String>,
    },
    /// The neighbours whose link address is known.
    #[command(visible_alias = "neighbors")]
    Neighbours,
    /// What nodes saw of packets; see trace add.
    Trace,
}

/// A version of IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum IpVersion {
    /// IPv4.
    Ip4,
    /// IPv6.
    Ip6,
}

/// What can be counted from now on, in the words of `fastpathctl clear`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Subcommand)]
#[serde(rename_all = "kebab-case")]
pub enum Clear {
    /// What workers do.
    Runtime,
    /// What goes through interfaces.
    #[command(visible_alias = "hardware-interfaces")]
    Interfaces,
    /// Why packets go no further.
    Errors,
    /// What nodes saw of packets.
    Trace,
    /// Where the stations of bridges are.
    Bridge,
    /// How many packets the rules of access lists matched.
    Acl,
}

/// What can be changed; everything is written as in the configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Set {
    /// An interface.
    Interface {
        /// Its name.
        name: String,
        /// Whether it takes and sends packets.
        #[serde(default)]
        up: Option<bool>,
        /// Bytes that a packet may have.
        #[serde(default)]
        mtu: Option<u32>,
    },
    /// The route of a prefix.
    Route {
        /// The prefix.
        prefix: String,
        /// Where its packets go.
        to: To,
    },
    /// A neighbour's address.
    Neighbour {
        /// The interface that it is at.
        interface: String,
        /// Its address.
        address: String,
        /// Its MAC address; none to forget it.
        mac: Option<String>,
    },
}

/// Where a route leads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum To {
    /// To these neighbours, by flow.
    Via(Vec<Hop>),
    /// Nowhere: its packets are dropped.
    Drop,
    /// There is no route.
    Nothing,
}

/// A neighbour that packets go to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hop {
    /// Its address.
    pub gateway: String,
    /// The interface that it is at; none if it is in the network of one.
    #[serde(default)]
    pub interface: Option<String>,
    /// Its share among those of the others; 1 if none is said.
    #[serde(default)]
    pub weight: Option<u32>,
}

/// What a router says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reply {
    /// What was asked for.
    Answer(Answer),
    /// Why it was not done, and the remedy.
    Error(String),
}

/// What was asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// What each worker does.
    Runtime(Runtime),
    /// The dearest call of each node.
    RuntimeMax(RuntimeMax),
    /// Interfaces.
    Interfaces(Interfaces),
    /// Why packets went no further.
    Errors(Errors),
    /// Metrics.
    Metrics(Metrics),
    /// The threads.
    Threads(Threads),
    /// The processor.
    Cpu(Cpu),
    /// The devices.
    Hardware(Hardware),
    /// Bridges.
    Bridge(Bridges),
    /// Access lists.
    Acl(AccessLists),
    /// Flows with states.
    Flows(Flows),
    /// The graph.
    Graph(Graph),
    /// The version.
    Version(Version),
    /// Routes.
    Fib(Fib),
    /// Neighbours.
    Neighbours(Neighbours),
    /// What nodes saw of packets.
    Trace(Trace),
    /// What was done.
    Done(String),
}

/// Which program this is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Version {
    /// Its name.
    pub program: String,
    /// Its version.
    pub version: String,
    /// How the kernel knows its process.
    pub process: u32,
    /// Seconds since it began.
    pub seconds: u64,
}

impl Answer {
    /// What it says, without which kind of answer it is: the client that asked knows that.
    #[must_use]
    pub fn json(&self) -> serde_json::Value {
        let value = match self {
            Self::Runtime(answer) => serde_json::to_value(answer),
            Self::RuntimeMax(answer) => serde_json::to_value(answer),
            Self::Bridge(answer) => serde_json::to_value(answer),
            Self::Acl(answer) => serde_json::to_value(answer),
            Self::Flows(answer) => serde_json::to_value(answer),
            Self::Interfaces(answer) => serde_json::to_value(answer),
            Self::Errors(answer) => serde_json::to_value(answer),
            Self::Metrics(answer) => serde_json::to_value(answer),
            Self::Threads(answer) => serde_json::to_value(answer),
            Self::Cpu(answer) => serde_json::to_value(answer),
            Self::Hardware(answer) => serde_json::to_value(answer),
            Self::Graph(answer) => serde_json::to_value(answer),
            Self::Version(answer) => serde_json::to_value(answer),
            Self::Fib(answer) => serde_json::to_value(answer),
            Self::Neighbours(answer) => serde_json::to_value(answer),
            Self::Trace(answer) => serde_json::to_value(answer),
            Self::Done(answer) => return serde_json::json!({ "done": answer }),
        };
        value.unwrap_or_default()
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Runtime(answer) => answer.fmt(formatter),
            Self::RuntimeMax(answer) => answer.fmt(formatter),
            Self::Bridge(answer) => answer.fmt(formatter),
            Self::Acl(answer) => answer.fmt(formatter),
            Self::Flows(answer) => answer.fmt(formatter),
            Self::Interfaces(answer) => answer.fmt(formatter),
            Self::Errors(answer) => answer.fmt(formatter),
            Self::Metrics(answer) => answer.fmt(formatter),
            Self::Threads(answer) => answer.fmt(formatter),
            Self::Cpu(answer) => answer.fmt(formatter),
            Self::Hardware(answer) => answer.fmt(formatter),
            Self::Graph(answer) => answer.fmt(formatter),
            Self::Version(answer) => answer.fmt(formatter),
            Self::Fib(answer) => answer.fmt(formatter),
            Self::Neighbours(answer) => answer.fmt(formatter),
            Self::Trace(answer) => answer.fmt(formatter),
            Self::Done(answer) => writeln!(formatter, "{answer}"),
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { program, version, process, seconds } = self;
        writeln!(formatter, "{program} {version}, process {process}, up for {seconds} s")
    }
}
