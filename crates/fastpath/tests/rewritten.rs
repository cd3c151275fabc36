//! Frames that another process rewrites while the graph works on them, as a peer may that breaks the rules of
//! shared memory: frames and what becomes of them between two nodes enter; nothing panics, and nothing vanishes.

use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{OURS, THEIRS, Taken, Two, frame, ping};
use fastpath::counters::Reason;
use fastpath::device::{self, simulated::Wire};
use fastpath::node::Node;
use fastpath::punt::Kernel;
use fastpath::vector::{Index, Packets};
use memif::{Config, Frame, Memif, Opened, Role, Socket};
use proptest::prelude::*;
use wire::{arp, ethernet, icmp};

use crate::common::icmp6::{self, HOST, THEM, US, addressed, advertisement, icmp6, solicitation, udp};

/// More calls of nodes than any pass has.
const MANY: usize = 1000;
/// The kinds of [`frame_of`].
const KINDS: usize = 12;

/// A router of both versions of IP, a VLAN and a way to the kernel; frames of more than 200 bytes are too long
/// for its second interface.
fn both(two: Two) -> Two {
    let mut two = addressed(two);
    for (interface, mtu) in [(0, 1500), (1, 200)] {
        two.router.set_interface(interface, |interface| interface.mtu = mtu).unwrap();
        two.router.add_address(interface, [10, interface as u8, 0, 1].into(), 24).unwrap();
    }
    two.router.set_neighbour(1, icmp6::ip(THEM), THEIRS[1]).unwrap();
    let tagged = two.router.add_vlan(0, 7).unwrap();
    two.router.add_address(tagged, [10, 7, 0, 1].into(), 24).unwrap();
    two.router.set_kernel(0, Some(Kernel::new(Taken::new(20)))).unwrap();
    two
}

/// Forwards all that has arrived, rewritten by `before` at each node; says how many nodes were called.
fn run(two: &mut Two, mut before: impl FnMut(Node, &mut Packets)) -> usize {
    let mut calls = 0;
    let mut before = |node, packets: &mut Packets| {
        calls += 1;
        before(node, packets);
    };
    while two.worker.turn_before_nodes(&mut before) > 0 {}
    two.router.poll();
    calls
}

#[test]
fn a_packet_that_is_too_long_no_more_is_not_cut() {
    // Its length becomes that of its header, of no header, and of a packet that need not be cut.
    for length in [20u16, 0, 100] {
        let mut two = both(Two::new(1024));
        two.wires[0].put(frame(OURS[0], [48, 0, 0, 1], 64, 600));
        run(&mut two, |node, packets| {
            if node == Node::Ip4Frag {
                packets.bytes_mut(0)[16..18].copy_from_slice(&length.to_be_bytes());
            }
        });
        assert_eq!((two.dropped(Reason::Rewritten), two.check(1).made), (1, 0), "{length}");
    }
}

#[test]
fn a_request_that_is_put_back_after_each_answer_does_not_go_round_for_ever() {
    let us = [10, 0, 0, 1].into();
    let requests = [
        (ping(us, us, 64, b"again"), Node::Ip4Local),
        (
            icmp6((OURS[0], THEIRS[0]), (US, US), 64, &[icmp::ECHO_REQUEST_V6, 0, 0, 0, 1, 2, 3, 4]),
            Node::Ip6Local,
        ),
    ];
    for (request, local) in requests {
        let mut two = both(Two::new(1024));
        two.wires[0].put(request.clone());
        let (mut calls, mut answers) = (0, 0);
        run(&mut two, |node, packets| {
            calls += 1;
            // It ends even if the router does not end it.
            if node == local && calls < 100 * MANY {
                answers += 1;
                packets.bytes_mut(0).copy_from_slice(&request);
            }
        });
        assert!(answers > 1 && calls < MANY, "{local:?}: {calls} calls");
        assert_eq!((two.dropped(Reason::Rewritten), two.check(1).dropped), (1, 1));
    }
}

/// A frame of one of several kinds, of about `length` bytes.
fn frame_of(kind: usize, length: usize) -> Vec<u8> {
    let macs = (OURS[0], THEIRS[0]);
    let payload = vec![0x5a; length];
    let echo = [&[icmp::ECHO_REQUEST_V6, 0, 0, 0][..], &payload].concat();
    let ours = [10, 0, 0, 1].into();
    match kind {
        0 => frame(OURS[0], [48, 0, 0, 1], 64, 20 + length),
        1 => frame(OURS[0], [99, 0, 0, 1], 64, 20 + length),
        2 => frame(OURS[0], [10, 1, 0, 77], 64, 20 + length),
        3 => frame(OURS[0], [48, 0, 0, 1], 1, 20 + length),
        4 => ping([16, 0, 0, 1].into(), ours, 64, &payload),
        5 => udp(THEM, 64, 40 + length),
        6 => udp("2001:db8:99::1", 64, 40 + length),
        7 => udp(THEM, 1, 40 + length),
        8 => icmp6(macs, (HOST, US), 64, &echo),
        9 => solicitation(HOST, US, Some(THEIRS[0])),
        10 => advertisement(US, THEM, 0x60, Some(THEIRS[0])),
        _ => {
            let header =
                ethernet::Header { destination: OURS[0], source: THEIRS[0], ethertype: ethernet::ARP };
            let asks = arp::Header {
                operation: arp::REQUEST,
                sender_mac: THEIRS[0],
                sender: [10, 0, 0, 2].into(),
                target_mac: OURS[0],
                target: ours,
            };
            [&header.emit()[..], &asks.emit()].concat()
        }
    }
}

/// What a peer writes to a frame, and where.
type Write = (usize, Vec<u8>);

/// Writes that mean something where they are, behind one header or the other; and any.
fn any_write() -> impl Strategy<Value = Write> {
    let telling: [(usize, &[u8]); 24] = [
        (0, &[0xff, 0xff]),
        (6, &[1]),
        (12, &[8, 0]),
        (12, &[0x86, 0xdd]),
        (12, &[0x81, 0, 0, 7]),
        // Length of header and packet, fragment, time to live, protocol, source, destination, what follows.
        (14, &[0x45]),
        (14, &[0x4f]),
        (14, &[0x40]),
        (16, &[0, 0]),
        (16, &[0, 20]),
        (16, &[0xff, 0xff]),
        (20, &[0, 0]),
        (20, &[0x20, 1]),
        (22, &[1, 1]),
        (26, &[10, 0, 0, 1]),
        (30, &[10, 0, 0, 1]),
        (34, &[8, 0]),
        // Length of payload, next header, destination, message and option.
        (18, &[0, 0]),
        (18, &[0xff, 0xff]),
        (20, &[58, 255]),
        (20, &[0, 64]),
        (38, &[0xff, 2]),
        (54, &[128, 0]),
        (78, &[1, 0]),
    ];
    let telling = prop::sample::select(telling.map(|(at, bytes)| (at, bytes.to_vec())).to_vec());
    prop_oneof![3 => telling, 1 => (0usize..90, prop::collection::vec(any::<u8>(), 1..4))]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Before any node any lent frames are rewritten: each of them, or every second, third or fourth, in part or
    /// as another frame.
    #[test]
    fn nothing_vanishes(
        vectors in prop::collection::vec(
            prop::collection::vec((0..KINDS, 0usize..700, any::<bool>()), 1..100), 1..32),
        writes in prop::collection::vec((any_write(), 1usize..5, prop::option::of(0..KINDS)), 1..500),
    ) {
        let mut two = both(Two::new(200));
        let mut writes = writes.into_iter().cycle();
        let mut put = 0;
        for vector in vectors {
            for (kind, length, tagged) in vector {
                let mut frame = frame_of(kind, length);
                if tagged {
                    frame.splice(12..12, [0x81, 0, 0, 7]);
                }
                two.wires[usize::from(matches!(kind, 9 | 10))].put(frame);
                put += 1;
            }
            let mut lent = 0;
            let calls = run(&mut two, |node, packets| {
                if node == Node::DeviceInput {
                    lent = packets.len();
                }
                let Some(((at, bytes), every, other)) = writes.next() else { return };
                let other = other.map_or_else(Vec::new, |kind| frame_of(kind, 300));
                for index in (0..lent).step_by(every) {
                    let frame = packets.bytes_mut(index as Index);
                    let length = frame.len().min(other.len());
                    frame[..length].copy_from_slice(&other[..length]);
                    if let Some(place) = frame.get_mut(at..at + bytes.len()) {
                        place.copy_from_slice(&bytes);
                    }
                }
            });
            prop_assert!(calls < MANY, "{calls} calls");
        }
        two.check(put);
    }
}

/// A peer of the router's memif, connected, and the router's queues.
fn peer() -> (Memif, Opened, device::Queues) {
    let config = |role| {
        let socket = Socket::Abstract(format!("fastpath-rewritten-{}", std::process::id()));
        Config { ring_size: 256, ..Config::new(role, socket) }
    };
    let (mut ours, queues) = device::memif::open(config(Role::Server)).unwrap();
    let mut theirs = Memif::open(config(Role::Client)).unwrap();
    let deadline = Instant::now() + Duration::from_secs(10);
    while !ours.is_connected() || !theirs.memif.is_connected() {
        theirs.memif.poll(Duration::from_millis(1)).unwrap();
        ours.poll(Duration::from_millis(1)).unwrap();
        assert!(Instant::now() < deadline, "no connection");
    }
    (ours, theirs, queues)
}

/// Writes to headers in these buffers, without any order, until the time is over.
fn scribble(buffers: &[Frame], until: Instant) {
    let telling = [0u8, 1, 20, 28, 40, 0x40, 0x45, 0x4f, 0x60, 0x81, 8, 58, 128, 0xff];
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    while Instant::now() < until {
        for _ in 0..1000 {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let [buffer, value, at] = [random >> 8, random >> 24, random >> 40].map(|bits| bits as usize);
            // Beyond the link addresses, so that most frames are taken.
            let at = 12 + at % 60;
            // SAFETY: the buffers are longer. They are the peer's mapping of the memory, which its owner here
            // only reaches by another address, and by atomics.
            let place = unsafe { AtomicU8::from_ptr(buffers[buffer % buffers.len()].start().add(at)) };
            place.store(telling[value % telling.len()], Relaxed);
        }
    }
}

#[test]
fn a_peer_that_writes_to_what_it_has_handed_over_stops_nothing() {
    let (_ours, mut theirs, queues) = peer();
    let (wire, other) = Wire::device(1024);
    let mut two = both(Two::between(vec![queues, other]));
    let mut buffers = [Frame::NONE; 256];
    assert_eq!(theirs.senders[0].reserve(&mut buffers), 256);
    theirs.senders[0].commit(&[]);
    let frames: Vec<_> = (0..256).map(|number| frame_of(number % KINDS, number * 2)).collect();
    let frames: Vec<&[u8]> = frames.iter().map(Vec::as_slice).collect();
    let until = Instant::now() + Duration::from_secs(2);
    let mut put = 0;
    thread::scope(|scope| {
        scope.spawn(move || scribble(&buffers, until));
        while Instant::now() < until {
            put += theirs.senders[0].send(&frames) as u64;
            run(&mut two, |_, _| {});
            while wire.take().is_some() {}
            theirs.receivers[0].receive(&mut [Frame::NONE; 256]);
            theirs.receivers[0].release();
        }
    });
    run(&mut two, |_, _| {});
    let balance = two.check(put);
    assert!(balance.sent > 0 && balance.made > 0, "{balance:?}");
}
