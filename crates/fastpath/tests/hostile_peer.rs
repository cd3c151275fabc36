//! Peers on shared memory that try every trick at once, beside two that behave: these lose nothing, the router
//! grows no further, and ends within a second when it is told to.

use std::fs;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{OURS, THEIRS, changed, frame};
use crate::raw::{CONNECT, Client, HEAD, Raw, TAIL, TO_CLIENT, TO_SERVER, add_region, init, message};
use memif::{Config, Frame, Memif, Opened, Role, Socket};
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sched::{CpuSet, sched_getaffinity};
use nix::sys::signal::Signal;
use nix::unistd::Pid;
use wire::{MacAddress, arp, ethernet};

use crate::process::{Router, fastpath, until};

/// Frames that the peer that behaves has on their way at a time.
const BATCH: u64 = 32;
/// Frames that its rings hold: also those that the hostile ones send there while the test does not get its turn.
const RING: u16 = 4096;
/// How long they may take, on a machine that does other things as well.
const PATIENCE: Duration = Duration::from_secs(20);
/// Hostile peers, each at an interface of its own.
const HOSTILE: u8 = 3;
/// How many tricks each is ahead of the one before, so that different ones meet.
const AHEAD: u32 = 3;
/// How long the router may take to end.
const ENDING: Duration = Duration::from_secs(1);

/// The router's link address at the interface of a hostile peer.
fn mac_at(peer: u8) -> MacAddress {
    MacAddress([2, 0, 0, 0, 1, peer])
}

fn socket(name: &str) -> Socket {
    Socket::Abstract(format!("fastpath-hostile-{}-{name}", std::process::id()))
}

fn peer(name: &str) -> Opened {
    let mut opened =
        Memif::open(Config { ring_size: RING, ..Config::new(Role::Client, socket(name)) }).unwrap();
    until("a connection", || {
        opened.memif.poll(Duration::from_millis(1)).unwrap();
        opened.memif.is_connected().then_some(())
    });
    opened
}

fn configuration(directory: &std::path::Path, core: usize) -> String {
    let interface = |name: &str, mac: MacAddress, subnet: &str| {
        let Socket::Abstract(socket) = socket(name) else { unreachable!() };
        format!(
            "[[interface]]\nname = \"{name}\"\ndevice = \"memif:socket=@{socket},ring=256\"\nmac = \"{mac}\"\n\
             addresses = [\"{subnet}\"]\n"
        )
    };
    let hostile: String = (0..HOSTILE)
        .map(|peer| interface(&format!("evil{peer}"), mac_at(peer), &format!("10.{}.0.1/16", 2 + peer)))
        .collect();
    format!(
        "[control]\nsocket = \"{}\"\n[workers]\ncores = [{core}]\nidle = \"sleep\"\n{}{}{hostile}\
         [[route]]\nprefix = \"48.0.0.0/8\"\nvia = [{{ gateway = \"10.1.0.2\" }}]\n\
         [[neighbour]]\ninterface = \"wan\"\naddress = \"10.1.0.2\"\nmac = \"{}\"\n",
        directory.join("control").display(),
        interface("lan", OURS[0], "10.0.0.1/24"),
        interface("wan", OURS[1], "10.1.0.1/24"),
        THEIRS[1],
    )
}

/// Sends frames of another length until one arrives: a peer hears of its connection before the router's worker does.
fn until_it_forwards(lan: &mut Opened, wan: &mut Opened) {
    let probe = frame(OURS[0], [48, 0, 0, 1], 64, 61);
    let mut received = [Frame::NONE; 64];
    until("a forwarded frame", || {
        lan.senders[0].send(&[&probe]);
        let count = wan.receivers[0].receive(&mut received);
        // SAFETY: they are lent until the release below.
        let arrived = received[..count].iter().any(|frame| unsafe { frame.bytes() }.len() == probe.len());
        wan.receivers[0].release();
        arrived.then_some(())
    });
}

/// Sends frames with these numbers, and has them all back in their order at the other side.
fn pass(lan: &mut Opened, wan: &mut Opened, numbers: std::ops::Range<u64>) {
    let frames: Vec<Vec<u8>> = numbers
        .clone()
        .map(|number| {
            let mut frame = frame(OURS[0], [48, 0, 0, 1], 64, 60);
            frame[50..58].copy_from_slice(&number.to_be_bytes());
            frame
        })
        .collect();
    let frames: Vec<&[u8]> = frames.iter().map(Vec::as_slice).collect();
    assert_eq!(lan.senders[0].send(&frames), frames.len(), "there is room for them");
    let deadline = Instant::now() + PATIENCE;
    let mut expected = numbers;
    let mut received = [Frame::NONE; 64];
    while !expected.is_empty() {
        assert!(Instant::now() < deadline, "frame {} does not come", expected.start);
        let count = wan.receivers[0].receive(&mut received);
        for frame in &received[..count] {
            // SAFETY: it is lent until the release below.
            let bytes = unsafe { frame.bytes() };
            // The hostile one sends there as well, but no frame of this length.
            if bytes.len() == 74 {
                assert_eq!(bytes[50..58], expected.next().unwrap().to_be_bytes());
            }
        }
        wan.receivers[0].release();
        if count == 0 {
            thread::sleep(Duration::from_micros(100));
        }
    }
}

/// Sends frames by the ring of a hand-made client, eight at a time, for as long as it is served.
fn flood(client: &Client, frames: u32, make: impl Fn(u32) -> Vec<u8>) {
    let mut head = u16::from_le_bytes(client.shared.get(TO_SERVER + HEAD));
    for number in 0..frames {
        let slot = usize::from(head % 8);
        let place = 4096 + 256 * slot;
        let frame = make(number);
        for (at, byte) in frame.iter().enumerate().take(256) {
            client.shared.put(place + at, [*byte]);
        }
        // A frame that is longer than its buffer has the next ones' bytes, too.
        let length = frame.len().min(8192 - place) as u32;
        client.shared.describe(TO_SERVER, slot, [0, 0], length, place as u32);
        head = head.wrapping_add(1);
        client.shared.put(TO_SERVER + HEAD, head.to_le_bytes());
        let room = || head.wrapping_sub(u16::from_le_bytes(client.shared.get(TO_SERVER + TAIL))) < 8;
        let deadline = Instant::now() + Duration::from_millis(100);
        while !room() {
            // What the router sends is thrown away.
            let tail: [u8; 2] = client.shared.get(TO_CLIENT + TAIL);
            let offered = u16::from_le_bytes(tail).wrapping_add(8);
            client.shared.put(TO_CLIENT + HEAD, offered.to_le_bytes());
            if Instant::now() > deadline {
                return;
            }
            thread::yield_now();
        }
    }
}

fn from_evil(peer: u8, destination: [u8; 4], ttl: u8, length: usize) -> Vec<u8> {
    frame(mac_at(peer), destination, ttl, length)
}

/// Asks the router for its address, as a station that nobody knows.
fn made_up(peer: u8, number: u32) -> Vec<u8> {
    let [_, a, b, c] = number.wrapping_mul(2_654_435_761).to_be_bytes();
    let mac = MacAddress([2, 9, 9, a, b, c]);
    let target_mac = mac_at(peer);
    let header = ethernet::Header { destination: target_mac, source: mac, ethertype: ethernet::ARP };
    let (sender, target) = ([10, 2 + peer, b, c].into(), [10, 2 + peer, 0, 1].into());
    let packet = arp::Header { operation: arp::REQUEST, sender_mac: mac, sender, target_mac, target };
    [&header.emit()[..], &packet.emit()].concat()
}

/// One trick after the other, by one of the hostile peers.
fn trick(peer: u8, number: u32) {
    let at = socket(&format!("evil{peer}"));
    if number.is_multiple_of(4) {
        // Files that nobody asked for, and memory that can be taken away.
        let file = tempfile::tempfile().unwrap();
        file.set_len(8192).unwrap();
        for (message, count) in [
            (init(), 253),
            (message(99, &[]), 9),
            (message(8, &[(6, b"\x1b[31mfastpath: worker 0 has failed\n")]), 0),
            (add_region(0, u64::MAX), 1),
            (add_region(0, 8192), 1),
        ] {
            let Some(raw) = Raw::dial(&at) else { return };
            raw.try_send(&init(), file.as_fd(), 0);
            raw.try_send(&message, file.as_fd(), count);
            raw.try_send(&crate::raw::message(CONNECT, &[]), file.as_fd(), 0);
        }
        return;
    }
    let Some(client) = Client::dial(&at) else { return };
    // A process that signals it by writing waits from now on.
    for event in &client.events {
        // Full, whatever the router has signalled by then; only then may a writer wait.
        let _ = event.read();
        let _ = event.write(u64::MAX - 1);
        fcntl(event, FcntlArg::F_SETFL(OFlag::empty())).unwrap();
    }
    client.shared.put(TO_CLIENT + HEAD, 8_u16.to_le_bytes());
    match number % 8 {
        1 => flood(&client, 3000, |number| made_up(peer, number)),
        2 => flood(&client, 3000, |number| {
            from_evil(peer, [10, 2 + peer, (number >> 8) as u8, number as u8], 64, 46)
        }),
        3 => flood(&client, 3000, |number| from_evil(peer, [48, 0, 0, 1], (number % 2) as u8 + 1, 46)),
        5 => flood(&client, 1000, |number| {
            let mut long = from_evil(peer, [48, 0, 0, 2], 64, 46);
            long.resize(46 + 4 * number as usize, 0xee);
            long
        }),
        6 => {
            for (slot, length) in
                [u32::MAX, 70_000, 4096, 0, 60, 65_558, 1 << 30, 4097].into_iter().enumerate()
            {
                client.shared.describe(TO_SERVER, slot, [(slot % 2) as u16, 0], length, 4096);
            }
            for head in (8..8000_u16).step_by(8) {
                client.shared.put(TO_SERVER + HEAD, head.to_le_bytes());
                thread::sleep(Duration::from_micros(10));
            }
        }
        _ => {
            // Everything is written anew while the router works on it.
            let ending = Instant::now() + Duration::from_millis(50);
            let mut state = u64::from(number) | 1;
            while Instant::now() < ending {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let place = ((state >> 33) as usize % 8184) & !3;
                client.shared.put(place, ((state >> 13) as u32).to_le_bytes());
                let head: [u8; 2] = client.shared.get(TO_SERVER + TAIL);
                let filled = u16::from_le_bytes(head).wrapping_add(8);
                client.shared.put(TO_SERVER + HEAD, filled.to_le_bytes());
            }
            let echo = changed(from_evil(peer, [10, 2 + peer, 0, 1], 64, 46), |frame| frame[23] = 1);
            flood(&client, 10, |_| echo.clone());
        }
    }
}

/// Kilobytes that a process has, and its files.
fn size(process: u32) -> (u64, usize) {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    let kilobytes = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    (kilobytes, fs::read_dir(format!("/proc/{process}/fd")).unwrap().count())
}

/// Sets a flag when it goes.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// Has a router forward for those that behave while others do not.
fn beside_a_hostile_one(time: Duration) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("router.toml");
    let usable = sched_getaffinity(Pid::from_raw(0)).unwrap();
    let core = (0..CpuSet::count()).find(|core| usable.is_set(*core).unwrap()).unwrap();
    fs::write(&file, configuration(directory.path(), core)).unwrap();
    let mut router = Router::started(fastpath(&file).spawn().unwrap());
    let (mut lan, mut wan) = (peer("lan"), peer("wan"));
    until_it_forwards(&mut lan, &mut wan);
    let (ending, stop) = (Instant::now() + time, AtomicBool::new(false));
    thread::scope(|scope| {
        let stop = &stop;
        let hostile = move |peer: u8| {
            let mut tricks = 0;
            while !stop.load(Relaxed) {
                trick(peer, u32::from(peer) * AHEAD + tricks);
                tricks += 1;
            }
            tricks
        };
        let hostile: Vec<_> = (0..HOSTILE).map(|peer| scope.spawn(move || hostile(peer))).collect();
        // Also where something is not as it should be.
        let _stopping = Stop(stop);
        let mut next = 0;
        let mut at_first = None;
        while Instant::now() < ending {
            pass(&mut lan, &mut wan, next..next + BATCH);
            next += BATCH;
            // The first round of tricks has touched what is touched at all.
            if at_first.is_none() && ending.saturating_duration_since(Instant::now()) < time / 2 {
                at_first = Some(size(router.id()));
            }
        }
        let (then, now) = (at_first.unwrap(), size(router.id()));
        stop.store(true, Relaxed);
        let tricks: Vec<u32> = hostile.into_iter().map(|peer| peer.join().unwrap()).collect();
        assert!(tricks.iter().all(|tricks| *tricks > 8), "only {tricks:?} tricks");
        assert!(now.0 < then.0 + 100_000, "it has grown from {} to {} kB", then.0, now.0);
        assert!(now.1 < then.1 + 100, "it had {} files, and has {}", then.1, now.1);
        println!("{next} frames passed beside {tricks:?} tricks; {} kB, {} files", now.0, now.1);
    });
    let lines = router.said_so_far();
    assert!(lines.iter().all(|line| line.starts_with("fastpath: ") && !line.contains('\x1b')), "{lines:?}");
    let stopping = Instant::now();
    router.stop(Signal::SIGTERM);
    let took = stopping.elapsed();
    assert!(took < ENDING, "it took {took:?} to end");
}

#[test]
fn those_that_behave_lose_nothing_beside_some_that_try_every_trick() {
    beside_a_hostile_one(Duration::from_secs(8));
}

#[test]
#[ignore = "takes minutes: make test-long"]
fn nor_in_ten_minutes() {
    beside_a_hostile_one(Duration::from_secs(600));
}
