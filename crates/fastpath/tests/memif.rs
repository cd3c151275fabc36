//! A router between two memifs: frames cross from one process's end to the other's, and peers come and go.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use fastpath::counters::Counters;
use fastpath::device;
use fastpath::fib::Prefix;
use fastpath::router::{Hop, Router};
use fastpath::worker::{Receive, Worker};
use memif::{Config, Frame, Memif, Opened, Role, Socket};
use wire::{MacAddress, ethernet, ipv4};

const OURS: MacAddress = MacAddress([2, 0, 0, 0, 0, 0x10]);
const THEIRS: MacAddress = MacAddress([2, 0, 0, 0, 0, 0x20]);

fn config(role: Role, number: u16) -> Config {
    let name = format!("fastpath-test-{}-{number}", std::process::id());
    Config { ring_size: 256, ..Config::new(role, Socket::Abstract(name)) }
}

/// A peer of the router's device `number`, connected.
fn peer(number: u16, controls: &mut [Memif]) -> Opened {
    connected(Memif::open(config(Role::Client, number)).unwrap(), &mut controls[usize::from(number)])
}

/// A client once it is connected to the server that `control` is of.
fn connected(mut opened: Opened, control: &mut Memif) -> Opened {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !opened.memif.is_connected() || !control.is_connected() {
        opened.memif.poll(Duration::from_millis(1)).unwrap();
        control.poll(Duration::from_millis(1)).unwrap();
        assert!(Instant::now() < deadline, "no connection");
    }
    opened
}

fn frame() -> Vec<u8> {
    let ethernet = ethernet::Header { destination: OURS, source: THEIRS, ethertype: ethernet::IPV4 };
    let header = ipv4::Header {
        source: Ipv4Addr::new(16, 0, 0, 1),
        destination: Ipv4Addr::new(48, 0, 0, 1),
        ttl: 64,
        protocol: ipv4::UDP,
        total_length: 46,
        tos: 0,
        identification: 0,
    };
    let mut frame = ethernet.emit().to_vec();
    frame.extend(header.emit());
    frame.resize(60, 0xab);
    frame
}

#[test]
fn frames_cross_and_peers_come_and_go() {
    let mut router = Router::new().unwrap();
    let (mut controls, mut inputs, mut outputs) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..2 {
        let (memif, queues) = device::memif::open(config(Role::Server, number)).unwrap();
        router.add_device(&format!("memif{number}"), OURS, 1500).unwrap();
        controls.push(memif);
        inputs.extend(queues.inputs.into_iter().map(|input| Receive::new(number, input)));
        outputs.extend(queues.outputs);
    }
    let neighbour = IpAddr::from([10, 1, 0, 2]);
    router.set_neighbour(1, neighbour, THEIRS).unwrap();
    let prefix = Prefix::new(u32::from(Ipv4Addr::new(48, 0, 0, 0)), 8).unwrap();
    router.add_route(prefix, &[Hop::Neighbour(1, neighbour)]).unwrap();
    let counters = Arc::new(Counters::default());
    let mut worker = Worker::new(inputs, outputs, router.attach(), Arc::clone(&counters));

    let mut from = peer(0, &mut controls);
    for round in 1..=3 {
        let mut to = peer(1, &mut controls);
        let frame = frame();
        assert_eq!(from.senders[0].send(&[&frame[..]; 200]), 200);
        while worker.turn() > 0 {}
        let mut received = [Frame::NONE; 256];
        let count = to.receivers[0].receive(&mut received);
        assert_eq!(count, 200, "in round {round}");
        for frame in &received[..count] {
            // SAFETY: they are lent, and the worker is at rest.
            let bytes = unsafe { frame.bytes() };
            assert_eq!((bytes.len(), &bytes[..6], bytes[22]), (60, &THEIRS.0[..], 63));
        }
        to.receivers[0].release();
        // What is sent while the peer is gone is counted as dropped.
        drop(to);
        while controls[1].is_connected() {
            controls[1].poll(Duration::from_millis(1)).unwrap();
        }
        assert_eq!(from.senders[0].send(&[&frame[..]; 10]), 10);
        while worker.turn() > 0 {}
        let balance = counters.balance();
        assert!(balance.holds(), "{balance:?}");
        assert_eq!((balance.sent, balance.dropped), (200 * round, 10 * round));
    }
}

#[test]
fn workers_share_the_queues_of_a_peer_that_has_fewer() {
    let server = Config { send_queues: 3, ..config(Role::Server, 7) };
    let (mut control, mut queues) = device::memif::open(server).unwrap();
    let client = Config { receive_queues: 2, ..config(Role::Client, 7) };
    let mut peer = connected(Memif::open(client).unwrap(), &mut control);
    let mut bytes = frame();
    // SAFETY: it is as long, and outlives what is done with it.
    let lent =
        [unsafe { fastpath::vector::Frame::new(bytes.as_mut_ptr(), bytes.len() as u32, bytes.len() as u32) };
            10];
    let sent: Vec<usize> = queues.outputs.iter_mut().map(|output| output.transmit(&lent)).collect();
    assert_eq!(sent, [10, 10, 10]);
    let mut received = [Frame::NONE; 64];
    let counts: Vec<usize> = peer.receivers.iter_mut().map(|queue| queue.receive(&mut received)).collect();
    assert_eq!(counts, [10, 20], "the third one shares the second queue");
    drop(peer);
    while control.is_connected() {
        control.poll(Duration::from_millis(1)).unwrap();
    }
    let sent: Vec<usize> = queues.outputs.iter_mut().map(|output| output.transmit(&lent)).collect();
    assert_eq!(sent, [0, 0, 0], "without a peer there is no room");
}
