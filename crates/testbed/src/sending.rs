//! What sends without a strategy: two ports with a device between them, or one interface, enter; frames leave at
//! one load until another is asked for, and what was sent is counted here and by the interfaces.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use engine::af_xdp::{AfXdpEngine, Options};
use engine::live::{Sent, monotonic};
use engine::user_space::Crew;
use engine::xdp::Generator;
use engine::{Engine, Error, Load, Order};
use lab::{Destination, InterfaceCounters, Port};
use serde_json::json;
use traffic::{Endpoints, FrameTable};
use wire::{human, size};
use wording::usage::misuse;

use crate::Testbed;
use crate::cross_check;
use crate::inspection::Inspection;
use crate::port;
use crate::target::{EngineName, Target};

/// How long a driver may take for the last frames.
const LAST_LEAVE: Duration = Duration::from_secs(2);
/// Where frames leave.
pub enum WayOut {
    /// By two ports with a device between them.
    Testbed(Box<Testbed>),
    /// By one interface.
    Port(Port, Box<Inspection>),
}

impl WayOut {
    /// By the two ports of a testbed.
    ///
    /// # Errors
    /// Why it cannot be opened, with the remedy.
    pub fn of_testbed(target: &Target, max_frame_size: usize) -> Result<Self> {
        Ok(Self::Testbed(Box::new(Testbed::open(target, max_frame_size)?)))
    }

    /// By the interface `name`, to a neighbour; `force` as for [`lab::open_port`].
    ///
    /// # Errors
    /// Wrong use where there is no such interface or neighbour, or frames of this size do not leave there.
    pub fn of_port(
        name: &str,
        to: &str,
        engine: EngineName,
        force: u8,
        max_frame_size: usize,
    ) -> Result<Self> {
        let destination = match (to.parse(), to.parse()) {
            (Ok(mac), _) => Destination::Mac(mac),
            (_, Ok(gateway)) => Destination::Gateway(gateway),
            _ => return Err(misuse(format!("'{to}' is neither a MAC nor an IP address"))),
        };
        if engine == EngineName::Trex {
            return Err(misuse("--engine trex uses the ports of its servers: leave --port out"));
        }
        if engine.is_in_user_space() {
            return Err(misuse(format!(
                "--port is an interface of the kernel: with --engine {engine} give --port0 and --port1"
            )));
        }
        let port = lab::open_port(name, destination, force).map_err(port::refused)?;
        port::check_mtu(&port, max_frame_size)?;
        let inspection = Inspection::of(&[&port], engine, max_frame_size)?;
        inspection.tell();
        Ok(Self::Port(port, Box::new(inspection)))
    }

    /// What sends.
    fn engine(&self) -> EngineName {
        match self {
            Self::Testbed(testbed) => testbed.engine(),
            Self::Port(_, inspection) => inspection.engine,
        }
    }

    /// Attaches programs to the ports that send only while they have one; they are detached when dropped.
    ///
    /// # Errors
    /// When a port does not take one.
    pub fn attach_programs(&self) -> Result<Vec<ports::Attached>> {
        match self {
            Self::Testbed(testbed) => testbed.attach_programs(),
            Self::Port(_, inspection) => inspection.attach(),
        }
    }

    /// Between which addresses frames go.
    #[must_use]
    pub fn endpoints(&self) -> Endpoints {
        match self {
            Self::Testbed(testbed) => testbed.endpoints(),
            Self::Port(port, _) => Endpoints([port::endpoint(port); 2]),
        }
    }

    /// The speed of the line in bits a second; what is assumed where a port does not say.
    #[must_use]
    pub fn line_rate_bps(&self) -> f64 {
        match self {
            Self::Testbed(testbed) => testbed.line_rate_bps(),
            Self::Port(port, _) => port.speed_bps.unwrap_or(port::FALLBACK_LINE_RATE),
        }
    }

    /// What sends the frames of `table`. One interface is served by `cores`, a testbed by its own.
    ///
    /// # Errors
    /// Why the engine cannot be started.
    pub fn start(&self, table: &FrameTable, cores: &[usize], stop: &Arc<AtomicBool>) -> Result<Source> {
        if self.engine() != EngineName::Xdp {
            let engine: Box<dyn Engine> = match self {
                Self::Testbed(testbed) => testbed.start_any_engine(table, stop)?.0,
                Self::Port(port, _) => {
                    let crew = Crew { send_cores: cores, receive_cores: &[], table, stop: Arc::clone(stop) };
                    let port = port::reference(port);
                    Box::new(AfXdpEngine::start(&[&port], None, Options::default(), &crew)?)
                }
            };
            return Ok(Source::Engine(engine));
        }
        let generator = match self {
            Self::Testbed(testbed) => {
                let cores = testbed.generating_cores();
                let generator = Generator::start(table, &testbed.port_refs()?, testbed.namespace(), cores)?;
                testbed.lab().map(lab::Lab::pin).transpose()?;
                generator
            }
            Self::Port(port, _) => Generator::start(table, &[port::reference(port)], None, cores)?,
        };
        Ok(Source::Kernel(Box::new(generator)))
    }

    /// What the interfaces counted that frames leave by.
    ///
    /// # Errors
    /// When one is gone.
    pub fn interfaces(&self, directions: usize) -> Result<Vec<InterfaceCounters>> {
        let mut counters = match self {
            Self::Testbed(testbed) => testbed.interface_counters()?,
            Self::Port(port, _) => lab::interface_counters([&port.name])?.to_vec(),
        };
        counters.truncate(directions);
        Ok(counters)
    }

    /// What the device received, if it counts.
    ///
    /// # Errors
    /// When its counters cannot be read.
    pub fn received(&self) -> Result<Option<u64>> {
        let Self::Testbed(testbed) = self else { return Ok(None) };
        let counters = testbed.lab().map(lab::Lab::dut_counters).transpose()?.flatten();
        let counted = counters.map(|sides| sides.iter().map(|side| side.frames).sum());
        Ok(counted.or_else(|| Some(testbed.passed()?.iter().map(|side| side.frames).sum())))
    }
}

/// The interval of the kernel's generator that all is sent in.
const INTERVAL: u64 = 1;

/// What sends.
pub enum Source {
    /// The kernel's generator.
    Kernel(Box<Generator>),
    /// An engine that also receives; all is sent in its first interval.
    Engine(Box<dyn Engine>),
}

impl Source {
    /// Sends at `load` from now on.
    ///
    /// # Errors
    /// When the engine has failed.
    pub fn begin(&mut self, load: Load) -> Result<()> {
        match self {
            Self::Kernel(generator) => generator.begin(INTERVAL, &Order::Load(load), monotonic()?)?,
            Self::Engine(engine) => drop(engine.begin(load)?),
        }
        Ok(())
    }

    /// Sends nothing more.
    ///
    /// # Errors
    /// When the engine has failed.
    pub fn end(&mut self) -> Result<()> {
        match self {
            Self::Kernel(generator) => {
                generator.begin(INTERVAL + 1, &Order::Load(Load::Idle), monotonic()?)?
            }
            Self::Engine(engine) => drop(engine.begin(Load::Idle)?),
        }
        Ok(())
    }

    /// Waits until it is known what left: the driver may take the last frames late. No longer than 2 s.
    pub fn wait_until_left(&self) {
        let Self::Engine(engine) = self else { return };
        let clock = Instant::now();
        while !engine.has_left(0) && clock.elapsed() < LAST_LEAVE {
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// # Errors
    /// When it cannot go on.
    pub fn check(&mut self) -> Result<(), Error> {
        match self {
            Self::Kernel(generator) => generator.check(),
            Self::Engine(engine) => match engine.wait(Duration::ZERO) {
                Err(Error::Interrupted) => Ok(()),
                other => other,
            },
        }
    }

    /// What was sent in so many directions since the beginning.
    ///
    /// # Errors
    /// When counters cannot be read.
    pub fn tally(&mut self, directions: usize) -> Result<Tally> {
        match self {
            Self::Kernel(generator) => Tally::read(generator, directions),
            Self::Engine(engine) => {
                let mut sum = Sent::default();
                for counts in engine.counts(0)? {
                    sum.add(&Sent {
                        frames: counts.offered,
                        bytes: counts.offered_bytes - u64::from(size::FCS) * counts.offered,
                        unsent: counts.unsent.saturating_sub(counts.untaken.total()),
                        untaken: counts.untaken,
                        refused: 0,
                    });
                }
                Ok(Tally(sum))
            }
        }
    }

    /// What the full queue at the other end refused of `total`, where that is counted.
    #[must_use]
    pub fn refused(&self, total: Tally) -> Option<u64> {
        matches!(self, Self::Kernel(_)).then_some(total.0.refused)
    }
}

/// Frames sent, of all directions.
#[derive(Clone, Copy, Default)]
pub struct Tally(Sent);

impl Tally {
    fn read(generator: &Generator, directions: usize) -> Result<Self> {
        let mut sum = Sent::default();
        for direction in 0..directions {
            sum.add(&generator.sent(INTERVAL, direction)?);
        }
        Ok(Self(sum))
    }

    /// What was added since `earlier`.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self(Sent {
            frames: self.0.frames.saturating_sub(earlier.0.frames),
            bytes: self.0.bytes.saturating_sub(earlier.0.bytes),
            unsent: self.0.unsent - earlier.0.unsent,
            untaken: self.0.untaken - earlier.0.untaken,
            refused: self.0.refused - earlier.0.refused,
        })
    }

    /// How many frames were sent.
    #[must_use]
    pub fn frames(self) -> u64 {
        self.0.frames
    }

    /// How many of them the full queue at the other end refused.
    #[must_use]
    pub fn refused(self) -> u64 {
        self.0.refused
    }

    /// Why frames were not sent, and how many.
    pub fn reasons(self) -> impl Iterator<Item = (&'static str, u64)> {
        let late = ("the tester was too late", self.0.unsent);
        std::iter::once(late).filter(|(_, frames)| *frames > 0).chain(self.0.untaken.reasons())
    }

    /// Whether frames were due and none was sent.
    #[must_use]
    pub fn is_nothing(self) -> bool {
        self.0.frames == 0 && self.0.all_unsent() > 0
    }

    /// Whether the interfaces counted the same to the frame.
    #[must_use]
    pub fn is_all_of(self, left: &InterfaceCounters, refused: Option<u64>) -> bool {
        let all = left.sent + if refused.is_none() { left.send_dropped } else { 0 };
        all == self.0.frames.saturating_sub(refused.unwrap_or(0))
    }

    /// What to say if the interfaces counted something else.
    #[must_use]
    pub fn disagreement(self, left: &InterfaceCounters, refused: Option<u64>) -> Option<String> {
        let Sent { frames, .. } = self.0;
        (!cross_check::left(left, frames, refused)).then(|| {
            format!(
                "{} counted {} frames sent, not {}: what really left is not certain; see `ip -s link` and \
                 `ethtool -S`",
                left.name,
                human::count(left.sent),
                human::count(frames.saturating_sub(refused.unwrap_or(0)))
            )
        })
    }

    /// Mean frame size, FCS included.
    fn mean_size(self) -> f64 {
        self.0.bytes as f64 / self.0.frames.max(1) as f64 + f64::from(size::FCS)
    }

    /// What was sent in `seconds`, in one line.
    #[must_use]
    pub fn line(self, seconds: f64) -> String {
        let pps = self.0.frames as f64 / seconds;
        let unsent = match self.0.all_unsent() {
            0 => String::new(),
            unsent => format!(", {} unsent", human::count(unsent)),
        };
        format!(
            "{} ({} L1, {} L2){unsent}",
            human::pps(pps),
            human::bps(size::pps_to_l1_bps(pps, self.mean_size())),
            human::bps(size::pps_to_l2_bps(pps, self.mean_size())),
        )
    }

    /// `received` by the device; `left` by the count of the interfaces.
    #[must_use]
    pub fn json(self, seconds: f64, received: Option<u64>, left: Option<u64>) -> serde_json::Value {
        let pps = self.0.frames as f64 / seconds;
        json!({
            "elapsed_s": seconds,
            "offered": self.0.frames,
            "offered_pps": pps,
            "unsent": self.0.all_unsent(),
            "untaken": self.0.untaken.reasons().collect::<BTreeMap<_, _>>(),
            "refused": self.0.refused,
            "interface_sent": left,
            "l1_bps": size::pps_to_l1_bps(pps, self.mean_size()),
            "l2_bps": size::pps_to_l2_bps(pps, self.mean_size()),
            "dut_received": received,
        })
    }
}

/// What interfaces counted altogether since `before`.
#[must_use]
pub fn since(after: &[InterfaceCounters], before: &[InterfaceCounters]) -> InterfaceCounters {
    let names: Vec<&str> = after.iter().map(|interface| interface.name.as_str()).collect();
    let mut sum = InterfaceCounters { name: names.join(" and "), ..InterfaceCounters::default() };
    for (after, before) in after.iter().zip(before) {
        let InterfaceCounters { sent, send_dropped, .. } = after.since(before);
        sum.sent += sent;
        sum.send_dropped += send_dropped;
    }
    sum
}
