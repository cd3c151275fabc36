//! The user-space twin of `calibrated`, in a process of its own: its rules and two sockets enter; frames are
//! forwarded between two memifs until the process is ended. `linerate` starts it, people do not.

use std::convert::Infallible;
use std::path::Path;
use std::process;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use engine::live::monotonic;
use engine::xdp::precedence;
use wording::usage::misuse;

use crate::{DutSpec, Rules};
use memif::{Config, Frame, Memif, Receiver, Role, Sender, Socket};

use super::counters::Counters;

/// Frames that are received together at most, and share a reading of the clock.
const BURST: usize = 64;
/// Turns between two looks after who connects: some tens of microseconds where nothing arrives, and some
/// milliseconds under load.
const TURNS: usize = 1 << 10;
/// How long nothing must arrive before it rests. At 10,000 frames a second and more, where latencies are measured, it
/// never does. A client of `linerate serve` on the same core would otherwise have a hundredth of it.
const QUIET: Duration = Duration::from_micros(250);
/// How long it rests before it looks again.
const NAP: Duration = Duration::from_micros(50);

/// Forwards between the abstract `sockets` of port 0 and port 1, each with `queues` queues, as `dut` does, and
/// counts in the file `counters`.
///
/// # Errors
/// When it has no rules for frames in user space, or a socket or the file cannot be used.
pub fn run(dut: &DutSpec, queues: u16, sockets: &[String], counters: &Path) -> Result<Infallible> {
    // Other processes on its core still get turns.
    precedence::be_urgent();
    let Some(rules) = dut.rules(u64::from(process::id())) else {
        return Err(misuse(format!("{} is not available with --engine memif or dpdk", dut.name())));
    };
    let counters = Counters::open(counters)?;
    let [zero, one] = [0, 1].map(|number| {
        let socket = sockets.get(number).cloned().unwrap_or_default();
        Memif::open(Config {
            receive_queues: queues,
            send_queues: queues,
            ..Config::new(Role::Server, Socket::Abstract(socket))
        })
    });
    let (zero, one) = (zero?, one?);
    let forwarder = Forwarder {
        memifs: [zero.memif, one.memif],
        receive: [zero.receivers, one.receivers],
        send: [zero.senders, one.senders],
        rules,
        counters,
    };
    forwarder.run()
}

/// Carries frames between two ports.
struct Forwarder {
    memifs: [Memif; 2],
    receive: [Vec<Receiver>; 2],
    send: [Vec<Sender>; 2],
    rules: Rules,
    counters: Counters,
}

impl Forwarder {
    /// Rests while nothing arrives, and never ends by itself.
    fn run(mut self) -> Result<Infallible> {
        self.counters.set_ready();
        let queues = self.receive[0].len();
        let (mut busy, mut turns) = (Instant::now(), TURNS);
        loop {
            for memif in &mut self.memifs {
                memif.poll(Duration::ZERO)?;
            }
            let mut carried = false;
            for _ in 0..turns {
                for queue in 0..queues {
                    carried |= self.carry(0, queue)?;
                    carried |= self.carry(1, queue)?;
                }
            }
            if carried {
                (busy, turns) = (Instant::now(), TURNS);
            } else if busy.elapsed() > QUIET {
                thread::sleep(NAP);
                turns = 1;
            }
        }
    }

    /// Judges what has come in by `queue` of port `from`, and sends on by the other port what passes. Says whether
    /// anything has come in.
    #[inline]
    fn carry(&mut self, from: usize, queue: usize) -> Result<bool> {
        let mut frames = [Frame::NONE; BURST];
        let count = self.receive[from][queue].receive(&mut frames);
        if count == 0 {
            return Ok(false);
        }
        let now = monotonic()?;
        let mut passed = 0;
        for index in 0..count {
            // SAFETY: it is lent until the release below, and nobody else uses it.
            if self.rules.pass(from, unsafe { frames[index].bytes() }, now) {
                frames.swap(passed, index);
                passed += 1;
            }
        }
        // SAFETY: as above.
        let sent = unsafe { self.send[1 - from][queue].send_frames(&frames[..passed]) };
        self.receive[from][queue].release();
        self.rules.refuse(from, (passed - sent) as u64);
        self.counters.set(from, &self.rules.passed(from));
        Ok(true)
    }
}
