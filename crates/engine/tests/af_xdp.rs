//! The engine on AF_XDP sockets over a cable: what leaves is what the interface counted, and what returns is judged.

#![allow(clippy::unwrap_used)] // a test may panic

mod common;
mod user_space;

use std::fs;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use common::{cable, cable_of, detach_a_program, run, without_xdp};
use engine::af_xdp::{AfXdpEngine, BusyPoll, CountedBy, Counting, Options, replay};
use engine::replay::{Pace, Replay};
use engine::user_space::Crew;
use engine::xdp::PortRef;
use engine::{Engine, Error, Load};
use traffic::capture::Captured;
use traffic::{Apart, Directions, FrameTable};
use user_space::{is_accounted_for, sized, trial};
use xsk::{Copying, Mode};

/// Engines hold a core each, and there may be only two.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Workers receive, by sockets.
const BY_SOCKETS: Options =
    Options { copying: Copying::Automatic, busy_poll: BusyPoll::Cards, counting: Counting::Sockets };

fn start_with(
    ports: &[PortRef; 2],
    table: &FrameTable,
    [send_cores, receive_cores]: [&[usize]; 2],
    options: Options,
) -> Result<AfXdpEngine, Error> {
    let stop = Arc::new(AtomicBool::new(false));
    let [zero, one] = ports;
    AfXdpEngine::start(&[zero, one], None, options, &Crew { send_cores, receive_cores, table, stop })
}

fn start_on(ports: &[PortRef; 2], table: &FrameTable, cores: [&[usize]; 2]) -> Result<AfXdpEngine, Error> {
    start_with(ports, table, cores, Options::default())
}

fn start(ports: &[PortRef; 2], table: &FrameTable) -> AfXdpEngine {
    start_on(ports, table, [&[0], &[]]).unwrap()
}

fn start_by_sockets(ports: &[PortRef; 2], table: &FrameTable) -> AfXdpEngine {
    start_with(ports, table, [&[0], &[]], BY_SOCKETS).unwrap()
}

/// What the interface itself counted.
fn counted(port: &str, what: &str) -> u64 {
    fs::read_to_string(format!("/sys/class/net/{port}/statistics/{what}")).unwrap().trim().parse().unwrap()
}

#[test]
fn every_frame_that_leaves_is_counted_by_the_interface_and_comes_back() {
    let _alone = alone();
    let Some(ports) = cable() else { return };
    let by_program = "arrivals counted by the XDP program in the driver";
    let by_sockets = "arrivals counted by AF_XDP sockets, because they were asked for";
    for (size, directions, options, by) in [
        ("64", Directions::Forward, Options::default(), by_program),
        ("imix", Directions::Both, Options::default(), by_program),
        ("64", Directions::Forward, BY_SOCKETS, by_sockets),
        ("imix", Directions::Both, BY_SOCKETS, by_sockets),
        ("1518", Directions::Both, BY_SOCKETS, by_sockets),
    ] {
        let before = ["port0", "port1"].map(|port| counted(port, "tx_packets"));
        let mut engine = start_with(&ports, &sized(size, directions), [&[0], &[]], options).unwrap();
        assert_eq!(engine.modes(), [Mode::Copy; 2], "a veth cannot do without copies");
        let words = format!("af_xdp, copy (the driver has no zero copy); {by}");
        assert_eq!(engine.modes_in_words(), [words.as_str(); 2]);
        for pps in [1e3, 20e3] {
            for counts in trial(&mut engine, Load::Rate(pps), 200) {
                assert!(is_accounted_for(&counts), "{size} at {pps}: {counts:?}");
                assert!(counts.offered > 0 && counts.forwarded == counts.offered, "{size}: {counts:?}");
                assert_eq!(counts.forwarded_bytes, counts.offered_bytes);
            }
        }
        for (direction, totals) in engine.totals().unwrap().iter().enumerate() {
            assert_eq!((totals.duplicates, totals.reordered, totals.returned, totals.foreign), (0, 0, 0, 0));
            assert_eq!(totals.forwarded, totals.offered);
            assert_eq!(totals.latency.total(), totals.forwarded);
            let left = counted(["port0", "port1"][direction], "tx_packets") - before[direction];
            assert_eq!(left, totals.offered, "{size}");
        }
    }
}

/// A cable for frames of up to 9,018 bytes; none where this kernel sends only those of one piece.
fn wide_cable() -> Option<[PortRef; 2]> {
    let ports = cable()?;
    if !xsk::has_large_frames() {
        eprintln!("skipped: AF_XDP sockets of this kernel take no frames in several pieces (Linux 6.6)");
        return None;
    }
    for port in ["port0", "port1"] {
        run(&format!("ip link set {port} mtu 9000"));
    }
    Some(ports)
}

#[test]
fn frames_over_a_page_leave_in_pieces_and_come_back_whole_with_their_signatures() {
    let _alone = alone();
    let Some(ports) = wide_cable() else { return };
    // One piece of 3,840 bytes, one byte beyond it, a signature across the end of a piece, and three pieces.
    for size in ["3844", "3845", "3854", "4100", "4101", "8000", "9018"] {
        for (load, directions) in [(Load::Rate(2e3), Directions::Both), (Load::Max, Directions::Forward)] {
            let mut engine = start(&ports, &sized(size, directions));
            // The program that counts knows frames of one page.
            for by in engine.counted_by() {
                assert!(matches!(by, Some(CountedBy::Sockets(why)) if why.contains("MTU")), "{by:?}");
            }
            let before = counted("port0", "tx_packets");
            let counts = trial(&mut engine, load, 200)[0];
            assert!(counts.offered > 0 && is_accounted_for(&counts), "{size}: {counts:?}");
            let totals = &engine.totals().unwrap()[0];
            let [zero, one] = engine.statistics().unwrap()[..] else { panic!("two ports") };
            assert_eq!(zero.sent, counted("port0", "tx_packets") - before, "{size}");
            assert_eq!(counts.forwarded_bytes, counts.forwarded * size.parse::<u64>().unwrap(), "{size}");
            assert_eq!((zero.send_invalid, one.malformed), (0, 0), "{size}: {zero:?} {one:?}");
            assert_eq!(one.received + one.receive_dropped, zero.sent, "{size}: {zero:?} {one:?}");
            assert_eq!(
                (totals.foreign, totals.duplicates, totals.reordered),
                (0, 0, 0),
                "{size}: {totals:?}"
            );
            assert_eq!((totals.latency.total(), counts.forwarded), (one.received, one.received), "{size}");
            if matches!(load, Load::Rate(_)) {
                assert_eq!(counts.forwarded, counts.offered, "{size}: {counts:?}");
                assert_eq!(counts.forwarded_bytes, counts.offered_bytes, "{size}");
            }
        }
    }
}

#[test]
fn while_an_interface_is_down_large_frames_are_unsent_and_none_is_sent_later() {
    let _alone = alone();
    let Some(ports) = wide_cable() else { return };
    let mut engine = start(&ports, &sized("8000", Directions::Forward));
    for _ in 0..2 {
        let counts = trial(&mut engine, Load::Rate(5e3), 100)[0];
        assert!(counts.offered > 0 && counts.offered == counts.forwarded, "{counts:?}");
        run("ip link set port0 down");
        let counts = trial(&mut engine, Load::Rate(5e3), 100)[0];
        assert!(counts.offered == 0 && is_accounted_for(&counts), "{counts:?}");
        run("ip link set port0 up");
        wait_for(&mut engine, 100);
    }
    let totals = &engine.totals().unwrap()[0];
    assert_eq!((totals.offered, totals.offered), (counted("port0", "tx_packets"), totals.forwarded));
}

#[test]
fn at_full_rate_what_the_other_end_had_no_room_for_is_offered_and_refused() {
    let _alone = alone();
    let Some(ports) = cable() else { return };
    for size in ["64", "imix"] {
        let before = counted("port0", "tx_packets");
        let mut engine = start_by_sockets(&ports, &sized(size, Directions::Forward));
        let counts = trial(&mut engine, Load::Max, 300)[0];
        let [zero, one] = engine.statistics().unwrap()[..] else { panic!("two ports") };
        assert!(counts.offered > 1_000, "{counts:?}");
        assert_eq!(
            (zero.sent, zero.send_invalid),
            (counted("port0", "tx_packets") - before, 0),
            "{counts:?}"
        );
        assert_eq!(zero.sent + zero.send_dropped, counts.offered);
        assert_eq!(engine.totals().unwrap()[0].refused, Some(zero.send_dropped));
        assert_eq!(one.received, counts.forwarded, "{one:?}");
        assert_eq!(one.received + one.receive_dropped, zero.sent, "{one:?}");
        drop(engine);
        // The kernel's program sees every frame that found room.
        let mut engine = start(&ports, &sized(size, Directions::Forward));
        let counts = trial(&mut engine, Load::Max, 300)[0];
        let totals = engine.totals().unwrap().remove(0);
        assert!(counts.offered > 1_000, "{counts:?}");
        assert_eq!(Some(counts.offered - counts.forwarded), totals.refused, "{counts:?}");
        assert_eq!((totals.latency.total(), totals.foreign), (counts.forwarded, 0));
    }
}

#[test]
fn what_the_kernel_counts_is_in_every_reading() {
    let _alone = alone();
    let Some(ports) = cable() else { return };
    let mut table = sized("64", Directions::Both);
    table.apart = Apart { streams: 1, latencies: 1 };
    let mut engine = start(&ports, &table);
    let interval = engine.begin(Load::Rate(20e3)).unwrap();
    wait_for(&mut engine, 200);
    engine.begin(Load::Idle).unwrap();
    wait_for(&mut engine, 200);
    let counts = engine.counts(interval).unwrap();
    let timelines = engine.timeline(interval).unwrap().unwrap();
    let (streams, totals) = (engine.streams().unwrap(), engine.totals().unwrap());
    for direction in 0..2 {
        let (counts, totals) = (counts[direction], &totals[direction]);
        assert!(counts.offered > 1_000 && counts.forwarded == counts.offered, "{counts:?}");
        let bins = &timelines[direction].bins;
        assert!(bins.iter().all(|bin| bin.offered == bin.forwarded), "{bins:?}");
        assert_eq!(bins.iter().map(|bin| bin.forwarded).sum::<u64>(), counts.forwarded);
        let stream = &streams[direction][0];
        assert_eq!((stream.offered, stream.forwarded), (counts.offered, counts.forwarded));
        assert_eq!((stream.missing, stream.latency.total()), (0, counts.forwarded));
        assert_eq!((totals.forwarded, totals.latency.total()), (counts.forwarded, counts.forwarded));
        assert!(counts.latency_min > 0 && counts.latency_min <= counts.latency_max, "{counts:?}");
        assert!(counts.latency_sum >= counts.latency_min * counts.forwarded, "{counts:?}");
        assert_eq!((stream.latency_min, stream.latency_max), (counts.latency_min, counts.latency_max));
    }
    let unseen = engine.capabilities().unseen;
    assert!(unseen[0].contains("when a kernel program sees it"), "{unseen:?}");
}

#[test]
fn where_the_driver_has_no_xdp_the_program_counts_behind_it() {
    let _alone = alone();
    let Some(ports) = cable() else { return };
    let over = ports.each_ref().map(without_xdp);
    for options in [Options::default(), BY_SOCKETS] {
        let mut engine = start_with(&over, &sized("imix", Directions::Both), [&[0], &[]], options).unwrap();
        if options != BY_SOCKETS {
            assert_eq!(engine.counted_by(), [Some(&CountedBy::Program { native: false }); 2]);
        }
        for counts in trial(&mut engine, Load::Rate(10e3), 200) {
            assert!(counts.offered > 1_000 && counts.offered == counts.forwarded, "{counts:?}");
        }
    }
}

#[test]
fn a_program_that_somebody_detaches_ends_the_run_and_what_was_counted_stays() {
    let _alone = alone();
    let Some(ports) = cable() else { return };
    for options in [Options::default(), BY_SOCKETS] {
        let mut engine = start_with(&ports, &sized("64", Directions::Forward), [&[0], &[]], options).unwrap();
        engine.begin(Load::Rate(1e3)).unwrap();
        wait_for(&mut engine, 100);
        detach_a_program();
        let Err(Error::Failed(why)) = engine.wait(Duration::from_secs(3)) else { panic!("not told") };
        assert!(why.contains("Linerate's XDP program is no more at interface port"), "{why}");
        let counts = engine.counts(0).unwrap()[0];
        assert!(counts.offered > 0 && counts.forwarded > 0, "{counts:?}");
    }
}

#[test]
fn several_workers_have_a_queue_each() {
    let _alone = alone();
    if thread::available_parallelism().unwrap().get() < 2 {
        eprintln!("skipped: two workers need two cores");
        return;
    }
    let Some(ports) = cable_of(2) else { return };
    // Of both directions each worker would have one, and what it gives up is shared out to both.
    let table = sized("64", Directions::Forward);
    let ways: [[&[usize]; 2]; 3] = [[&[0, 1], &[]], [&[0], &[1]], [&[1, 0], &[1]]];
    for cores in ways {
        let mut engine = start_on(&ports, &table, cores).unwrap();
        let named = !cores[1].is_empty();
        for by in engine.counted_by() {
            let by_sockets = matches!(by, Some(CountedBy::Sockets(why)) if why.contains("--receive-cores"));
            assert_eq!(by_sockets, named, "{by:?}");
        }
        for counts in trial(&mut engine, Load::Rate(10e3), 200) {
            assert!(counts.offered > 0 && is_accounted_for(&counts), "{cores:?}: {counts:?}");
        }
        for (totals, port) in engine.totals().unwrap().iter().zip(engine.statistics().unwrap()) {
            // A core that is slow to receive lets the queue at the other end run full.
            assert_eq!(totals.refused, Some(port.send_dropped));
            assert!(totals.forwarded <= port.sent, "{cores:?}: {totals:?} {port:?}");
        }
    }
    drop(ports);
    let Some(ports) = cable() else { return };
    let text = refusal(&ports, &table, &[0, 1]);
    assert!(
        text.contains("fewer queues to send by (1)") && text.contains("ethtool -L port0 combined 2"),
        "{text}"
    );
}

fn wait_for(engine: &mut AfXdpEngine, milliseconds: u64) {
    engine.wait(Duration::from_millis(milliseconds)).unwrap();
}

#[test]
fn while_an_interface_is_down_what_is_due_is_unsent_and_then_it_is_offered_again() {
    let _alone = alone();
    let Some(ports) = cable() else { return };
    let mut engine = start(&ports, &sized("64", Directions::Forward));
    for _ in 0..2 {
        let counts = trial(&mut engine, Load::Rate(20e3), 100)[0];
        assert!(counts.offered > 0 && counts.offered == counts.forwarded, "{counts:?}");
        run("ip link set port0 down");
        let counts = trial(&mut engine, Load::Rate(20e3), 100)[0];
        assert!(counts.offered == 0 && is_accounted_for(&counts), "{counts:?}");
        run("ip link set port0 up");
        wait_for(&mut engine, 100);
    }
    let totals = &engine.totals().unwrap()[0];
    assert_eq!((totals.offered, totals.offered), (counted("port0", "tx_packets"), totals.forwarded));
    assert!(totals.untaken.down > 0, "{totals:?}");
}

#[test]
fn an_interface_that_stays_down_or_vanishes_ends_the_run_with_the_cause() {
    let _alone = alone();
    for (command, clue) in [("ip link set port0 down", "went down"), ("ip link del port0", "vanished")] {
        let Some(ports) = cable() else { return };
        let mut engine = start(&ports, &sized("64", Directions::Both));
        engine.begin(Load::Rate(20e3)).unwrap();
        wait_for(&mut engine, 50);
        run(command);
        let error = engine.wait(Duration::from_secs(20)).unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, Error::Failed(_)) && text.contains("port0") && text.contains(clue), "{text}");
        assert!(engine.counts(0).unwrap()[0].offered > 0, "what was counted so far stands");
    }
}

fn refusal(ports: &[PortRef; 2], table: &FrameTable, cores: &[usize]) -> String {
    start_on(ports, table, [cores, &[]]).err().map(|error| error.to_string()).unwrap_or_default()
}

#[test]
fn what_cannot_be_is_refused_with_its_cause_and_nothing_stays_attached() {
    let _alone = alone();
    let Some(ports) = cable() else { return };
    let table = sized("64", Directions::Forward);
    let other = start(&ports, &table);
    let text = refusal(&ports, &table, &[0]);
    assert!(text.contains("another XDP program") && text.contains("ip link set port0 xdp off"), "{text}");
    drop(other);
    let text = refusal(&ports, &sized("9216", Directions::Forward), &[0]);
    assert!(text.contains("MTU of interface port0") && text.contains("mtu 9198"), "{text}");
    let text = refusal(&ports, &sized("1600", Directions::Forward), &[0]);
    assert!(text.contains("MTU of interface port0") && text.contains("mtu 1582"), "{text}");
    let none = PortRef { name: "none".into(), index: 77 };
    let text = refusal(&[none, ports[1].clone()], &table, &[0]);
    assert!(text.contains("no interface none"), "{text}");
    assert!(refusal(&ports, &table, &[0, 0]).contains("twice"));
    // All is gone again.
    let mut engine = start(&ports, &table);
    assert!(trial(&mut engine, Load::Rate(1e3), 100)[0].offered > 0);
}

#[test]
fn frames_of_others_pass_to_the_kernel_and_are_counted() {
    let _alone = alone();
    let Some(ports) = cable() else { return };
    run("ip address add 192.0.2.1/24 dev port0");
    for options in [Options::default(), BY_SOCKETS] {
        let mut engine = start_with(&ports, &sized("64", Directions::Forward), [&[0], &[]], options).unwrap();
        // The kernel asks for its neighbour on port 0; port 1's kernel hears it.
        let socket = std::net::UdpSocket::bind("192.0.2.1:0").unwrap();
        let deadline = Instant::now() + Duration::from_secs(10);
        while engine.totals().unwrap()[0].foreign == 0 {
            assert!(Instant::now() < deadline, "no frame of the kernel's is counted");
            let _ = socket.send_to(b"x", "192.0.2.2:9");
            wait_for(&mut engine, 20);
        }
        assert_eq!(engine.statistics().unwrap()[1].received, 0, "it did not come to us");
    }
}

#[test]
fn copies_and_busy_polling_can_be_insisted_on_and_a_driver_that_needs_copies_says_so() {
    let _alone = alone();
    let Some(ports) = cable() else { return };
    let table = sized("64", Directions::Forward);
    let open = |copying, busy_poll| {
        let crew = Crew {
            send_cores: &[0],
            receive_cores: &[],
            table: &table,
            stop: Arc::new(AtomicBool::new(false)),
        };
        let options = Options { copying, busy_poll, ..BY_SOCKETS };
        AfXdpEngine::start(&[&ports[0], &ports[1]], None, options, &crew)
    };
    let text = open(Copying::Never, BusyPoll::Never).err().unwrap().to_string();
    assert!(text.contains("port0") && text.contains("without copies"), "{text}");
    for (busy_poll, polls, words) in
        [(BusyPoll::Always, true, "af_xdp, copy, busy polling"), (BusyPoll::Cards, false, "af_xdp, copy")]
    {
        let mut engine = open(Copying::Always, busy_poll).unwrap();
        assert_eq!(engine.busy_polls(), [polls; 2]);
        assert!(engine.modes_in_words().iter().all(|all| all.starts_with(&format!("{words};"))));
        let counts = trial(&mut engine, Load::Rate(10e3), 100)[0];
        assert!(counts.offered > 0 && counts.offered == counts.forwarded, "{counts:?}");
    }
}

#[test]
fn a_replay_leaves_and_comes_back_frame_by_frame() {
    let _alone = alone();
    let Some(ports) = cable() else { return };
    let frame = |number: u8| {
        let bytes = [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xb5][..], &[number; 46]].concat();
        Captured { time: u64::from(number) * 50_000, length: bytes.len(), bytes }
    };
    let frames: Vec<Captured> = (0..100).map(frame).collect();
    let mut carrier = replay::carrier([&ports[0], &ports[1]], None, Options::default(), 60).unwrap();
    let stop = AtomicBool::new(false);
    let replay = Replay {
        frames: &frames,
        pace: Pace::Captured(1.0),
        loops: 3,
        drain: Duration::from_millis(50),
        stop: &stop,
    };
    let outcome = replay.run(&mut carrier, &mut |_, _| Ok(())).unwrap();
    assert_eq!((outcome.sent, outcome.untaken.total(), outcome.received, outcome.foreign), (300, 0, 300, 0));
    assert_eq!((outcome.missed, counted("port0", "tx_packets")), (0, 300));
}
