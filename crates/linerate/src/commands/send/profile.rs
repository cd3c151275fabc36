//! A profile: traffic until told to stop, as pkt-gen's users expect.

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
use engine::{Engine, Error, Load};
use lab::{Destination, InterfaceCounters, Port};
use serde_json::json;
use testbed::Testbed;
use testbed::cross_check;
use testbed::inspection::Inspection;
use testbed::port;
use testbed::stop;
use testbed::target::EngineName;
use traffic::{Endpoints, FrameTable};
use wire::rate::Rate;
use wire::{human, size};
use wording::usage::misuse;

use super::Args;
use crate::Exit;

pub fn main(args: &Args) -> Result<Exit> {
    let profile = args.traffic.profile()?;
    let stop = stop::flag()?;
    let way_out = WayOut::open(args, usize::from(profile.largest_size()))?;
    let table = profile.table(&way_out.endpoints(), args.traffic.directions());
    let load = match args.rate {
        None | Some(Rate::Max) => Load::Max,
        Some(rate) => Load::Rate(port::to_pps(rate, table.mean_frame_size(), way_out.line_rate_bps())?),
    };
    let _programs = way_out.attach_programs()?;
    let mut generator = way_out.start(&table, args, &stop)?;
    let directions = table.directions();
    let before = way_out.interfaces(directions)?;

    let clock = Instant::now();
    generator.begin(load)?;
    let mut last = (Tally::default(), Duration::ZERO);
    let mut failure = None;
    while failure.is_none()
        && !stop::is_set(&stop)
        && args.duration.is_none_or(|duration| clock.elapsed() < duration)
    {
        let left = args.duration.map_or(args.interval, |duration| duration.saturating_sub(clock.elapsed()));
        failure = watch(&mut generator, args.interval.min(left), &stop).err();
        let now = (generator.tally(directions)?, clock.elapsed());
        eprintln!("{}", now.0.since(last.0).line((now.1 - last.1).as_secs_f64()));
        last = now;
    }
    let elapsed = clock.elapsed().as_secs_f64();
    generator.end()?;
    generator.wait_until_left();
    // The last frames arrive a little later.
    thread::sleep(Duration::from_millis(50));
    let total = generator.tally(directions)?;
    eprintln!("sent {} frames in {elapsed:.2} s: {}", human::count(total.0.frames), total.line(elapsed));
    total
        .reasons()
        .for_each(|(reason, frames)| eprintln!("{} were not sent: {reason}", human::count(frames)));
    if total.0.refused > 0 {
        eprintln!("the full queue at the other end refused {} of those sent", human::count(total.0.refused));
    }
    let received = way_out.received()?;
    if let Some(received) = received {
        eprintln!("the device received {} of them", human::count(received));
    }
    // An interface that is gone says nothing.
    let refused = generator.refused(total);
    let read = || Ok(since(&way_out.interfaces(directions)?, &before));
    let left = cross_check::settled(read, |left| total.is_all_of(left, refused)).ok();
    let disagreement = left.as_ref().and_then(|left| total.disagreement(left, refused));
    if args.json {
        println!("{}", total.json(elapsed, received, left.map(|left| left.sent)));
    }
    disagreement.iter().for_each(|disagreement| eprintln!("{disagreement}"));
    if let Some(failure) = failure {
        return Err(failure.into());
    }
    Ok(if disagreement.is_some() || total.is_nothing() { Exit::Failed } else { Exit::Done })
}

/// How long a driver may take for the last frames.
const LAST_LEAVE: Duration = Duration::from_secs(2);
/// How often the generator is asked whether all goes well.
const LOOK: Duration = Duration::from_millis(100);

/// Lets `duration` pass while all goes well, or until told to stop.
fn watch(generator: &mut Source, duration: Duration, stop: &AtomicBool) -> Result<(), Error> {
    let clock = Instant::now();
    while clock.elapsed() < duration && !stop::is_set(stop) {
        stop::sleep(stop, LOOK.min(duration.saturating_sub(clock.elapsed())));
        generator.check()?;
    }
    Ok(())
}

/// What interfaces counted altogether since `before`.
fn since(after: &[InterfaceCounters], before: &[InterfaceCounters]) -> InterfaceCounters {
    let names: Vec<&str> = after.iter().map(|interface| interface.name.as_str()).collect();
    let mut sum = InterfaceCounters { name: names.join(" and "), ..InterfaceCounters::default() };
    for (after, before) in after.iter().zip(before) {
        let InterfaceCounters { sent, send_dropped, .. } = after.since(before);
        sum.sent += sent;
        sum.send_dropped += send_dropped;
    }
    sum
}

/// Where frames leave.
enum WayOut {
    /// By two ports with a device between them.
    Testbed(Box<Testbed>),
    /// By one interface.
    Port(Port, Box<Inspection>),
}

impl WayOut {
    fn open(args: &Args, max_frame_size: usize) -> Result<Self> {
        let Some(name) = &args.port else {
            let default = if args.device.engine.name.is_in_user_space() { "calibrated" } else { "sink" };
            let testbed = Testbed::open(&args.device.target_or(default)?, max_frame_size)?;
            return Ok(Self::Testbed(Box::new(testbed)));
        };
        if args.traffic.bidirectional {
            return Err(misuse("--bidirectional needs two ports: --ports A,B"));
        }
        let destination = match args.to.as_deref() {
            None => return Err(misuse("say where frames of --port go: --to MAC, or --to IP of a neighbour")),
            Some(to) => match (to.parse(), to.parse()) {
                (Ok(mac), _) => Destination::Mac(mac),
                (_, Ok(gateway)) => Destination::Gateway(gateway),
                _ => return Err(misuse(format!("'{to}' is neither a MAC nor an IP address"))),
            },
        };
        if args.device.engine.name == EngineName::Trex {
            return Err(misuse("--engine trex uses the ports of its servers: leave --port out"));
        }
        if args.device.engine.name.is_in_user_space() {
            return Err(misuse(format!(
                "--port is an interface of the kernel: with --engine {} give --port0 and --port1",
                args.device.engine.name
            )));
        }
        let port = lab::open_port(name, destination, args.device.force).map_err(port::refused)?;
        port::check_mtu(&port, max_frame_size)?;
        let inspection = Inspection::of(&[&port], args.device.engine.name, max_frame_size)?;
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

    /// Programs at the ports that send only while one is attached.
    fn attach_programs(&self) -> Result<Vec<ports::Attached>> {
        match self {
            Self::Testbed(testbed) => testbed.attach_programs(),
            Self::Port(_, inspection) => inspection.attach(),
        }
    }

    fn endpoints(&self) -> Endpoints {
        match self {
            Self::Testbed(testbed) => testbed.endpoints(),
            Self::Port(port, _) => Endpoints([port::endpoint(port); 2]),
        }
    }

    fn line_rate_bps(&self) -> f64 {
        match self {
            Self::Testbed(testbed) => testbed.line_rate_bps(),
            Self::Port(port, _) => port.speed_bps.unwrap_or(port::FALLBACK_LINE_RATE),
        }
    }

    fn start(&self, table: &FrameTable, args: &Args, stop: &Arc<AtomicBool>) -> Result<Source> {
        if self.engine() != EngineName::Xdp {
            let engine: Box<dyn Engine> = match self {
                Self::Testbed(testbed) => testbed.start_any_engine(table, stop)?.0,
                Self::Port(port, _) => {
                    let cores = args.device.cores.clone().unwrap_or_else(|| vec![0]);
                    let crew = Crew { send_cores: &cores, receive_cores: &[], table, stop: Arc::clone(stop) };
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
            Self::Port(port, _) => {
                let cores = args.device.cores.clone().unwrap_or_else(|| vec![0]);
                Generator::start(table, &[port::reference(port)], None, &cores)?
            }
        };
        Ok(Source::Kernel(Box::new(generator)))
    }

    /// What the interfaces counted that frames leave by.
    fn interfaces(&self, directions: usize) -> Result<Vec<InterfaceCounters>> {
        let mut counters = match self {
            Self::Testbed(testbed) => testbed.interface_counters()?,
            Self::Port(port, _) => lab::interface_counters([&port.name])?.to_vec(),
        };
        counters.truncate(directions);
        Ok(counters)
    }

    /// What the device received, if it counts.
    fn received(&self) -> Result<Option<u64>> {
        let Self::Testbed(testbed) = self else { return Ok(None) };
        let counters = testbed.lab().map(lab::Lab::dut_counters).transpose()?.flatten();
        let counted = counters.map(|sides| sides.iter().map(|side| side.frames).sum());
        Ok(counted.or_else(|| Some(testbed.passed()?.iter().map(|side| side.frames).sum())))
    }
}

/// The interval of the kernel's generator that all is sent in.
const INTERVAL: u64 = 1;

/// What sends.
enum Source {
    /// The kernel's generator.
    Kernel(Box<Generator>),
    /// An engine that also receives; all is sent in its first interval.
    Engine(Box<dyn Engine>),
}

impl Source {
    fn begin(&mut self, load: Load) -> Result<()> {
        match self {
            Self::Kernel(generator) => generator.begin(INTERVAL, load, monotonic()?)?,
            Self::Engine(engine) => drop(engine.begin(load)?),
        }
        Ok(())
    }

    fn end(&mut self) -> Result<()> {
        match self {
            Self::Kernel(generator) => generator.begin(INTERVAL + 1, Load::Idle, monotonic()?)?,
            Self::Engine(engine) => drop(engine.begin(Load::Idle)?),
        }
        Ok(())
    }

    /// Waits until it is known what left: the driver may take the last frames late. No longer than 2 s.
    fn wait_until_left(&self) {
        let Self::Engine(engine) = self else { return };
        let clock = Instant::now();
        while !engine.has_left(0) && clock.elapsed() < LAST_LEAVE {
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Fails when it cannot go on.
    fn check(&mut self) -> Result<(), Error> {
        match self {
            Self::Kernel(generator) => generator.check(),
            Self::Engine(engine) => match engine.wait(Duration::ZERO) {
                Err(Error::Interrupted) => Ok(()),
                other => other,
            },
        }
    }

    fn tally(&mut self, directions: usize) -> Result<Tally> {
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
    fn refused(&self, total: Tally) -> Option<u64> {
        matches!(self, Self::Kernel(_)).then_some(total.0.refused)
    }
}

/// Frames sent, of all directions.
#[derive(Clone, Copy, Default)]
struct Tally(Sent);

impl Tally {
    fn read(generator: &Generator, directions: usize) -> Result<Self> {
        let mut sum = Sent::default();
        for direction in 0..directions {
            sum.add(&generator.sent(INTERVAL, direction)?);
        }
        Ok(Self(sum))
    }

    /// What was added since `earlier`.
    fn since(self, earlier: Self) -> Self {
        Self(Sent {
            frames: self.0.frames.saturating_sub(earlier.0.frames),
            bytes: self.0.bytes.saturating_sub(earlier.0.bytes),
            unsent: self.0.unsent - earlier.0.unsent,
            untaken: self.0.untaken - earlier.0.untaken,
            refused: self.0.refused - earlier.0.refused,
        })
    }

    /// Why frames were not sent, and how many.
    fn reasons(self) -> impl Iterator<Item = (&'static str, u64)> {
        let late = ("the tester was too late", self.0.unsent);
        std::iter::once(late).filter(|(_, frames)| *frames > 0).chain(self.0.untaken.reasons())
    }

    /// Whether frames were due and none was sent.
    fn is_nothing(self) -> bool {
        self.0.frames == 0 && self.0.all_unsent() > 0
    }

    /// Whether the interfaces counted the same to the frame.
    fn is_all_of(self, left: &InterfaceCounters, refused: Option<u64>) -> bool {
        let all = left.sent + if refused.is_none() { left.send_dropped } else { 0 };
        all == self.0.frames.saturating_sub(refused.unwrap_or(0))
    }

    /// What to say if the interfaces counted something else.
    fn disagreement(self, left: &InterfaceCounters, refused: Option<u64>) -> Option<String> {
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

    fn line(self, seconds: f64) -> String {
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
    fn json(self, seconds: f64, received: Option<u64>, left: Option<u64>) -> serde_json::Value {
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
