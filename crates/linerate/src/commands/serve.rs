//! `linerate serve`: TRex's clients drive the ports of a testbed.
//!
//! Two sockets of ZeroMQ and the clock are joined to [`trex::Server`], which has the protocol.

use std::collections::VecDeque;
use std::fs;
use std::io::Read;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use engine::replay::Carrier;
use engine::{Engine, Others};
use live::{About, Board, Steering};
use results::record::{DirectionSample, Phase, Sample};
use testbed::control::Control;
use testbed::{Testbed, stop};
use traffic::FrameTable;
use trex::{Counters, PortFacts, Server, Tester, Version};
use wire::size;
use zeromq::{Context, Kind};

use crate::Exit;
use crate::args::Device;
use crate::live::Live;

/// The longest that a message is waited for, so that Ctrl-C is seen.
const LONGEST_WAIT: Duration = Duration::from_millis(100);
/// How long clients have to hear that the server ends.
const FAREWELL: Duration = Duration::from_millis(200);

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    device: Device,
    /// The largest frame that streams may have, in bytes with FCS
    #[arg(long, value_name = "BYTES", default_value_t = 1518, value_parser = clap::value_parser!(u16).range(i64::from(size::MIN)..=i64::from(size::MAX)), help_heading = "Server")]
    max_frame_size: u16,
    /// The address to listen at: anybody who reaches it can send traffic, since the protocol has no passwords
    #[arg(long, value_name = "IP", default_value = "127.0.0.1", help_heading = "Server")]
    listen: IpAddr,
    /// The port for calls; 0 is any that is free
    #[arg(long, value_name = "PORT", default_value_t = 4501, help_heading = "Server")]
    rpc_port: u16,
    /// The port for events; 0 is any that is free
    #[arg(long, value_name = "PORT", default_value_t = 4500, help_heading = "Server")]
    publish_port: u16,
    #[command(flatten)]
    live: Live,
}

pub fn main(args: &Args) -> Result<Exit> {
    // What is missing is said before anything is set up.
    let context = Context::new()?;
    let address = |port: u16| match args.listen {
        IpAddr::V4(ip) => format!("tcp://{ip}:{port}"),
        IpAddr::V6(ip) => format!("tcp://[{ip}]:{port}"),
    };
    let elsewhere = "give another --listen, --rpc-port or --publish-port";
    let mut calls = context.listen(Kind::Reply, &address(args.rpc_port)).context(elsewhere)?;
    let mut events = context.listen(Kind::Publish, &address(args.publish_port)).context(elsewhere)?;
    let stop = stop::flag()?;
    let showing = args.live.start()?;
    let testbed = Testbed::open(&args.device.target()?, usize::from(args.max_frame_size))?;
    let bench = Bench::new(testbed, usize::from(args.max_frame_size), Arc::clone(&stop));
    eprintln!("{}", bench.describe());
    for note in bench.testbed.notes() {
        eprintln!("{note}");
    }
    if !args.listen.is_loopback() {
        eprintln!("anybody who reaches {} can send traffic: the protocol has no passwords", args.listen);
    }
    eprintln!("TRex clients: calls at {}, events at {}; Ctrl-C ends", calls.address()?, events.address()?);

    let mut shown = showing.as_ref().map(|showing| Shown::new(showing.board(), &bench));
    let clock = Instant::now();
    let mut server = Server::new(bench, version(), seed()?);
    while !stop::is_set(&stop) {
        let now = clock.elapsed();
        // From now on: an engine may have been started meanwhile.
        let wait = server.tick(now).saturating_sub(clock.elapsed()).min(LONGEST_WAIT);
        if let (Some(shown), Some((at, counters))) = (shown.as_mut(), server.counters()) {
            shown.follow(at, counters);
        }
        shown.iter().for_each(|shown| shown.steer(&mut server, now));
        if server.take_wake() {
            events.send(Server::<Bench>::WAKE)?;
        }
        // Whole milliseconds: rounded up, so that nothing spins.
        if let Some(message) = calls.receive(wait + Duration::from_micros(999))? {
            let reply = server.handle(message, clock.elapsed());
            calls.send(&reply)?;
        }
        if server.take_wake() {
            events.send(Server::<Bench>::WAKE)?;
        }
    }
    server.stop("the user ended it");
    events.send(Server::<Bench>::WAKE)?;
    let end = Instant::now() + FAREWELL;
    while Instant::now() < end {
        if let Some(message) = calls.receive(Duration::from_millis(10))? {
            let reply = server.handle(message, clock.elapsed());
            calls.send(&reply)?;
        }
    }
    if let Some(remote) = server.into_tester().testbed.remote() {
        remote.undo()?;
    }
    Ok(Exit::Done)
}

fn version() -> Version {
    let hostname = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    Version {
        version: format!("linerate {}", env!("CARGO_PKG_VERSION")),
        hostname: hostname.trim().to_owned(),
    }
}

/// A number that nobody knows.
fn seed() -> Result<u64> {
    let mut bytes = [0; 8];
    let read = fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
    read.context("cannot read /dev/urandom")?;
    Ok(u64::from_ne_bytes(bytes))
}

/// What the server's ports do, as a board shows it. What is on its way counts as lost until it returns.
struct Shown {
    board: Board,
    last: Option<(Duration, [Counters; 2])>,
    waiting: VecDeque<Arc<Sample>>,
}

impl Shown {
    fn new(board: Board, bench: &Bench) -> Self {
        board.begin(About {
            name: bench.describe(),
            strategy: "serve".to_owned(),
            dut: bench.testbed.dut_name().to_owned(),
            line_rate_bps: bench.testbed.line_rate_bps(),
            ..About::default()
        });
        Self { board, last: None, waiting: VecDeque::new() }
    }

    /// Does what a person wants of the load that clients have started.
    fn steer(&self, server: &mut Server<Bench>, now: Duration) {
        let load = server.load().map(|(percent, paused)| Steering { percent, paused });
        let Some(Steering { percent, paused }) = self.board.steer(load) else { return };
        if let Err(reason) = server.set_load(percent, paused, now) {
            eprintln!("the load stays as it is: {reason}");
        }
    }

    /// These are the ports' counters `at` this time.
    fn follow(&mut self, at: Duration, counters: [Counters; 2]) {
        let before = self.last;
        if before.is_some_and(|(then, _)| then == at) {
            return;
        }
        self.last = Some((at, counters));
        let Some((then, [zero, one])) = before else { return };
        let seconds = at.saturating_sub(then).as_secs_f64();
        let [new_zero, new_one] = counters;
        let directions = [(zero, new_zero, one, new_one), (one, new_one, zero, new_zero)]
            .map(|(from, new_from, to, new_to)| direction(seconds, [from, new_from], [to, new_to]));
        self.waiting.push_back(Arc::new(Sample {
            at_s: then.as_secs_f64(),
            duration_s: seconds,
            phase: Phase::Hold,
            dut_core_busy: None,
            disturbed: None,
            noise: None,
            directions: directions.to_vec(),
        }));
        self.board.put(&mut self.waiting);
    }
}

/// One direction between two readings, `from` the port that sends and `to` the one that receives.
fn direction(seconds: f64, from: [Counters; 2], to: [Counters; 2]) -> DirectionSample {
    let since = |after: u64, before: u64| after.saturating_sub(before);
    let (offered, unsent) = (since(from[1].sent, from[0].sent), since(from[1].unsent, from[0].unsent));
    let forwarded = since(to[1].received, to[0].received);
    let bytes = since(to[1].received_bytes, to[0].received_bytes);
    let overhead = forwarded * u64::from(size::L1_OVERHEAD);
    DirectionSample {
        intended_pps: (offered + unsent) as f64 / seconds,
        offered_pps: offered as f64 / seconds,
        forwarded_pps: forwarded as f64 / seconds,
        offered,
        forwarded,
        unsent,
        loss_ratio: since(offered, forwarded) as f64 / offered.max(1) as f64,
        l1_bps: (bytes + overhead) as f64 * 8.0 / seconds,
        l2_bps: bytes as f64 * 8.0 / seconds,
        ..DirectionSample::default()
    }
}

/// A testbed as the server knows it.
struct Bench {
    testbed: Testbed,
    facts: [PortFacts; 2],
    largest: usize,
    stop: Arc<AtomicBool>,
    /// Keeps the server beside the generator, off the device's core.
    control: Option<Control>,
}

impl Bench {
    fn new(testbed: Testbed, largest: usize, stop: Arc<AtomicBool>) -> Self {
        let facts = testbed.ports().each_ref().map(|port| PortFacts {
            name: port.name.clone(),
            driver: port.driver.clone().unwrap_or_else(|| "unknown".to_owned()),
            source: port.mac,
            destination: port.next_hop_mac,
            line_rate_bps: testbed.line_rate_bps(),
        });
        Self { testbed, facts, largest, stop, control: None }
    }

    fn describe(&self) -> String {
        let [zero, one] = &self.facts;
        format!(
            "port 0 is {}, port 1 is {}, between them {}; sent by {} on {}",
            zero.name,
            one.name,
            self.testbed.dut_name(),
            self.testbed.engine(),
            self.testbed.cores_in_words()
        )
    }
}

impl Tester for Bench {
    fn ports(&self) -> &[PortFacts; 2] {
        &self.facts
    }

    fn start(&mut self, table: &FrameTable) -> Result<Box<dyn Engine>, String> {
        let longest = table.rows.iter().map(|row| usize::from(row.length + size::FCS)).max().unwrap_or(0);
        if longest > self.largest {
            return Err(format!(
                "frames of {longest} bytes are larger than this server allows: start it with --max-frame-size {longest}"
            ));
        }
        // Threads start where their maker runs: those of the engine not beside the generator.
        self.control = None;
        let started = self.testbed.start_any_engine(table, &self.stop);
        self.control = Some(Control::beside(self.testbed.generating_cores()));
        started.map(|(engine, _)| engine).map_err(|error| format!("{error:#}"))
    }

    fn open(&mut self, port: usize) -> Result<Box<dyn Carrier>, String> {
        self.testbed.port_carrier(port).map_err(|error| format!("{error:#}"))
    }

    fn can_take_others(&self) -> bool {
        self.testbed.can_take_others()
    }

    fn take_others(&mut self, port: usize, others: Others) -> Result<Box<dyn std::any::Any>, String> {
        self.testbed.take_others(port, others).map_err(|error| format!("{error:#}"))
    }
}
