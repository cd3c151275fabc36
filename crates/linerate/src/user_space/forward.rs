//! The user-space twin of `calibrated`, in a process of its own: its rules and two sockets enter; frames are
//! forwarded between two memifs until the process is ended. `linerate` starts it, people do not.

use std::convert::Infallible;
use std::path::PathBuf;
use std::process;

use anyhow::{Result, bail};
use dpdk::{Burst, Config, Dpdk, Memory, Pool, RxQueue, TxQueue};
use engine::dpdk::{Opened, port_config, room};
use engine::live::monotonic;
use engine::xdp::precedence::{self, Rank};
use lab::DutSpec;
use lab::dut::Rules;

use super::counters::Counters;
use super::dut::server;
use crate::Ending;
use crate::args::misuse;

/// Frames that are received together at most, and share a reading of the clock.
const BURST: usize = 64;
/// Buffers for frames on their way.
const BUFFERS: u32 = 4095;
/// Memory for all that, and what DPDK needs beside it.
const MEBIBYTES: u32 = 256;

#[derive(clap::Args)]
pub struct Args {
    /// The device
    dut: DutSpec,
    /// The core that it forwards on
    #[arg(long)]
    core: usize,
    /// Queues of each port
    #[arg(long)]
    queues: usize,
    /// The longest frame, FCS included
    #[arg(long)]
    max_frame_size: usize,
    /// The abstract sockets of port 0 and port 1
    #[arg(long, num_args = 2, required = true)]
    sockets: Vec<String>,
    /// The file of its counters
    #[arg(long)]
    counters: PathBuf,
}

pub fn main(args: &Args) -> Result<Ending> {
    // Before all else, so that DPDK's threads have it too. Other processes on its core still get turns.
    precedence::take(Rank::Worker, false);
    let Some(rules) = args.dut.rules(u64::from(process::id())) else {
        return Err(misuse(format!("{} has no twin in user space", args.dut.name())));
    };
    let counters = Counters::open(&args.counters)?;
    let memory = Memory::Ordinary { mebibytes: MEBIBYTES };
    let dpdk = Dpdk::start(&Config { core: args.core, memory, cards: Vec::new() })?;
    let _thread = dpdk.register_thread()?;
    let pool = Pool::new(&dpdk, BUFFERS * args.queues as u32, room(args.max_frame_size) as u16, None)?;
    let config = port_config(args.queues, args.max_frame_size.saturating_sub(usize::from(wire::size::FCS)));
    let (mut receive, mut send) = (Vec::new(), Vec::new());
    for (number, socket) in args.sockets.iter().enumerate() {
        let Opened { queues, .. } = Opened::new(&dpdk, &server(number, socket), &config, &pool)?;
        receive.push(queues.receive);
        send.push(queues.send);
    }
    let (Ok(receive), Ok(send)) = (receive.try_into(), send.try_into()) else {
        bail!("a device has two ports: give two sockets");
    };
    let burst = Burst::new(&dpdk);
    let forwarder = Forwarder { receive, send, rules, burst, counters };
    match forwarder.run()? {}
}

/// Carries frames between two ports.
struct Forwarder {
    receive: [Vec<RxQueue>; 2],
    send: [Vec<TxQueue>; 2],
    rules: Rules,
    burst: Burst,
    counters: Counters,
}

impl Forwarder {
    /// Never sleeps, and never ends by itself.
    fn run(mut self) -> Result<Infallible> {
        self.counters.set_ready();
        let queues = self.receive[0].len();
        loop {
            for queue in 0..queues {
                self.carry(0, queue)?;
                self.carry(1, queue)?;
            }
        }
    }

    /// Judges what has come in by `queue` of port `from`, and sends on by the other port what passes.
    #[inline]
    fn carry(&mut self, from: usize, queue: usize) -> Result<()> {
        if self.receive[from][queue].receive(&mut self.burst, BURST) == 0 {
            return Ok(());
        }
        let now = monotonic()?;
        let rules = &mut self.rules;
        self.burst.retain(|frame| rules.pass(from, frame, now));
        let count = self.burst.len();
        if count > 0 {
            self.send[1 - from][queue].send(&mut self.burst, count);
            self.rules.refuse(from, self.burst.len() as u64);
            self.burst.clear();
        }
        self.counters.set(from, &self.rules.passed(from));
        Ok(())
    }
}
