//! The engine on memifs of our own: on both ends of one, which joins its ports like a cable, and beside
//! peers that come and go.

#![allow(clippy::unwrap_used)] // a test may panic

mod user_space;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use engine::memif::{End, MemifEngine};
use engine::user_space::Crew;
use engine::{Engine, Error, Load};
use memif::{Frame, Memif, Opened, Role, Socket};
use traffic::{Directions, FrameTable, IpVersion, Tunables};

use user_space::{is_accounted_for, sized, table, trial};

/// A name that is new each time.
fn socket() -> Socket {
    static MADE: AtomicU32 = AtomicU32::new(0);
    Socket::Abstract(format!("/engine-{}-{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed)))
}

fn end(number: u8, role: Role, socket: &Socket) -> End {
    let secret = String::new();
    End { name: format!("memif{number}"), role, socket: socket.clone(), id: 0, secret, unsealed: false }
}

/// Both ends of one memif.
fn cable() -> [End; 2] {
    let socket = socket();
    [end(0, Role::Server, &socket), end(1, Role::Client, &socket)]
}

fn start([zero, one]: &[End; 2], table: &FrameTable, cores: [&[usize]; 2]) -> Result<MemifEngine, Error> {
    let [send_cores, receive_cores] = cores;
    let stop = Arc::new(AtomicBool::new(false));
    MemifEngine::start([zero, one], &Crew { send_cores, receive_cores, table, stop })
}

#[test]
fn every_intended_frame_is_offered_or_unsent_and_all_offered_come_back() {
    for (size, directions) in [
        ("64", Directions::Forward),
        ("64", Directions::Both),
        ("imix", Directions::Both),
        ("9216", Directions::Both),
    ] {
        let mut engine = start(&cable(), &sized(size, directions), [&[0], &[]]).unwrap();
        for pps in [1e3, 50e3] {
            for counts in trial(&mut engine, Load::Rate(pps), 100) {
                assert!(is_accounted_for(&counts), "{size} at {pps}: {counts:?}");
                assert!(
                    counts.offered > 0 && counts.forwarded == counts.offered,
                    "{size} at {pps}: {counts:?}"
                );
                assert_eq!(counts.forwarded_bytes, counts.offered_bytes);
            }
        }
        for totals in engine.totals().unwrap() {
            assert_eq!((totals.duplicates, totals.reordered, totals.returned, totals.foreign), (0, 0, 0, 0));
            assert_eq!(totals.forwarded, totals.offered);
            assert_eq!(totals.latency.total(), totals.forwarded);
        }
    }
}

#[test]
fn at_full_rate_what_found_no_room_was_offered_and_refused() {
    let mut engine = start(&cable(), &sized("64", Directions::Forward), [&[0], &[]]).unwrap();
    let counts = trial(&mut engine, Load::Max, 200)[0];
    assert!(counts.forwarded > 10_000 && counts.forwarded <= counts.offered, "{counts:?}");
    let watch = engine.watch();
    let [zero, one] = watch.read().unwrap();
    assert_eq!(zero.sent + zero.send_dropped, counts.offered, "{zero:?}");
    assert_eq!((zero.sent, one.received, one.sent), (counts.forwarded, counts.forwarded, 0), "{one:?}");
    assert_eq!(engine.headway().read().refused, Some(zero.send_dropped + one.send_dropped));
    drop(engine);
    assert_eq!(watch.read(), None, "what is seen from beside ends with the engine");
}

#[test]
fn a_worker_is_idle_between_the_frames_of_a_low_load_and_not_while_it_sends_all_it_can() {
    let mut engine = start(&cable(), &sized("64", Directions::Forward), [&[0], &[]]).unwrap();
    let headway = engine.headway();
    let mut idle = |load| {
        let (began, before) = (Instant::now(), headway.read().idle[&0]);
        engine.begin(load).unwrap();
        engine.wait(Duration::from_millis(200)).unwrap();
        let idle = headway.read().idle[&0] - before;
        assert!(idle <= began.elapsed(), "{idle:?}");
        idle
    };
    let (low, all) = (idle(Load::Rate(1e3)), idle(Load::Max));
    // Another process may have the core for most of the time.
    assert!(low > Duration::from_millis(5) && all < low / 2, "{low:?}, {all:?}");
}

#[test]
fn several_workers_share_the_queues_of_each_port() {
    if thread::available_parallelism().unwrap().get() < 2 {
        eprintln!("skipped: two workers need two cores");
        return;
    }
    let table = sized("64", Directions::Forward);
    let ways: [[&[usize]; 2]; 4] = [[&[0, 1], &[]], [&[0], &[1]], [&[0], &[0, 1]], [&[1, 0], &[1]]];
    for cores in ways {
        let mut engine = start(&cable(), &table, cores).unwrap();
        let trial = trial(&mut engine, Load::Rate(20e3), 200);
        for (counts, port) in trial.iter().zip(engine.watch().read().unwrap()) {
            // A worker that does not get its core lets its queue run full.
            assert!(counts.forwarded > 0, "{cores:?}: {counts:?}");
            assert_eq!(counts.forwarded + port.send_dropped, counts.offered, "{cores:?}: {counts:?}");
        }
        for totals in engine.totals().unwrap() {
            assert_eq!((totals.duplicates, totals.reordered, totals.returned, totals.foreign), (0, 0, 0, 0));
        }
    }
}

/// The other ends of two ports, which hand each frame on as it is from one to the other.
struct Device {
    stop: Arc<AtomicBool>,
    /// How many frames it has seen, of those that it keeps.
    seen: Arc<AtomicUsize>,
    thread: Option<JoinHandle<Vec<Vec<u8>>>>,
}

impl Device {
    /// Its buffers hold what they should not.
    fn start(ends: &[End; 2]) -> Self {
        let opened = ends.each_ref().map(|end| {
            let role = if end.role == Role::Server { Role::Client } else { Role::Server };
            let config = memif::Config::new(role, end.socket.clone());
            Memif::open(memif::Config { fill: 0xee, buffer_size: 9600, ..config }).unwrap()
        });
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let seen = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&seen);
        let thread = Some(thread::spawn(move || forward(opened, &stopped, &counted)));
        Self { stop, seen, thread }
    }

    /// Waits until it has seen a frame: it may share a core with what sends.
    fn wait_for_a_frame(&self) {
        let deadline = Instant::now() + Duration::from_secs(10);
        while self.seen.load(Ordering::Relaxed) == 0 {
            assert!(Instant::now() < deadline, "no frame reaches the device");
            thread::sleep(Duration::from_millis(2));
        }
    }

    /// Ends it; some of the frames that it saw leave.
    fn stop(mut self) -> Vec<Vec<u8>> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap()
    }
}

fn forward(mut opened: [Opened; 2], stop: &AtomicBool, count: &AtomicUsize) -> Vec<Vec<u8>> {
    let mut seen = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        opened.iter_mut().for_each(|end| drop(end.memif.poll(Duration::ZERO)));
        let [zero, one] = &mut opened;
        pass(zero, one, &mut seen);
        pass(one, zero, &mut seen);
        count.store(seen.len(), Ordering::Relaxed);
        thread::yield_now();
    }
    seen
}

fn pass(from: &mut Opened, to: &mut Opened, seen: &mut Vec<Vec<u8>>) {
    let mut frames = [Frame::NONE; 64];
    let count = from.receivers[0].receive(&mut frames);
    for frame in &frames[..count] {
        if seen.len() < 100 {
            // SAFETY: it is lent until the release below.
            seen.push(unsafe { frame.bytes() }.to_vec());
        }
    }
    // SAFETY: as above.
    unsafe { to.senders[0].send_frames(&frames[..count]) };
    from.receivers[0].release();
}

fn wait_for_links(engine: &mut MemifEngine, up: bool) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while engine.are_up() != [up; 2] {
        assert!(Instant::now() < deadline, "the links do not change");
        thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn frames_are_those_of_the_table_in_whosever_memory_they_are_built() {
    let tunables = Tunables {
        ip: Some(IpVersion::V6),
        vlan: "200,100".parse().ok(),
        vm: "tuple".parse().ok(),
        size: "600".parse().ok(),
    };
    let table = table(&tunables, Directions::Forward);
    for role in [Role::Server, Role::Client] {
        let ends = [socket(), socket()].map(|socket| end(0, role, &socket));
        let device = Device::start(&ends);
        let mut engine = start(&ends, &table, [&[0], &[]]).unwrap();
        let counts = trial(&mut engine, Load::Rate(5e3), 100)[0];
        assert!(counts.offered > 0, "{counts:?}");
        device.wait_for_a_frame();
        drop(engine);
        let seen = device.stop();
        for frame in seen {
            assert_eq!(frame.len(), 596, "{role:?}");
            let payload = &frame[table.header_length..frame.len() - wire::signature::LENGTH];
            assert!(payload.iter().all(|byte| *byte == table.fill), "{role:?}: {payload:x?}");
        }
    }
}

#[test]
fn while_a_peer_is_gone_what_is_due_is_unsent_and_when_it_returns_it_is_offered_again() {
    for role in [Role::Server, Role::Client] {
        let ends = [socket(), socket()].map(|socket| end(0, role, &socket));
        let mut device = Device::start(&ends);
        let mut engine = start(&ends, &sized("64", Directions::Both), [&[0], &[]]).unwrap();
        for _ in 0..2 {
            for counts in trial(&mut engine, Load::Rate(20e3), 100) {
                assert!(counts.offered > 0 && is_accounted_for(&counts), "{counts:?}");
            }
            device.stop();
            wait_for_links(&mut engine, false);
            for counts in trial(&mut engine, Load::Rate(20e3), 100) {
                assert!(counts.offered == 0 && is_accounted_for(&counts), "{counts:?}");
            }
            device = Device::start(&ends);
            wait_for_links(&mut engine, true);
        }
        device.stop();
    }
}

#[test]
fn a_peer_that_vanishes_for_good_ends_the_run_with_the_cause() {
    let ends = [socket(), socket()].map(|socket| end(0, Role::Client, &socket));
    let device = Device::start(&ends);
    let mut engine = start(&ends, &sized("64", Directions::Both), [&[0], &[]]).unwrap();
    engine.begin(Load::Rate(20e3)).unwrap();
    engine.wait(Duration::from_millis(50)).unwrap();
    device.stop();
    let error = engine.wait(Duration::from_secs(20)).unwrap_err();
    let text = error.to_string();
    assert!(
        matches!(error, Error::Failed(_)) && text.contains("memif0") && text.contains("other end"),
        "{text}"
    );
}

#[test]
fn what_cannot_be_is_refused_with_its_cause() {
    let table = sized("64", Directions::Forward);
    let refusal = |ends: &[End; 2], cores: &[usize]| {
        start(ends, &table, [cores, &[]]).err().map(|error| error.to_string()).unwrap_or_default()
    };
    assert!(refusal(&cable(), &[0, 0]).contains("twice"));
    assert!(refusal(&cable(), &[4000]).contains("core 4000"));
    let nowhere = Socket::Path("/none/such".into());
    let text = refusal(&[end(0, Role::Server, &nowhere), end(1, Role::Client, &nowhere)], &[0]);
    assert!(text.contains("does its directory exist"), "{text}");
    let alone = [0, 1].map(|number| end(number, Role::Client, &socket()));
    let text = refusal(&alone, &[0]);
    assert!(text.contains("port memif0 has no other end") && text.contains("start it first"), "{text}");
}
