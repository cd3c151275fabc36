//! A router of two interfaces in ordinary memory, which tests put frames in and take them out of.

pub mod icmp6;

use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex};

use fastpath::counters::{Balance, Counters, Reason};
use fastpath::device::Queues;
use fastpath::device::simulated::Wire;
use fastpath::fib::Prefix;
use fastpath::punt::Punt;
use fastpath::router::{Hop, Router};
use fastpath::worker::{Receive, Worker};
use wire::checksum::Sum;
use wire::{MacAddress, ethernet, icmp, ipv4};

pub const OURS: [MacAddress; 2] = [MacAddress([2, 0, 0, 0, 0, 0x10]), MacAddress([2, 0, 0, 0, 0, 0x11])];
pub const THEIRS: [MacAddress; 2] = [MacAddress([2, 0, 0, 0, 0, 0x20]), MacAddress([2, 0, 0, 0, 0, 0x21])];

/// A router of two interfaces, with a neighbour at each.
pub struct Two {
    pub router: Router,
    pub wires: Vec<Wire>,
    pub worker: Worker,
    pub counters: Arc<Counters>,
}

impl Two {
    /// Between devices that send up to `room` frames.
    pub fn new(room: usize) -> Self {
        let (wires, queues): (Vec<_>, Vec<_>) = (0..2).map(|_| Wire::device(room)).unzip();
        Self { wires, ..Self::between(queues) }
    }

    /// Between two devices, whose other ends the test has.
    pub fn between(devices: Vec<Queues>) -> Self {
        Self::of(Router::new().unwrap(), devices)
    }

    /// Of this router, which has no interfaces yet, between two devices.
    pub fn of(mut router: Router, devices: Vec<Queues>) -> Self {
        let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
        for (number, queues) in (0..2u16).zip(devices) {
            let at = usize::from(number);
            assert_eq!(router.add_device(&format!("memif{number}"), OURS[at], 1500).unwrap(), number);
            inputs.extend(queues.inputs.into_iter().map(|input| Receive::new(number, input)));
            outputs.extend(queues.outputs);
            let neighbour = IpAddr::from(Ipv4Addr::new(10, number as u8, 0, 2));
            router.set_neighbour(number, neighbour, THEIRS[at]).unwrap();
            let prefix = Prefix::new(u32::from(Ipv4Addr::new(16 + 32 * number as u8, 0, 0, 0)), 8).unwrap();
            router.add_route(prefix, &[Hop::Neighbour(number, neighbour)]).unwrap();
        }
        let counters = Arc::new(Counters::default());
        let worker = Worker::new(inputs, outputs, router.attach(), Arc::clone(&counters));
        Self { router, wires: Vec::new(), worker, counters }
    }

    pub fn run(&mut self) {
        while self.worker.turn() > 0 {}
        assert!(self.counters.balance().holds(), "{:?}", self.counters.balance());
    }

    /// Checks that all `put` frames are accounted for, and each that was dropped under a reason.
    pub fn check(&self, put: u64) -> Balance {
        let balance = self.counters.balance();
        assert!(balance.holds(), "{balance:?}");
        let dropped: u64 = self.counters.reasons.iter().map(|counter| counter.get()).sum();
        assert_eq!((balance.received, balance.dropped), (put, dropped));
        balance
    }

    pub fn dropped(&self, reason: Reason) -> u64 {
        self.counters.reasons[reason as usize].get()
    }
}

/// A UDP packet of `length` bytes from behind the first neighbour.
pub fn frame(to: MacAddress, destination: [u8; 4], ttl: u8, length: usize) -> Vec<u8> {
    let ethernet = ethernet::Header { destination: to, source: THEIRS[0], ethertype: ethernet::IPV4 };
    let header = ipv4::Header {
        source: Ipv4Addr::new(16, 0, 0, 1),
        destination: destination.into(),
        ttl,
        protocol: ipv4::UDP,
        total_length: length as u16,
        tos: 0,
        identification: 0,
    };
    let mut frame = ethernet.emit().to_vec();
    frame.extend(header.emit());
    frame.resize(ethernet::LENGTH + length, 0xab);
    frame
}

/// An echo request to the first interface.
pub fn ping(source: Ipv4Addr, destination: Ipv4Addr, ttl: u8, payload: &[u8]) -> Vec<u8> {
    let mut echo = icmp::Header { kind: icmp::ECHO_REQUEST, checksum: 0, identifier: 7, sequence: 9 };
    echo.checksum = Sum::default().bytes(&echo.emit()).bytes(payload).checksum();
    let header = ipv4::Header {
        source,
        destination,
        ttl,
        protocol: ipv4::ICMP,
        total_length: (ipv4::LENGTH + icmp::LENGTH + payload.len()) as u16,
        tos: 0,
        identification: 0x1234,
    };
    let ethernet = ethernet::Header { destination: OURS[0], source: THEIRS[0], ethertype: ethernet::IPV4 };
    [&ethernet.emit()[..], &header.emit(), &echo.emit(), payload].concat()
}

/// A frame with its header changed, and the sum put right.
pub fn changed(mut frame: Vec<u8>, change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    change(&mut frame);
    let length = usize::from(frame[14] & 0xf) * 4;
    frame[24..26].fill(0);
    let sum = Sum::default().bytes(&frame[14..14 + length]).checksum();
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
    frame
}

/// A frame with any of its bytes changed, and its end cut off.
pub fn damaged(mut frame: Vec<u8>, changes: Vec<(usize, u8)>, cut: usize) -> Vec<u8> {
    for (at, byte) in changes {
        if let Some(place) = frame.get_mut(at) {
            *place = byte;
        }
    }
    frame.truncate(cut);
    frame
}

/// A kernel that takes some frames.
pub struct Taken {
    frames: Mutex<Vec<Vec<u8>>>,
    room: usize,
}

impl Taken {
    pub fn new(room: usize) -> Arc<Self> {
        Arc::new(Self { frames: Mutex::default(), room })
    }

    pub fn take(&self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.frames.lock().unwrap())
    }
}

impl Punt for Taken {
    fn punt(&self, frame: &[u8]) -> bool {
        let mut frames = self.frames.lock().unwrap();
        let room = frames.len() < self.room;
        frames.extend(room.then(|| frame.to_vec()));
        room
    }
}
