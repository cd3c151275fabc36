//! The user-space engine on two ports that shared memory joins like a cable, in ordinary memory.

#![allow(clippy::unwrap_used)] // a test may panic

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant};

use engine::dpdk::{self, Config, Dpdk, DpdkEngine, socket_name};
use engine::{Counts, Engine, Error, Load};
use traffic::{Directions, Endpoint, Endpoints, FrameTable, IpVersion, Profile, Tunables};
use wire::MacAddress;

/// The DPDK of this process, for one test at a time.
fn start() -> (Arc<Dpdk>, MutexGuard<'static, ()>) {
    static DPDK: OnceLock<Arc<Dpdk>> = OnceLock::new();
    static ONE: Mutex<()> = Mutex::new(());
    let guard = ONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    (Arc::clone(DPDK.get_or_init(|| dpdk::start(0, &[]).unwrap().0)), guard)
}

fn table(tunables: &Tunables, directions: Directions) -> FrameTable {
    let mac = |last| MacAddress([2, 0, 0, 0, 0, last]);
    let endpoints = Endpoints([
        Endpoint { source: mac(1), destination: mac(2) },
        Endpoint { source: mac(2), destination: mac(1) },
    ]);
    Profile::builtin("bench", tunables).unwrap().table(&endpoints, directions)
}

fn sized(size: &str, directions: Directions) -> FrameTable {
    let tunables = Tunables { size: size.parse().ok(), vm: "var2".parse().ok(), ..Tunables::default() };
    table(&tunables, directions)
}

/// An engine on both ends of a memif.
fn cable(dpdk: &Arc<Dpdk>, table: &FrameTable) -> DpdkEngine {
    let socket = socket_name();
    let device = |number, role| {
        format!("net_memif{number},role={role},id=0,socket={socket},socket-abstract=yes,bsize=9600")
    };
    start_on(dpdk, [&device(0, "server"), &device(1, "client")], &[0], table).unwrap()
}

fn start_on(
    dpdk: &Arc<Dpdk>,
    devices: [&str; 2],
    cores: &[usize],
    table: &FrameTable,
) -> Result<DpdkEngine, Error> {
    let stop = Arc::new(AtomicBool::new(false));
    DpdkEngine::start(&Config { dpdk, devices, send_cores: cores, receive_cores: &[], table, stop })
}

/// The counts of an interval of `load`, when its last frames have returned: a worker that does not get
/// its core hears of the interval's end later.
fn trial(engine: &mut DpdkEngine, load: Load, milliseconds: u64) -> Vec<Counts> {
    let interval = engine.begin(load).unwrap();
    engine.wait(Duration::from_millis(milliseconds)).unwrap();
    engine.begin(Load::Idle).unwrap();
    let deadline = Instant::now() + Duration::from_secs(10);
    let mut before = Vec::new();
    loop {
        engine.wait(Duration::from_millis(50)).unwrap();
        let counts = engine.counts(interval).unwrap();
        if (counts == before && counts.iter().all(is_accounted_for)) || Instant::now() > deadline {
            return counts;
        }
        before = counts;
    }
}

/// Whether every frame that was due is offered or unsent; a direction's share may be off by one.
fn is_accounted_for(counts: &Counts) -> bool {
    ((counts.offered + counts.unsent) as f64 - counts.intended).abs() < 3.0
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
