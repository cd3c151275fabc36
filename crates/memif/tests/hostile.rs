//! Peers that break the protocol: none makes us touch memory that is not its own, or stop.

#![allow(clippy::unwrap_used)] // a test may panic

mod common;
#[path = "common/raw.rs"]
mod raw;

use std::fs;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use common::{PATIENCE, configs, open, receive_all};
use memif::{Config, Event, Frame, Memif, Opened, Reason};
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::eventfd::EventFd;
use nix::sys::memfd::{MFdFlags, memfd_create};
use raw::{
    ACK, ADD_REGION, ADD_RING, CONNECT, CONNECTED, Client, DISCONNECT, FLAGS, HEAD, HELLO, Raw, SIZE, SLOTS,
    Shared, TAIL, TO_CLIENT, TO_SERVER, add_region, add_ring, hello, init, message, quiet,
};

fn server() -> (Config, Opened) {
    let [config, _] = configs();
    let config = Config { ring_size: SLOTS as u16, ..config };
    let opened = open(&config);
    (config, opened)
}

/// What becomes of a connection next.
fn event(memif: &mut Memif) -> Option<Event> {
    memif.poll(Duration::from_secs(1)).unwrap()
}

const IMPOSSIBLE: Event = Event::Disconnected(Reason::Refused("a ring's index is impossible"));

#[test]
fn a_hand_made_client_that_behaves_is_served() {
    let (config, mut ours) = server();
    let client = Client::new(&config.socket, &mut ours.memif);
    // Frames to the server: their number, and 52 bytes of the same.
    for slot in 0..3_u8 {
        client.shared.put(4096 + 256 * usize::from(slot), [slot; 60]);
        client.shared.put(4096 + 256 * usize::from(slot), u64::from(slot).to_be_bytes());
        client.shared.describe(TO_SERVER, slot.into(), [0, 0], 60, 4096 + 256 * u32::from(slot));
    }
    client.shared.put(HEAD, 3_u16.to_le_bytes());
    receive_all(&mut ours.receivers[0], 0..3, 60);
    assert_eq!(client.shared.get(TAIL), 3_u16.to_le_bytes());
    assert_eq!(client.shared.get::<2>(FLAGS), [1, 0], "we poll");
    // Frames to the client, which offers five buffers.
    assert_eq!(ours.senders[0].send(&[&[1; 60]]), 0);
    client.shared.put(TO_CLIENT + HEAD, 5_u16.to_le_bytes());
    assert_eq!(ours.senders[0].send(&[&[1; 60], &[2; 256], &[3; 257], &[4; 64]]), 4);
    assert_eq!(client.shared.get(TO_CLIENT + TAIL), 3_u16.to_le_bytes());
    assert_eq!(client.shared.get::<8>(TO_CLIENT + 128 + 16), [0, 0, 0, 0, 0, 1, 0, 0]);
    assert_eq!(client.shared.get::<256>(4096 + 256 * 9), [2; 256]);
}

/// How often an event file was signalled, once it was.
fn rung(event: &EventFd) -> u64 {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match event.read() {
            Ok(times) => return times,
            Err(_) => assert!(Instant::now() < deadline, "nobody is woken"),
        }
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_client_that_wants_interrupts_gets_them_and_others_do_not() {
    let (config, mut ours) = server();
    let client = Client::new(&config.socket, &mut ours.memif);
    client.shared.put(TO_CLIENT + HEAD, 8_u16.to_le_bytes());
    assert_eq!(ours.senders[0].send(&[&[1; 60], &[1; 60]]), 2);
    assert_eq!(rung(&client.events[1]), 1, "one for a burst");
    client.shared.put(TO_CLIENT + FLAGS, [1, 0]);
    assert_eq!(ours.senders[0].send(&[&[1; 60]]), 1);
    thread::sleep(Duration::from_millis(20));
    assert!(client.events[1].read().is_err());
    // It wants them from now on, and may just have overlooked that frame.
    client.shared.put(TO_CLIENT + FLAGS, [0, 0]);
    assert_eq!(ours.senders[0].room(), 5);
    assert_eq!(rung(&client.events[1]), 1);
    assert_eq!(ours.senders[0].room(), 5);
    thread::sleep(Duration::from_millis(20));
    assert!(client.events.iter().all(|event| event.read().is_err()), "once");
}

#[test]
fn impossible_indices_end_the_connection_and_the_next_client_is_served() {
    let (config, mut ours) = server();
    for (at, value) in [(HEAD, 9), (HEAD, 0xFFFF), (TO_CLIENT + HEAD, 9), (TO_CLIENT + HEAD, 0x8000)] {
        let client = Client::new(&config.socket, &mut ours.memif);
        client.shared.put(at, u16::to_le_bytes(value));
        assert_eq!(ours.receivers[0].receive(&mut [Frame::NONE; 4]), 0);
        assert_eq!((ours.senders[0].room(), ours.senders[0].send(&[&[0; 60]])), (0, 0));
        assert_eq!(event(&mut ours.memif), Some(IMPOSSIBLE));
        assert_eq!(client.raw.farewell(), "a ring's index is impossible");
    }
    Client::new(&config.socket, &mut ours.memif);
}

#[test]
fn an_index_that_runs_back_while_frames_are_lent_does_no_harm() {
    let (config, mut ours) = server();
    let client = Client::new(&config.socket, &mut ours.memif);
    client.shared.put(HEAD, 4_u16.to_le_bytes());
    let mut lent = [Frame::NONE; 8];
    assert_eq!(ours.receivers[0].receive(&mut lent), 4);
    // Four are lent: there can be four more at most.
    for head in [3_u16, 9, 0xFFFF] {
        client.shared.put(HEAD, head.to_le_bytes());
        assert_eq!(ours.receivers[0].receive(&mut lent[4..]), 0);
    }
    // SAFETY: they are lent.
    lent[..4].iter_mut().for_each(|frame| unsafe { frame.bytes() }.fill(1));
    ours.receivers[0].release();
    assert_eq!(ours.receivers[0].receive(&mut lent), 0);
    assert_eq!(event(&mut ours.memif), Some(IMPOSSIBLE));
}

#[test]
fn descriptors_outside_the_regions_are_skipped_and_counted() {
    let (config, mut ours) = server();
    let client = Client::new(&config.socket, &mut ours.memif);
    let size = SIZE as u32;
    for (slot, (region, length, offset)) in [
        (1, 60, 4096),
        (0xFFFF, 60, 4096),
        (0, 60, size - 59),
        (0, u32::MAX, 4096),
        (0, 60, u32::MAX),
        (0, u32::MAX, u32::MAX),
        (0, 0, 4096),
        (0, 60, size - 60),
    ]
    .into_iter()
    .enumerate()
    {
        client.shared.describe(TO_SERVER, slot, [0, region], length, offset);
        client.shared.describe(TO_CLIENT, slot, [0, region], length, offset);
    }
    client.shared.put(HEAD, 8_u16.to_le_bytes());
    let mut lent = [Frame::NONE; 8];
    assert_eq!(ours.receivers[0].receive(&mut lent), 1, "the last is good");
    assert_eq!(lent[0].capacity(), 60, "and nobody said that it is larger");
    ours.receivers[0].release();
    assert_eq!(client.shared.get(TAIL), 8_u16.to_le_bytes());
    let counts = ours.memif.received()[0];
    assert_eq!((counts.malformed, counts.too_long), (5, 2));
    client.shared.put(TO_CLIENT + HEAD, 8_u16.to_le_bytes());
    assert_eq!(ours.senders[0].send(&[&[7; 60], &[7; 60], &[7; 60]]), 1);
    assert_eq!((ours.memif.sent()[0].malformed, ours.memif.sent()[0].no_room), (7, 2));
}

#[test]
fn only_bad_descriptors_do_not_stop_the_ring() {
    let (config, mut ours) = server();
    let client = Client::new(&config.socket, &mut ours.memif);
    (0..SLOTS).for_each(|slot| client.shared.describe(TO_SERVER, slot, [0, 9], 60, 0));
    for head in (8..800_u16).step_by(8) {
        client.shared.put(HEAD, head.to_le_bytes());
        assert_eq!(ours.receivers[0].receive(&mut [Frame::NONE; 8]), 0);
        assert_eq!(client.shared.get(TAIL), head.to_le_bytes(), "given back by itself");
    }
}

#[test]
fn chained_frames_are_skipped_whole_also_when_they_come_in_parts() {
    let (config, mut ours) = server();
    let client = Client::new(&config.socket, &mut ours.memif);
    let mut lent = [Frame::NONE; 8];
    for (slot, flags) in [1, 1, 0, 0, 1, 1, 1, 1].into_iter().enumerate() {
        client.shared.describe(TO_SERVER, slot, [flags, 0], 60, 4096);
    }
    for (head, received, chained) in [(1, 0, 1), (2, 0, 1), (4, 1, 1), (8, 0, 2), (11, 0, 2), (12, 1, 2)] {
        client.shared.put(HEAD, u16::to_le_bytes(head));
        assert_eq!(ours.receivers[0].receive(&mut lent), received, "up to {head}");
        assert_eq!(ours.memif.received()[0].chained, chained, "up to {head}");
        ours.receivers[0].release();
    }
    assert_eq!(client.shared.get(TAIL), 12_u16.to_le_bytes());
}

#[test]
fn handshakes_that_break_the_rules_are_refused_with_the_reason() {
    let (config, mut ours) = server();
    let shared = Shared::new(8192);
    shared.put(0, 0x03E3_1F20_u32.to_le_bytes());
    let small = memfd_create(c"small", MFdFlags::MFD_ALLOW_SEALING).unwrap();
    let (memory, small) = (shared.file.as_fd(), small.as_fd());
    let region = || (add_region(0, 8192), Some(memory));
    let ring = |offset, log2| (add_ring(1, offset, log2), Some(memory));
    let connect = || (message(CONNECT, &[]), None);
    for (messages, reason) in [
        (vec![(message(INIT_LIKE, &[]), None)], "unexpected message"),
        (vec![(message(77, &[]), None)], "unknown message type"),
        (vec![(message(0, &[]), None)], "unknown message type"),
        (vec![region()], "unexpected message"),
        (vec![(message(3, &[(2, &[1, 3])]), None)], "incompatible memif version"),
        (vec![(message(3, &[(2, &[0, 2, 1])]), None)], "interface ID not found"),
        (vec![(message(3, &[(2, &[0, 2, 0, 0, 0, 0, 1])]), None)], "only the Ethernet mode is supported"),
        (vec![(init(), None), (init(), None)], "unexpected message"),
        (vec![(init(), None), (add_region(0, 8192), None)], "missing region file"),
        (vec![(init(), None), (add_region(1, 8192), Some(memory))], "invalid region index"),
        (vec![(init(), None), (add_ring(1, 0, 0), None)], "missing interrupt file"),
        (vec![(init(), None), ring(0, 4)], "the ring is too large"),
        (vec![(init(), None), ring(0, 0), connect()], "a ring in no region"),
        (
            vec![(init(), None), (add_region(0, 8193), Some(memory)), connect()],
            "the region's file is smaller than announced",
        ),
        (
            vec![(init(), None), (add_region(0, 1), Some(small)), connect()],
            "the region's file is smaller than announced",
        ),
        (
            vec![(init(), None), region(), ring(8192 - 255, 3), connect()],
            "a ring that is not all inside its region, or not aligned",
        ),
        (
            vec![(init(), None), region(), ring(u32::MAX, 3), connect()],
            "a ring that is not all inside its region, or not aligned",
        ),
        (
            vec![(init(), None), region(), ring(4, 3), connect()],
            "a ring that is not all inside its region, or not aligned",
        ),
        (vec![(init(), None), region(), ring(1024, 3), connect()], "a ring without memif's cookie"),
    ] {
        let raw = Raw::connect(&config.socket, &mut ours.memif);
        let mut refused = None;
        for (message, file) in messages {
            raw.send(&message, file);
            refused = ours.memif.poll(Duration::ZERO).unwrap().or(refused);
        }
        assert_eq!(raw.farewell(), reason);
        // The same reason twice is one event.
        assert!(matches!(refused, None | Some(Event::Refused(_))), "{refused:?}");
    }
    let raw = Raw::connect(&config.socket, &mut ours.memif);
    raw.send(&[3, 0, 0, 2], None);
    assert_eq!(event(&mut ours.memif), Some(Event::Refused(Reason::Refused("invalid message size"))));
    Client::new(&config.socket, &mut ours.memif);
}

/// A message that only servers send.
const INIT_LIKE: u8 = CONNECTED;

#[test]
fn clients_that_say_nothing_do_not_keep_others_out() {
    let (config, mut ours) = server();
    let silent: Vec<Raw> = (0..7).map(|_| Raw::connect(&config.socket, &mut ours.memif)).collect();
    Client::new(&config.socket, &mut ours.memif);
    assert!(matches!(event(&mut ours.memif), Some(Event::Disconnected(Reason::Gone))));
    let more = Raw::connect(&config.socket, &mut ours.memif);
    let late = Event::Refused(Reason::Refused("the handshake takes too long"));
    assert_eq!(ours.memif.poll(Duration::from_secs(5)).unwrap(), Some(late));
    assert!(silent.iter().any(|raw| raw.receive().0[0] == DISCONNECT));
    drop(more);
}

/// Has the next write to an event file wait until somebody reads it.
fn have_writers_wait(event: BorrowedFd) {
    fcntl(event, FcntlArg::F_SETFL(OFlag::empty())).unwrap();
    let full = (u64::MAX - 1).to_ne_bytes();
    assert_eq!(nix::unistd::write(event, &full).unwrap(), 8);
}

/// Whether `work` is done in time; it may go on for ever otherwise.
fn in_time(work: impl FnOnce() + Send + 'static) -> bool {
    let working = thread::spawn(work);
    let deadline = Instant::now() + Duration::from_secs(5);
    while !working.is_finished() && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(1));
    }
    working.is_finished() && working.join().is_ok()
}

#[test]
fn no_event_file_of_a_peer_keeps_a_worker_waiting() {
    let (config, mut ours) = server();
    let client = Client::new(&config.socket, &mut ours.memif);
    have_writers_wait(client.events[1].as_fd());
    client.shared.put(TO_CLIENT + HEAD, 8_u16.to_le_bytes());
    assert!(in_time(move || {
        for _ in 0..8 {
            assert_eq!(ours.senders[0].send(&[&[1; 60]]), 1);
            thread::sleep(Duration::from_millis(5));
        }
        // Nor does it keep the interface from closing.
        drop(ours);
    }));
    assert_eq!(client.events[1].read().unwrap(), u64::MAX, "as a full one is signalled");
}

#[test]
fn nor_does_our_own_that_a_server_has() {
    let (config, mut ours) = client();
    let server = Server::new(&config, &mut ours.memif);
    have_writers_wait(server.event.as_fd());
    assert!(in_time(move || {
        for _ in 0..8 {
            assert_eq!(ours.senders[0].send(&[&[1; 60]]), 1);
            thread::sleep(Duration::from_millis(5));
        }
        drop(ours);
    }));
}

/// How many descriptors this process has of a file with that name.
fn descriptors(name: &str) -> usize {
    let files = fs::read_dir("/proc/self/fd").unwrap();
    let links = files.filter_map(|file| fs::read_link(file.ok()?.path()).ok());
    links.filter(|link| link.to_string_lossy().contains(name)).count()
}

#[test]
fn files_that_nobody_asked_for_are_closed() {
    let (config, mut ours) = server();
    let file = memfd_create(c"unasked", MFdFlags::empty()).unwrap();
    assert_eq!(descriptors("unasked"), 1);
    for count in [1, 2, 8, 9, 100, 253] {
        for message in [init(), add_region(0, 4096), message(99, &[])] {
            let raw = Raw::connect(&config.socket, &mut ours.memif);
            raw.send_files(&message, file.as_fd(), count);
            ours.memif.poll(Duration::ZERO).unwrap();
            drop(raw);
            ours.memif.poll(Duration::from_millis(1)).unwrap();
        }
    }
    let deadline = Instant::now() + PATIENCE;
    while descriptors("unasked") > 1 {
        assert!(Instant::now() < deadline, "{} are left", descriptors("unasked"));
        ours.memif.poll(Duration::from_millis(1)).unwrap();
    }
    Client::new(&config.socket, &mut ours.memif);
}

#[test]
fn memory_that_can_be_taken_away_is_refused() {
    let unsealable = File::from(memfd_create(c"unsealable", MFdFlags::empty()).unwrap());
    for file in [tempfile::tempfile().unwrap(), unsealable] {
        let (config, mut ours) = server();
        file.set_len(8192).unwrap();
        let raw = Raw::connect(&config.socket, &mut ours.memif);
        raw.send(&init(), None);
        raw.send(&add_region(0, 8192), Some(file.as_fd()));
        raw.send(&message(CONNECT, &[]), None);
        let Some(Event::Refused(reason)) = event(&mut ours.memif) else { panic!("it is not refused") };
        assert!(reason.to_string().contains("can be taken away"), "{reason}");
        assert!(raw.farewell().contains("unsealed=true"));
    }
}

#[test]
fn no_more_memory_is_taken_than_the_interface_needs() {
    let (config, mut ours) = server();
    let shared = Shared::new(8192);
    for sizes in [&[(1 << 30) + 1][..], &[1 << 29, 1 << 29, 1], &[1, u64::MAX]] {
        let raw = Raw::connect(&config.socket, &mut ours.memif);
        raw.send(&init(), None);
        for (index, size) in (0..).zip(sizes) {
            raw.send(&add_region(index, *size), Some(shared.file.as_fd()));
        }
        ours.memif.poll(Duration::ZERO).unwrap();
        assert_eq!(raw.farewell(), "its regions are too large in all");
    }
    Client::new(&config.socket, &mut ours.memif);
}

#[test]
fn frames_that_are_too_long_are_skipped_and_counted() {
    let (config, mut ours) = server();
    let client = Client::new(&config.socket, &mut ours.memif);
    ours.memif.set_longest_frame(200);
    for (slot, length) in [200, 201, 60, 256].into_iter().enumerate() {
        client.shared.describe(TO_SERVER, slot, [0, 0], length, 4096);
    }
    client.shared.put(HEAD, 4_u16.to_le_bytes());
    let mut lent = [Frame::NONE; 8];
    assert_eq!(ours.receivers[0].receive(&mut lent), 2);
    assert_eq!((lent[0].length(), lent[1].length()), (200, 60));
    assert_eq!(ours.memif.received()[0].too_long, 2);
    ours.receivers[0].release();
    assert_eq!(client.shared.get(TAIL), 4_u16.to_le_bytes());
}

#[test]
fn a_sender_can_stop_at_a_frame_that_is_too_long() {
    let (config, mut ours) = server();
    let client = Client::new(&config.socket, &mut ours.memif);
    client.shared.put(TO_CLIENT + HEAD, 8_u16.to_le_bytes());
    let bytes = [7; 300];
    let lengths = [60, 300, 61];
    // SAFETY: the bytes outlive the call.
    let sent = unsafe { ours.senders[0].send_each_that_fits(3, |at| (bytes.as_ptr(), lengths[at])) };
    assert_eq!(sent, (1, true));
    // SAFETY: as above.
    let sent = unsafe { ours.senders[0].send_each_that_fits(1, |at| (bytes.as_ptr(), lengths[at + 2])) };
    assert_eq!(sent, (1, false));
    let counts = ours.memif.sent()[0];
    assert_eq!((counts.frames, counts.too_long, counts.no_room), (2, 1, 0));
}

#[test]
fn what_a_peer_says_does_not_control_a_terminal() {
    let (config, mut ours) = server();
    let raw = Raw::connect(&config.socket, &mut ours.memif);
    raw.send(&message(DISCONNECT, &[(6, b"\x1b]0;title\x07\nfastpath: all is well")]), None);
    let Some(Event::Refused(reason)) = event(&mut ours.memif) else { panic!("nothing was said") };
    assert!(!reason.to_string().chars().any(char::is_control), "{reason:?}");
    assert!(reason.to_string().contains("all is well"));
}

/// Where all mappings of the hand-made memory are.
fn mappings(name: &str) -> Vec<std::ops::Range<usize>> {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let lines = maps.lines().filter(|line| line.contains(name));
    lines
        .map(|line| {
            let (start, end) = line.split(' ').next().unwrap().split_once('-').unwrap();
            usize::from_str_radix(start, 16).unwrap()..usize::from_str_radix(end, 16).unwrap()
        })
        .collect()
}

#[test]
fn random_writes_all_over_the_memory_lead_nowhere_outside() {
    let (config, mut ours) = server();
    let ending = Instant::now() + Duration::from_millis(300);
    let (mut frames, mut breaks) = (0, 0);
    while Instant::now() < ending {
        let client = Client::new(&config.socket, &mut ours.memif);
        let inside = mappings("hand-made");
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut state = 0x9E37_79B9_7F4A_7C15_u64;
                while !stop.load(Ordering::Relaxed) {
                    state =
                        state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    let at = ((state >> 33) as usize % 512) & !3;
                    match at {
                        // Indices go wrong rarely, so that descriptors are looked at.
                        at if at < 128 || (256..384).contains(&at) => {
                            let head = if state >> 60 == 0 {
                                100
                            } else {
                                client.shared.get::<2>(0x40)[0] as u16 + 8
                            };
                            client.shared.put(HEAD, (head & 0xFF).to_le_bytes());
                            let tail = client.shared.get::<2>(TO_CLIENT + TAIL)[0] as u16;
                            client.shared.put(TO_CLIENT + HEAD, (tail.wrapping_add(8) & 0xFF).to_le_bytes());
                        }
                        at => client.shared.put(at, ((state >> 13) as u32 % (2 * SIZE as u32)).to_le_bytes()),
                    }
                }
            });
            let mut lent = [Frame::NONE; 8];
            for _ in 0..20_000 {
                let count = ours.receivers[0].receive(&mut lent);
                for frame in &mut lent[..count] {
                    let start = frame.start() as usize;
                    let end = start + frame.capacity();
                    assert!(inside.iter().any(|range| range.start <= start && end <= range.end));
                    frame.set_length(frame.capacity());
                    frames += 1;
                }
                // SAFETY: they are lent.
                unsafe { ours.senders[0].send_frames(&lent[..count]) };
                ours.receivers[0].release();
                ours.senders[0].send(&[&[7; 60], &[8; 1500]]);
                let built = ours.senders[0].reserve(&mut lent);
                for frame in &lent[..built] {
                    let start = frame.start() as usize;
                    assert!(
                        inside
                            .iter()
                            .any(|range| range.start <= start && start + frame.capacity() <= range.end)
                    );
                }
                ours.senders[0].commit(&lent[..built]);
                if ours.memif.poll(Duration::ZERO).unwrap().is_some() {
                    breaks += 1;
                    break;
                }
            }
            stop.store(true, Ordering::Relaxed);
        });
        if ours.memif.is_connected() {
            drop(client);
            assert!(matches!(event(&mut ours.memif), Some(Event::Disconnected(_))));
        }
    }
    assert!(frames > 0 && breaks > 0, "{frames} frames, {breaks} broken connections");
}

/// A hand-made server's view of our client's memory: one ring of eight each way.
struct Server {
    raw: Raw,
    shared: Shared,
    /// Of the ring to this server.
    event: OwnedFd,
    /// Where the rings are.
    to_server: usize,
    to_client: usize,
}

impl Server {
    fn new(config: &Config, memif: &mut Memif) -> Self {
        let raw = Raw::accept(&config.socket, memif);
        raw.send(&hello(255), None);
        let (mut shared, mut event, mut rings) = (None, None, [0; 2]);
        loop {
            quiet(memif);
            let (bytes, file) = raw.receive();
            match bytes[0] {
                ADD_REGION => {
                    let size = u64::from_le_bytes(bytes[4..12].try_into().unwrap());
                    shared = Some(Shared::map(file.unwrap(), size as usize));
                }
                ADD_RING => {
                    assert!(file.is_some() && bytes[12] == 3);
                    rings[usize::from(bytes[2])] =
                        u32::from_le_bytes(bytes[8..12].try_into().unwrap()) as usize;
                    if bytes[2] == 1 {
                        event = file;
                    }
                }
                CONNECT => break,
                _ => {}
            }
            raw.send(&message(ACK, &[]), None);
        }
        raw.send(&message(CONNECTED, &[(2, b"by hand")]), None);
        let Some(Event::Connected(peer)) = memif.poll(Duration::ZERO).unwrap() else {
            panic!("no connection")
        };
        assert_eq!(peer.name, "by hand");
        Self { raw, shared: shared.unwrap(), event: event.unwrap(), to_server: rings[1], to_client: rings[0] }
    }
}

fn client() -> (Config, Opened) {
    let [_, config] = configs();
    let config = Config { ring_size: SLOTS as u16, ..config };
    let opened = open(&config);
    (config, opened)
}

#[test]
fn a_hand_made_server_that_behaves_is_used() {
    let (config, mut ours) = client();
    let server = Server::new(&config, &mut ours.memif);
    assert_eq!(server.shared.get(server.to_client + HEAD), 8_u16.to_le_bytes(), "all buffers are offered");
    assert_eq!(server.shared.get::<4>(server.to_client), 0x03E3_1F20_u32.to_le_bytes());
    let place = u32::from_le_bytes(server.shared.get(server.to_client + 128 + 8)) as usize;
    server.shared.put(place, [0; 60]);
    server.shared.describe(server.to_client, 0, [0, 0], 60, place as u32);
    server.shared.put(server.to_client + TAIL, 1_u16.to_le_bytes());
    receive_all(&mut ours.receivers[0], 0..1, 60);
    assert_eq!(server.shared.get(server.to_client + HEAD), 9_u16.to_le_bytes());
    assert_eq!(server.shared.get(server.to_client + 128 + 4), 2048_u32.to_le_bytes(), "offered anew");
    assert_eq!(ours.senders[0].send(&[&[3; 100]]), 1);
    assert_eq!(server.shared.get(server.to_server + HEAD), 1_u16.to_le_bytes());
    let place = u32::from_le_bytes(server.shared.get(server.to_server + 128 + 8)) as usize;
    assert_eq!(server.shared.get::<100>(place), [3; 100]);
}

#[test]
fn a_server_cannot_lead_a_client_outside_its_memory() {
    let (config, mut ours) = client();
    let server = Server::new(&config, &mut ours.memif);
    // Wherever it says that buffers are, ours are where we put them.
    for slot in 0..SLOTS {
        server.shared.describe(server.to_client, slot, [0, 9], [60, 2049, u32::MAX, 0][slot % 4], u32::MAX);
        server.shared.describe(server.to_server, slot, [0, 9], u32::MAX, u32::MAX);
    }
    server.shared.put(server.to_client + TAIL, 8_u16.to_le_bytes());
    let mut lent = [Frame::NONE; 8];
    assert_eq!(ours.receivers[0].receive(&mut lent), 2);
    let inside = mappings("memfd:memif");
    for frame in &lent[..2] {
        let start = frame.start() as usize;
        assert_eq!((frame.length(), frame.capacity()), (60, 2048));
        assert!(inside.iter().any(|range| range.start <= start && start + 2048 <= range.end));
    }
    ours.receivers[0].release();
    let counts = ours.memif.received()[0];
    assert_eq!((counts.malformed, counts.too_long), (4, 2));
    assert_eq!(ours.senders[0].send(&[&[3; 60]; 9].map(|frame| &frame[..])), 8);
}

#[test]
fn impossible_indices_of_a_server_end_the_connection() {
    for (to_client, value) in [(true, 9), (true, 0xFFFF), (false, 1), (false, 0x8000)] {
        let (config, mut ours) = client();
        let server = Server::new(&config, &mut ours.memif);
        let ring = if to_client { server.to_client } else { server.to_server };
        server.shared.put(ring + TAIL, u16::to_le_bytes(value));
        assert_eq!(ours.receivers[0].receive(&mut [Frame::NONE; 4]), 0);
        let room = ours.senders[0].room();
        assert_eq!(room, if to_client { 8 } else { 0 });
        assert_eq!(event(&mut ours.memif), Some(IMPOSSIBLE));
        assert_eq!(server.raw.farewell(), "a ring's index is impossible");
    }
}

#[test]
fn servers_that_break_the_rules_are_refused() {
    for (messages, reason) in [
        (vec![message(ACK, &[])], "unexpected message"),
        (vec![message(CONNECTED, &[])], "unexpected message"),
        (vec![message(HELLO, &[(34, &[1, 2, 255, 255])])], "incompatible memif version"),
        (vec![hello(10), hello(10)], "unexpected message"),
        (vec![hello(10), message(CONNECTED, &[])], "unexpected message"),
        (vec![message(99, &[])], "unknown message type"),
    ] {
        let (config, mut ours) = client();
        let raw = Raw::accept(&config.socket, &mut ours.memif);
        messages.iter().for_each(|message| raw.send(message, None));
        assert_eq!(event(&mut ours.memif), Some(Event::Refused(Reason::Refused(reason))));
        assert_eq!(raw.farewell(), reason);
    }
}
