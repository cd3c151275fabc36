//! The kernel engine over a cable: what leaves is what was asked for, and what returns is judged.

#![allow(clippy::unwrap_used)] // a test may panic

mod common;

use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use common::{cable, receive_on, start, start_on, table};
use engine::live::monotonic;
use engine::xdp::{Generator, PortRef, Receiver, XdpEngine};
use engine::{Counts, Engine, Load, Order, Part};
use nix::sys::socket::{AddressFamily, LinkAddr, MsgFlags, SockFlag, SockType, SockaddrLike, sendto, socket};
use wire::signature::Signature;

/// Engines hold a core each, and there may be only two.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn alone() -> std::sync::MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Runs `load` for `milliseconds`, drains, and returns the counts of each direction.
fn trial(engine: &mut XdpEngine, load: Load, milliseconds: u64) -> Vec<Counts> {
    let interval = engine.begin(load).unwrap();
    engine.wait(Duration::from_millis(milliseconds)).unwrap();
    engine.begin(Load::Idle).unwrap();
    engine.wait(Duration::from_millis(50)).unwrap();
    engine.counts(interval).unwrap()
}

/// What was asked for either left or was given up, to one frame.
fn assert_complete(counts: &Counts) {
    assert!((counts.intended - (counts.offered + counts.unsent) as f64).abs() <= 1.5, "{counts:?}");
}

#[test]
fn every_frame_that_leaves_returns_over_a_cable() {
    let _alone = alone();
    let Some(ports) = cable() else { return };
    let mut engine = start(&ports, &table(&[64], 251, 1));
    let counts = trial(&mut engine, Load::Rate(20_000.0), 500)[0];
    assert!(counts.offered > 0);
    assert_eq!(counts.forwarded, counts.offered);
    assert_eq!(counts.forwarded_bytes, counts.offered * 64);
    assert_complete(&counts);
    assert!(counts.latency_min > 0 && counts.latency_min <= counts.latency_max);
    let totals = &engine.totals().unwrap()[0];
    assert_eq!((totals.offered, totals.forwarded), (counts.offered, counts.offered));
    assert_eq!((totals.duplicates, totals.reordered, totals.returned), (0, 0, 0));
    assert_eq!(totals.latency.total(), counts.offered);
    assert_eq!(totals.lateness.total(), counts.offered);
}

#[test]
fn both_directions_are_counted_apart() {
    let _alone = alone();
    let Some(ports) = cable() else { return };
    let mut engine = start(&ports, &table(&[64], 10, 2));
    assert_eq!(engine.directions(), 2);
    let counts = trial(&mut engine, Load::Rate(5_000.0), 400);
    for direction in &counts {
        assert_complete(direction);
        assert_eq!(direction.forwarded, direction.offered);
        assert!(direction.offered > 0);
    }
}

#[test]
fn frames_of_several_sizes_keep_their_sizes() {
    let _alone = alone();
    let Some(ports) = cable() else { return };
    let mut engine = start(&ports, &table(&[64, 590, 1514], 7, 1));
    let counts = trial(&mut engine, Load::Rate(3_000.0), 300)[0];
    assert_eq!(counts.forwarded, counts.offered);
    assert_eq!(counts.forwarded_bytes, counts.offered_bytes);
    let mean = counts.forwarded_bytes as f64 / counts.forwarded as f64;
    assert!((mean - (64.0 + 590.0 + 1514.0) / 3.0).abs() < 5.0, "{mean}");
}

#[test]
fn departures_are_the_integral_of_a_changing_rate() {
    let _alone = alone();
    let Some(ports) = cable() else { return };
    let mut engine = start(&ports, &table(&[64], 1, 1));
    // 37 frames/s for 10 ms at a time: 0.37 frames an interval, which rounding would lose.
    let intervals: Vec<_> = (0..40)
        .map(|step| {
            let interval = engine.begin(Load::Rate(37.0 + f64::from(step % 2))).unwrap();
            engine.wait(Duration::from_millis(10)).unwrap();
            interval
        })
        .collect();
    engine.begin(Load::Idle).unwrap();
    engine.wait(Duration::from_millis(50)).unwrap();
    let counts: Vec<_> = intervals.iter().map(|interval| engine.counts(*interval).unwrap()[0]).collect();
    let intended: f64 = counts.iter().map(|counts| counts.intended).sum();
    let departed: u64 = counts.iter().map(|counts| counts.offered + counts.unsent).sum();
    assert!(intended > 14.0);
    assert!((intended - departed as f64).abs() <= 1.5, "intended {intended}, departed {departed}");
}

/// A controlling thread that is held up between its reading of the clock and the announcement.
#[test]
fn what_is_announced_late_is_counted_until_the_workers_hear_of_it() {
    const LATE: u64 = 20_000_000;
    let _alone = alone();
    let Some(ports) = cable() else { return };
    let table = table(&[64], 1, 1);
    let _napi = Receiver::attach(&ports, None, 1, 1).unwrap();
    let mut generator = Generator::start(&table, &ports, None, &[0]).unwrap();
    let begin = |generator: &mut Generator, interval, load| {
        generator.begin(interval, &Order::Load(load), monotonic().unwrap() - LATE).unwrap();
        std::thread::sleep(Duration::from_millis(30));
        generator.begun(interval).unwrap()[0].unwrap()
    };
    let before = monotonic().unwrap();
    let loads = [Load::Rate(20_000.0), Load::Rate(30_000.0), Load::Idle];
    let begun: Vec<u64> =
        (1..).zip(loads).map(|(interval, load)| begin(&mut generator, interval, load)).collect();
    assert!(begun[0] >= before, "nothing is owed from before the announcement");
    for (interval, pps) in [(1, 20e3), (2, 30e3)] {
        let length = (begun[interval] - begun[interval - 1]) as f64 / 1e9;
        assert!(length > 0.0, "{begun:?}");
        let sent = generator.sent(interval as u64, 0).unwrap();
        assert!((pps * length - (sent.frames + sent.unsent) as f64).abs() <= 1.5, "{sent:?} in {length} s");
    }
}

#[test]
fn a_burst_has_exactly_its_frames() {
    let _alone = alone();
    let Some(ports) = cable() else { return };
    let cores: Vec<usize> = (0..std::thread::available_parallelism().unwrap().get().min(2)).collect();
    for cores in [&cores[..1], &cores] {
        let mut engine = start_on(cores, &ports, &table(&[64], 5, 2));
        for frames in [1, 2, 501, 0, 1_000] {
            let burst = Load::Burst { pps: 10_000.0, frames };
            let directions = trial(&mut engine, burst, 150);
            for counts in &directions {
                assert_eq!(counts.intended, frames as f64);
                assert_eq!(counts.forwarded, counts.offered);
                if counts.unsent == 0 {
                    assert_eq!(counts.offered, frames, "of {} workers", cores.len());
                }
            }
            // Unsent frames are counted for both directions together and shared out.
            let left: u64 = directions.iter().map(|counts| counts.offered + counts.unsent).sum();
            assert_eq!(left, 2 * frames, "{directions:?}");
        }
    }
}

#[test]
fn parts_send_their_own_rows_in_their_time() {
    let _alone = alone();
    let Some(ports) = cable() else { return };
    let cores: Vec<usize> = (0..std::thread::available_parallelism().unwrap().get().min(2)).collect();
    for cores in [&cores[..1], &cores] {
        // Rows of 64 and 128 bytes, one after the other: the first two, then the others.
        let mut engine = start_on(cores, &ports, &table(&[64, 64, 128, 128, 128], 1, 1));
        let at = engine.now() + Duration::from_millis(20);
        let parts = [(0, 2, 101, 10_000.0), (2, 3, 50, 1_000.0), (0, 2, 7, 10_000.0)];
        let mut start = at;
        let intervals = parts.map(|(first, rows, frames, pps)| {
            let part = Part { first, rows, frames, pps };
            let interval = engine.begin_part(&part, start).unwrap();
            start += Duration::from_secs_f64(frames as f64 / pps);
            interval
        });
        // This thread may be held up for longer than the parts last.
        engine.wait((start + Duration::from_millis(30)).saturating_sub(engine.now())).unwrap();
        let after = trial(&mut engine, Load::Rate(10_000.0), 50)[0];
        assert_complete(&after);
        for ((first, _, frames, _), interval) in parts.into_iter().zip(intervals) {
            let counts = engine.counts(interval).unwrap()[0];
            assert_eq!(counts.offered + counts.unsent, frames, "{counts:?}");
            assert_eq!(counts.forwarded, counts.offered);
            let size = if first == 0 { 64 } else { 128 };
            assert_eq!(counts.offered_bytes, size * counts.offered);
        }
        // A load ends a part; what is left of that is nothing.
        let part = Part { first: 0, rows: 5, frames: 1_000_000, pps: 10_000.0 };
        let interval = engine.begin_part(&part, engine.now()).unwrap();
        engine.wait(Duration::from_millis(20)).unwrap();
        trial(&mut engine, Load::Idle, 10);
        let counts = engine.counts(interval).unwrap()[0];
        assert_eq!(counts.intended, (counts.offered + counts.unsent) as f64);
        assert!(counts.intended < 1_000_000.0);
    }
}

#[test]
fn what_a_burst_cannot_send_in_time_is_unsent() {
    let _alone = alone();
    let Some(ports) = cable() else { return };
    let mut engine = start(&ports, &table(&[64], 5, 1));
    // It takes 100 ms, of which it gets 50; then another load at once.
    let began = Instant::now();
    let burst = engine.begin(Load::Burst { pps: 10_000.0, frames: 1_000 }).unwrap();
    engine.wait(Duration::from_millis(50)).unwrap();
    let waited = began.elapsed();
    let counts = trial(&mut engine, Load::Rate(10_000.0), 50)[0];
    assert_complete(&counts);
    let counts = engine.counts(burst).unwrap()[0];
    assert_eq!(counts.offered + counts.unsent, 1_000);
    // A busy machine may give it longer.
    assert!(counts.unsent > 400 || waited > Duration::from_millis(59), "{counts:?}");
    assert_eq!(counts.forwarded, counts.offered);
    assert!(engine.begin(Load::Burst { pps: 0.0, frames: 1 }).is_err());
}

/// More than any core sends: all that is due is given up 10 ms late, some thousand times.
#[test]
fn what_a_worker_gives_up_is_due_to_a_frame_where_gaps_are_parts_of_nanoseconds() {
    let _alone = alone();
    let Some(ports) = cable() else { return };
    let mut engine = start(&ports, &table(&[64], 5, 1));
    for pps in [60e6, 90e6, 1e9 / 1.9] {
        let counts = trial(&mut engine, Load::Rate(pps), 100)[0];
        assert!(counts.unsent > counts.offered, "{counts:?}");
        assert_complete(&counts);
    }
}

#[test]
fn several_workers_share_the_frames_of_both_directions() {
    let _alone = alone();
    let Some(ports) = cable() else { return };
    if std::thread::available_parallelism().unwrap().get() < 2 {
        return;
    }
    let mut engine = start_on(&[0, 1], &ports, &table(&[64], 5, 2));
    let mut left = 0.0;
    for counts in trial(&mut engine, Load::Rate(5_000.0), 200) {
        assert_eq!(counts.forwarded, counts.offered);
        left += counts.intended - (counts.offered + counts.unsent) as f64;
    }
    // To one frame of each worker; unsent frames are shared out among the directions.
    assert!(left.abs() <= 2.5, "{left}");
}

#[test]
fn more_intervals_than_are_kept_do_not_mix() {
    let _alone = alone();
    let Some(ports) = cable() else { return };
    let mut engine = start(&ports, &table(&[64], 1, 1));
    let first = trial(&mut engine, Load::Rate(10_000.0), 20)[0];
    assert!(first.offered > 0);
    for _ in 0..4096 {
        engine.begin(Load::Idle).unwrap();
    }
    assert!(engine.counts(0).is_err(), "the first interval's place was reused");
    let last = engine.begin(Load::Idle).unwrap();
    engine.wait(Duration::from_millis(5)).unwrap();
    assert_eq!(engine.counts(last).unwrap()[0].offered, 0);
    assert_eq!(engine.counts(last).unwrap()[0].forwarded, 0);
    assert_eq!(engine.totals().unwrap()[0].offered, first.offered);
}

#[test]
fn full_speed_leaves_nothing_uncounted() {
    let _alone = alone();
    let Some(ports) = cable() else { return };
    let mut engine = start(&ports, &table(&[64], 251, 1));
    receive_on(std::thread::available_parallelism().unwrap().get() - 1);
    let counts = trial(&mut engine, Load::Max, 300)[0];
    assert!(counts.offered > 1000);
    assert!(counts.forwarded > 0 && counts.forwarded <= counts.offered);
    let totals = &engine.totals().unwrap()[0];
    assert_eq!((totals.duplicates, totals.reordered), (0, 0));
}

#[test]
fn a_table_that_does_not_fit_is_refused() {
    let _alone = alone();
    let Some(ports) = cable() else { return };
    let refused = |table: &traffic::FrameTable, cores: &[usize]| {
        let stop = std::sync::Arc::default();
        let config = engine::xdp::Config { ports: ports.clone(), namespace: None, cores, table, stop };
        XdpEngine::start(&config).err().map(|error| error.to_string()).unwrap_or_default()
    };
    assert!(refused(&table(&[9216], 1, 1), &[0]).contains("at most 3412 bytes"));
    assert!(refused(&table(&[64], 1, 1), &[0, 1]).contains("2 workers share a table of 1 frames"));
    assert!(refused(&table(&[64], 1, 1), &[4000]).contains("core 4000"));
}

/// Frames written by hand, so that order and repetition are known.
struct Injector {
    socket: OwnedFd,
    address: LinkAddr,
}

impl Injector {
    fn on(port: &PortRef) -> Self {
        let socket = socket(AddressFamily::Packet, SockType::Raw, SockFlag::empty(), None).unwrap();
        let mut raw: nix::libc::sockaddr_ll = unsafe_zeroed();
        raw.sll_family = nix::libc::AF_PACKET as u16;
        raw.sll_ifindex = port.index as i32;
        raw.sll_halen = 6;
        // SAFETY: the pointer and length describe a complete sockaddr_ll.
        let address = unsafe {
            LinkAddr::from_raw((&raw const raw).cast(), Some(size_of::<nix::libc::sockaddr_ll>() as u32))
        };
        Self { socket, address: address.unwrap() }
    }

    fn send(&self, signature: Option<Signature>) {
        let mut frame = vec![0u8; 60];
        frame[12..14].copy_from_slice(&[0x88, 0xb5]);
        if let Some(signature) = signature {
            frame[42..].copy_from_slice(&signature.emit());
        }
        sendto(self.socket.as_raw_fd(), &frame, &self.address, MsgFlags::empty()).unwrap();
    }
}

fn unsafe_zeroed() -> nix::libc::sockaddr_ll {
    // SAFETY: all bytes zero are a valid sockaddr_ll.
    unsafe { std::mem::zeroed() }
}

#[test]
fn the_receiver_tells_duplicates_reordered_returned_and_foreign_frames_apart() {
    let _alone = alone();
    let Some(ports) = cable() else { return };
    let receiver = Receiver::attach(&ports, None, 1, 1).unwrap();
    let injector = Injector::on(&ports[0]);
    let now = monotonic().unwrap() & wire::signature::DEPARTURE_MASK;
    let frame = |sequence| Signature {
        stream: 0,
        direction: 0,
        worker: 0,
        interval: 7,
        sequence,
        departure: now.saturating_sub(1_000_000),
    };
    // In order, a gap, its filling (reordered), a repetition (duplicate), far ahead, far behind.
    for sequence in [0, 1, 4, 2, 4, 3, 3, 5000, 4999, 4999, 10] {
        injector.send(Some(frame(sequence)));
    }
    injector.send(None);
    injector.send(Some(Signature { direction: 1, ..frame(0) }));
    std::thread::sleep(Duration::from_millis(50));
    let totals = receiver.totals(0).unwrap();
    assert_eq!(totals.duplicates, 3, "4, 3 and 4999 came twice");
    assert_eq!(totals.reordered, 4, "2, 3, 4999 and 10 came after a later frame");
    assert_eq!(totals.forwarded, 8);
    assert_eq!(totals.foreign, 1);
    assert_eq!(totals.returned, 1, "a frame of direction 1 must not come out of port 1");
    let received = receiver.received(7, 0).unwrap();
    assert_eq!((received.frames, received.bytes), (8, 8 * 60));
    assert!(received.latency_min >= 1_000_000);
}
