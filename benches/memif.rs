//! How fast frames go through a memif, ours beside DPDK's:
//! `cargo bench -p memif --bench memif [PART OF A ROW'S NAME]`, on an otherwise idle machine with two cores
//! at least. Without dpdk-testpmd, its rows are missing.
//!
//! A sender on the first core, a receiver on the second (but for the first row), frames of 60 bytes without
//! FCS in bursts of testpmd's size, rings of 1024. All rows take turns, so that each has its share of the
//! machine's fast and slow phases. Figures are medians of the turns.

#![allow(clippy::unwrap_used)] // a benchmark may end at its first error

#[path = "memif/testpmd.rs"]
mod testpmd;

use std::env;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use memif::{Config, Frame, Memif, Opened, Receiver, Role, Sender, Socket};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;

use crate::testpmd::Testpmd;

const TURNS: usize = 3;
const TURN: Duration = Duration::from_millis(300);
/// Frames of a burst.
const BURST: usize = 32;
/// Bytes of a frame, without FCS.
const LENGTH: usize = 60;
/// Where frames are sent, and where they are received.
const CORES: [usize; 2] = [0, 1];

/// Frames a second, or nothing where a part is missing.
type Row = (&'static str, fn() -> Option<f64>);

const ROWS: [Row; 8] = [
    ("ours copies and reads, in turns on one core", || Some(one_core())),
    ("ours copies, ours reads", || Some(ours(Role::Client, copy))),
    ("ours copies as server, ours reads", || Some(ours(Role::Server, copy))),
    ("ours builds in the ring, ours reads", || Some(ours(Role::Client, build))),
    ("ours copies, testpmd reads", || to_testpmd(copy)),
    ("ours builds in the ring, testpmd reads", || to_testpmd(build)),
    ("testpmd sends, ours reads", from_testpmd),
    ("testpmd sends, testpmd reads", testpmd_alone),
];

fn main() {
    let wanted = env::args().skip(1).find(|argument| !argument.starts_with('-')).unwrap_or_default();
    let rows: Vec<Row> = ROWS.into_iter().filter(|(name, _)| name.contains(&wanted)).collect();
    let mut rates = vec![Vec::new(); rows.len()];
    for _ in 0..TURNS {
        for ((_, measure), rates) in rows.iter().zip(&mut rates) {
            rates.extend(measure());
        }
    }
    println!("| way | Mpps | ns a frame |\n|---|---|---|");
    for ((name, _), mut rates) in rows.into_iter().zip(rates) {
        rates.sort_by(f64::total_cmp);
        match rates.get(rates.len() / 2) {
            Some(rate) => println!("| {name} | {:.1} | {:.1} |", rate / 1e6, 1e9 / rate),
            None => println!("| {name} | – | – |"),
        }
    }
}

/// A socket of this turn alone.
fn socket() -> String {
    static MADE: AtomicU32 = AtomicU32::new(0);
    format!("/memif-bench-{}-{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed))
}

fn open(role: Role, socket: &str) -> Opened {
    Memif::open(Config::new(role, Socket::Abstract(socket.to_owned()))).unwrap()
}

fn pin(core: usize) {
    let mut set = CpuSet::new();
    set.set(core).unwrap();
    sched_setaffinity(Pid::from_raw(0), &set).unwrap();
}

/// Waits for the connection, for ten seconds.
fn connect<'a>(ends: impl IntoIterator<Item = &'a mut Memif>) {
    let mut ends: Vec<&mut Memif> = ends.into_iter().collect();
    let deadline = Instant::now() + Duration::from_secs(10);
    while !ends.iter().all(|end| end.is_connected()) {
        assert!(Instant::now() < deadline, "no connection");
        ends.iter_mut().for_each(|end| drop(end.poll(Duration::from_millis(1)).unwrap()));
    }
}

/// Sends copies of a frame until the end.
fn copy(sender: &mut Sender, stop: &AtomicBool) {
    let frames = [[7; LENGTH]; BURST];
    let frames = frames.each_ref().map(|frame| &frame[..]);
    while !stop.load(Ordering::Relaxed) {
        sender.send(&frames);
    }
}

/// Builds frames in the ring until the end: a header that is the same, and a number.
fn build(sender: &mut Sender, stop: &AtomicBool) {
    let mut frames = [Frame::NONE; BURST];
    let header = [7_u8; LENGTH];
    let mut number = 0_u64;
    while !stop.load(Ordering::Relaxed) {
        let reserved = sender.reserve(&mut frames);
        for frame in &mut frames[..reserved] {
            frame.set_length(LENGTH);
            // SAFETY: it is reserved.
            let bytes = unsafe { frame.bytes() };
            bytes.copy_from_slice(&header);
            bytes[42..50].copy_from_slice(&number.to_be_bytes());
            number += 1;
        }
        sender.commit(&frames[..reserved]);
    }
}

/// Reads the first bytes of every frame until the end, as a router does; returns how many there were in
/// a second.
fn read(receiver: &mut Receiver) -> f64 {
    let mut lent = [Frame::NONE; 256];
    let (started, mut count, mut sum) = (Instant::now(), 0, 0_u64);
    while started.elapsed() < TURN {
        for _ in 0..16 {
            let received = receiver.receive(&mut lent);
            for frame in &lent[..received] {
                // SAFETY: it is lent.
                sum += unsafe { frame.start().cast::<u64>().read_unaligned() } & 1;
            }
            receiver.release();
            count += received;
        }
    }
    std::hint::black_box(sum);
    count as f64 / started.elapsed().as_secs_f64()
}

fn ours(sends: Role, send: fn(&mut Sender, &AtomicBool)) -> f64 {
    let socket = socket();
    let (mut server, mut client) = (open(Role::Server, &socket), open(Role::Client, &socket));
    connect([&mut server.memif, &mut client.memif]);
    let (mut from, mut to) = if sends == Role::Server { (server, client) } else { (client, server) };
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            pin(CORES[0]);
            send(&mut from.senders[0], &stop);
        });
        let rate = scope.spawn(|| {
            pin(CORES[1]);
            let _ = read(&mut to.receivers[0]);
            let rate = read(&mut to.receivers[0]);
            stop.store(true, Ordering::Relaxed);
            rate
        });
        rate.join().unwrap()
    })
}

/// Both ends by one thread: what frames cost that no other core has to be asked for.
fn one_core() -> f64 {
    let socket = socket();
    let (mut server, mut client) = (open(Role::Server, &socket), open(Role::Client, &socket));
    connect([&mut server.memif, &mut client.memif]);
    let frames = [[7; LENGTH]; BURST];
    let frames = frames.each_ref().map(|frame| &frame[..]);
    let (mut lent, mut count, started) = ([Frame::NONE; BURST], 0, Instant::now());
    while started.elapsed() < TURN {
        for _ in 0..256 {
            client.senders[0].send(&frames);
            count += server.receivers[0].receive(&mut lent);
            server.receivers[0].release();
        }
    }
    count as f64 / started.elapsed().as_secs_f64()
}

/// Into a testpmd that only receives.
fn to_testpmd(send: fn(&mut Sender, &AtomicBool)) -> Option<f64> {
    let socket = socket();
    let _testpmd = Testpmd::start("rxonly", "server", &socket, CORES[1])?;
    let Opened { mut memif, mut senders, receivers: _receivers } = open(Role::Client, &socket);
    connect([&mut memif]);
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let stop = &stop;
        scope.spawn(move || {
            pin(CORES[0]);
            send(&mut senders[0], stop);
        });
        thread::sleep(TURN);
        let (before, started) = (memif.sent()[0].frames, Instant::now());
        thread::sleep(TURN);
        let rate = (memif.sent()[0].frames - before) as f64 / started.elapsed().as_secs_f64();
        stop.store(true, Ordering::Relaxed);
        Some(rate)
    })
}

/// From a testpmd that only sends.
fn from_testpmd() -> Option<f64> {
    let socket = socket();
    let mut ours = open(Role::Server, &socket);
    let _testpmd = Testpmd::start("txonly", "client", &socket, CORES[0])?;
    connect([&mut ours.memif]);
    thread::scope(|scope| {
        let receiver = &mut ours.receivers[0];
        let reading = scope.spawn(move || {
            pin(CORES[1]);
            let _ = read(receiver);
            read(receiver)
        });
        reading.join().ok()
    })
}

/// From one testpmd to another.
fn testpmd_alone() -> Option<f64> {
    let socket = socket();
    let reader = Testpmd::start("rxonly", "server", &socket, CORES[1])?;
    let mut sender = Testpmd::start("txonly", "client", &socket, CORES[0])?;
    thread::sleep(TURN);
    let rate = sender.rate(TURN);
    // First the reader: the driver crashes who receives while the other end goes.
    drop(reader);
    Some(rate)
}
