//! A bench as its file asks for it: a matrix of devices, profiles and directions, repeated. [`plan`] makes runs of it,
//! [`requirement`] says what this machine lacks for some of them.

pub mod plan;
pub mod requirement;

use std::fmt::{self, Display};
use std::net::IpAddr;

use results::bench::{Axis, Compare};
use serde::Deserialize;

use crate::target::{EngineName, Place};

/// A matrix of load tests: each of its devices × each of its profiles × its directions, repeated.
#[derive(Clone, Debug)]
pub struct Bench {
    /// Where it stands, for messages.
    pub origin: String,
    /// Its text.
    pub source: String,
    /// In kebab case; its records carry it.
    pub name: String,
    /// For people.
    pub title: String,
    /// Which table or figure of an article it follows, in words.
    pub article_figure: Option<String>,
    /// How often each cell is run, at least once.
    pub repeats: u32,
    /// In which order.
    pub order: Order,
    /// What the order is drawn from, where it is drawn.
    pub seed: u64,
    /// Whether devices or profiles are compared.
    pub compare: Compare,
    /// The device or the profile that all others are compared with, if they are.
    pub baseline: Option<String>,
    /// What the numbers of devices or of profiles count, if they have numbers.
    pub axis: Option<Axis>,
    /// What is done in each cell.
    pub strategy: Strategy,
    /// At least one; their names differ.
    pub duts: Vec<Dut>,
    /// At least one; their names differ.
    pub profiles: Vec<Profile>,
}

/// In which order runs are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// Each round of repeats in an order of its own, drawn from the seed.
    #[default]
    Shuffled,
    /// Round by round, as the file has it.
    Interleaved,
}

/// What is done in each cell.
#[derive(Clone, Debug)]
pub struct Strategy {
    /// Which subcommand.
    pub subcommand: Subcommand,
    /// Its flags, as typed.
    pub options: Vec<String>,
    /// Where they stand.
    pub line: usize,
}

/// The subcommands that make one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Subcommand {
    /// A linear rise of the load.
    Ramp,
    /// One load.
    Saturate,
    /// A search for lossless and other rates.
    Search,
    /// Latency at several loads.
    Latency,
    /// One load for long.
    Soak,
    /// A search for the loads at which a device stops.
    Stall,
    /// Programs that send.
    Generator,
}

/// A device in one configuration.
#[derive(Clone, Debug)]
pub struct Dut {
    /// Its name.
    pub name: String,
    /// Where it is, and how it is reached and configured if it is another computer.
    pub place: Place,
    /// What sends and receives.
    pub engine: EngineName,
    /// Flags of the strategy for it alone, as typed.
    pub options: Vec<String>,
    /// Where it stands.
    pub line: usize,
    /// What configures it.
    pub configuration: Configuration,
    /// Sources whose packets it must drop, as a few frames prove before each run.
    pub denies: Vec<IpAddr>,
    /// Its place on the axis.
    pub at: Option<f64>,
}

/// What is sent.
#[derive(Clone, Debug)]
pub struct Profile {
    /// Its name.
    pub name: String,
    /// The flags that say it, in pairs.
    pub flags: Vec<(&'static str, String)>,
    /// At least one, each once.
    pub directions: Vec<Direction>,
    /// What configures devices for it.
    pub configuration: Configuration,
    /// Its place on the axis.
    pub at: Option<f64>,
}

/// What configures a device before it is measured.
#[derive(Clone, Debug, Default)]
pub struct Configuration {
    /// Shell commands that configure it.
    pub commands: Vec<String>,
    /// Shell commands that run on this machine afterwards.
    pub undo: Vec<String>,
    /// Programs that must be installed, and kinds of links that the kernel must have; see [`requirement`].
    pub requires: Vec<String>,
}

/// Which ports send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// Port 0.
    One,
    /// Both at once.
    Both,
}

impl Display for Subcommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ramp => "ramp",
            Self::Saturate => "saturate",
            Self::Search => "search",
            Self::Latency => "latency",
            Self::Soak => "soak",
            Self::Stall => "stall",
            Self::Generator => "generator",
        })
    }
}

impl Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::One => "one",
            Self::Both => "both",
        })
    }
}

impl Direction {
    /// The same in words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::One => "one way",
            Self::Both => "both ways",
        }
    }
}
