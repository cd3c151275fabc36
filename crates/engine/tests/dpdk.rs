//! The user-space engine on two ports that shared memory joins like a cable, in ordinary memory.

#![allow(clippy::unwrap_used)] // a test may panic

mod user_space;

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use ::dpdk::{Pool, Port, PortConfig, Queues};
use engine::dpdk::{self, Dpdk, DpdkEngine};
use engine::user_space::{Crew, socket_name};
use engine::{Engine, Error, Load};
use traffic::{Directions, FrameTable, IpVersion, Tunables};

use user_space::{is_accounted_for, sized, table, trial};

/// The DPDK of this process, for one test at a time.
fn start() -> (Arc<Dpdk>, MutexGuard<'static, ()>) {
    static DPDK: OnceLock<Arc<Dpdk>> = OnceLock::new();
    static ONE: Mutex<()> = Mutex::new(());
    let guard = ONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    (Arc::clone(DPDK.get_or_init(|| dpdk::start(0, &[]).unwrap().0)), guard)
}

/// An engine on both ends of a memif.
fn cable(dpdk: &Arc<Dpdk>, table: &FrameTable) -> DpdkEngine {
    let [zero, one] = ends();
    start_on(dpdk, [&zero, &one], &[0], table).unwrap()
}

/// Both ends of a memif.
fn ends() -> [String; 2] {
    let socket = socket_name();
    [(0, "server"), (1, "client")].map(|(number, role)| memif(number, role, &socket))
}

fn memif(number: usize, role: &str, socket: &str) -> String {
    format!("net_memif_{role}{number},role={role},id=0,socket={socket},socket-abstract=yes,bsize=9600")
}

fn start_on(
    dpdk: &Arc<Dpdk>,
    devices: [&str; 2],
    cores: &[usize],
    table: &FrameTable,
) -> Result<DpdkEngine, Error> {
    start_apart(dpdk, devices, [cores, &[]], table)
}

/// An engine that sends on the first cores and receives on the second.
fn start_apart(
    dpdk: &Arc<Dpdk>,
    devices: [&str; 2],
    [send_cores, receive_cores]: [&[usize]; 2],
    table: &FrameTable,
) -> Result<DpdkEngine, Error> {
    let stop = Arc::new(AtomicBool::new(false));
    DpdkEngine::start(dpdk, devices, &Crew { send_cores, receive_cores, table, stop })
}

#[test]
fn every_intended_frame_is_offered_or_unsent_and_all_offered_come_back() {
    let (dpdk, _one) = start();
    for (size, directions) in [
        ("64", Directions::Forward),
        ("64", Directions::Both),
        ("imix", Directions::Both),
        ("9216", Directions::Both),
    ] {
        let table = sized(size, directions);
        let mut engine = cable(&dpdk, &table);
        for pps in [1e3, 50e3] {
            for counts in trial(&mut engine, Load::Rate(pps), 200) {
                assert!(is_accounted_for(&counts), "{size} at {pps}: {counts:?}");
                assert!(
                    counts.offered > 0 && counts.forwarded == counts.offered,
                    "{size} at {pps}: {counts:?}"
                );
                assert_eq!(counts.forwarded_bytes, counts.offered_bytes);
                assert!(counts.latency_min <= counts.latency_max && counts.latency_max < 1_000_000_000);
            }
        }
        for totals in engine.totals().unwrap() {
            assert_eq!((totals.duplicates, totals.reordered, totals.returned, totals.foreign), (0, 0, 0, 0));
            assert_eq!(totals.forwarded, totals.offered);
            assert_eq!(totals.latency.total(), totals.forwarded);
            assert_eq!(totals.lateness.total(), totals.offered);
        }
    }
}

#[test]
fn checksums_and_vlan_tags_are_as_in_the_table() {
    let (dpdk, _one) = start();
    let tunables = Tunables {
        ip: Some(IpVersion::V6),
        vlan: "200,100".parse().ok(),
        vm: "tuple".parse().ok(),
        ..Tunables::default()
    };
    let mut engine = cable(&dpdk, &table(&tunables, Directions::Forward));
    let counts = trial(&mut engine, Load::Rate(10e3), 100)[0];
    assert!(counts.forwarded > 0 && counts.forwarded == counts.offered, "{counts:?}");
}

#[test]
fn a_burst_has_exactly_its_frames() {
    let (dpdk, _one) = start();
    let mut engine = cable(&dpdk, &sized("64", Directions::Both));
    for counts in trial(&mut engine, Load::Burst { pps: 100e3, frames: 777 }, 60) {
        assert_eq!(counts.offered + counts.unsent, 777, "{counts:?}");
        assert_eq!(counts.forwarded, counts.offered, "{counts:?}");
    }
}

#[test]
fn at_full_rate_what_does_not_come_back_was_offered() {
    let (dpdk, _one) = start();
    let mut engine = cable(&dpdk, &sized("64", Directions::Forward));
    let counts = trial(&mut engine, Load::Max, 200)[0];
    eprintln!(
        "{:.2} Mpps offered, {:.2} back",
        counts.offered as f64 / 0.2e6,
        counts.forwarded as f64 / 0.2e6
    );
    assert!(counts.forwarded > 10_000 && counts.forwarded <= counts.offered, "{counts:?}");
    let timelines = engine.timeline(0).unwrap().unwrap();
    let bins = &timelines[0].bins;
    assert_eq!(bins.iter().map(|bin| bin.offered).sum::<u64>(), counts.offered);
    assert_eq!(bins.iter().map(|bin| bin.forwarded).sum::<u64>(), counts.forwarded);
    let [zero, one] = engine.watch().read().unwrap().unwrap();
    assert_eq!(zero.sent + zero.send_dropped, counts.offered, "{zero:?}");
    assert_eq!((one.received, one.sent), (counts.forwarded, 0), "{one:?}");
}

#[test]
fn what_is_seen_of_ports_from_beside_ends_with_the_engine() {
    let (dpdk, _one) = start();
    let engine = cable(&dpdk, &sized("64", Directions::Forward));
    let watch = engine.watch();
    assert!(watch.read().unwrap().is_some());
    drop(engine);
    assert_eq!(watch.read().unwrap(), None);
}

#[test]
fn several_workers_share_the_queues_of_each_port() {
    let (dpdk, _one) = start();
    if thread::available_parallelism().unwrap().get() < 2 {
        eprintln!("skipped: two workers need two cores");
        return;
    }
    let table = sized("64", Directions::Forward);
    // All do both; each does one; one sends what two receive, and the other way round.
    let ways: [[&[usize]; 2]; 4] = [[&[0, 1], &[]], [&[0], &[1]], [&[0], &[0, 1]], [&[1, 0], &[1]]];
    for cores in ways {
        let [zero, one] = ends();
        let mut engine = start_apart(&dpdk, [&zero, &one], cores, &table).unwrap();
        let mut left = 0.0;
        let trial = trial(&mut engine, Load::Rate(20e3), 200);
        for (counts, port) in trial.iter().zip(engine.watch().read().unwrap().unwrap()) {
            assert!(counts.forwarded > 0, "{cores:?}: {counts:?}");
            // A worker that does not get its core lets its queue run full.
            assert_eq!(counts.forwarded + port.send_dropped, counts.offered, "{cores:?}: {counts:?}");
            left += counts.intended - (counts.offered + counts.unsent) as f64;
        }
        assert!(left.abs() < 5.0, "{cores:?}: {left}");
        for totals in engine.totals().unwrap() {
            assert_eq!((totals.duplicates, totals.reordered, totals.returned, totals.foreign), (0, 0, 0, 0));
        }
    }
}

/// The other end of a port, which takes no frames; once that listens.
fn peer(dpdk: &Arc<Dpdk>, device: &str) -> (Port, Queues) {
    let pool = Pool::new(dpdk, 4095, 9600, None).unwrap();
    let config = PortConfig { rx_queues: 1, tx_queues: 1, descriptors: 1024, max_frame: 1514 };
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let mut port = Port::probe(dpdk, device).unwrap();
        match port.start(&config, &pool) {
            Ok(queues) => return (port, queues),
            Err(error) => assert!(Instant::now() < deadline, "{error}"),
        }
        drop(port);
        thread::sleep(Duration::from_millis(5));
    }
}

/// An engine on two ports that listen, and their peers.
fn beside_peers(dpdk: &Arc<Dpdk>, sockets: &[String; 2]) -> (DpdkEngine, [(Port, Queues); 2]) {
    let table = sized("64", Directions::Both);
    let [zero, one] = [0, 1].map(|number| memif(number, "server", &sockets[number]));
    thread::scope(|scope| {
        let peers = scope.spawn(|| peers(dpdk, sockets));
        (start_on(dpdk, [&zero, &one], &[0], &table).unwrap(), peers.join().unwrap())
    })
}

/// Peers of ports that listen: of two ends in one process, the driver lets neither listen where the
/// one that connects is probed first.
fn peers(dpdk: &Arc<Dpdk>, sockets: &[String; 2]) -> [(Port, Queues); 2] {
    for socket in sockets {
        wait_for_listener(socket);
    }
    [0, 1].map(|number| peer(dpdk, &memif(number, "client", &sockets[number])))
}

fn wait_for_listener(socket: &str) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !std::fs::read_to_string("/proc/net/unix").unwrap().contains(socket) {
        assert!(Instant::now() < deadline, "nobody listens on {socket}");
        thread::sleep(Duration::from_millis(2));
    }
}

fn wait_for_links(engine: &DpdkEngine, up: bool) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while engine.ports().iter().any(|port| port.link().unwrap().up != up) {
        assert!(Instant::now() < deadline, "the links do not change");
        thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn while_a_peer_is_gone_what_is_due_is_unsent_and_when_it_returns_it_is_offered_again() {
    let (dpdk, _one) = start();
    let sockets = [socket_name(), socket_name()];
    let (mut engine, mut theirs) = beside_peers(&dpdk, &sockets);
    for _ in 0..3 {
        for counts in trial(&mut engine, Load::Rate(20e3), 100) {
            assert!(counts.offered > 0 && is_accounted_for(&counts), "{counts:?}");
        }
        drop(theirs);
        wait_for_links(&engine, false);
        for counts in trial(&mut engine, Load::Rate(20e3), 100) {
            assert!(counts.offered == 0 && is_accounted_for(&counts), "{counts:?}");
        }
        theirs = peers(&dpdk, &sockets);
        wait_for_links(&engine, true);
    }
}

#[test]
fn a_peer_that_vanishes_for_good_ends_the_run_with_the_cause() {
    let (dpdk, _one) = start();
    let (mut engine, theirs) = beside_peers(&dpdk, &[socket_name(), socket_name()]);
    let interval = engine.begin(Load::Rate(20e3)).unwrap();
    engine.wait(Duration::from_millis(50)).unwrap();
    drop(theirs);
    let error = engine.wait(Duration::from_secs(10)).unwrap_err();
    assert!(matches!(error, Error::Failed(_)), "{error}");
    let text = error.to_string();
    assert!(text.contains("net_memif_server0") && text.contains("other end"), "{text}");
    let counts = engine.counts(interval).unwrap()[0];
    assert!(counts.offered > 0 && counts.unsent > 20_000, "{counts:?}");
}

#[test]
fn a_port_that_drops_all_returns_nothing_and_owes_nothing() {
    let (dpdk, _one) = start();
    let devices = ["net_null0,no-rx=1", "net_null1,no-rx=1"];
    let mut engine = start_on(&dpdk, devices, &[0], &sized("64", Directions::Both)).unwrap();
    for counts in trial(&mut engine, Load::Rate(20e3), 200) {
        assert!(counts.offered > 0 && counts.forwarded == 0, "{counts:?}");
        assert!(is_accounted_for(&counts), "{counts:?}");
    }
}

#[test]
fn what_cannot_be_is_refused_with_its_cause() {
    let (dpdk, _one) = start();
    let table = sized("64", Directions::Forward);
    let refusal = |devices: [&str; 2], cores: &[usize], table: &FrameTable| {
        start_on(&dpdk, devices, cores, table).err().map(|error| error.to_string()).unwrap_or_default()
    };
    let null = ["net_null0,no-rx=1", "net_null1,no-rx=1"];
    assert!(refusal(null, &[0, 0], &table).contains("twice"));
    assert!(refusal(null, &[], &table).contains("0 workers"));
    assert!(refusal(null, &[4000], &table).contains("core 4000"));
    assert!(refusal(["net_null0", "net_nil1"], &[0], &table).contains("net_nil1"));
    let single = sized("64", Directions::Forward);
    let single = FrameTable { rows: single.rows[..1].to_vec(), ..single };
    assert!(refusal(null, &[0, 1], &single).contains("fewer cores"));
    for (role, clue) in [("client", "start its other end first"), ("server", "is its other end there")] {
        let alone = format!("net_memif0,role={role},id=0,socket={},socket-abstract=yes", socket_name());
        let text = refusal([&alone, "net_null1"], &[0], &table);
        assert!(text.contains("net_memif0") && text.contains(clue), "{text}");
    }
}

#[test]
fn a_card_without_hugepages_is_refused_with_the_remedy() {
    let (_dpdk, _one) = start();
    match engine::dpdk::start(0, &["0000:99:00.0".to_owned()]) {
        Err(engine::Error::Refused(reason)) => {
            assert!(reason.contains("fewer than 512 MiB") && reason.contains("doctor --fix"), "{reason}");
        }
        other => {
            assert!(other.unwrap_err().to_string().contains("started in this process already"));
            eprintln!("skipped: this machine has hugepages");
        }
    }
}
