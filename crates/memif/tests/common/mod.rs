//! What the tests of both ends share.

#![allow(clippy::unwrap_used)] // a test may panic
#![allow(dead_code)] // not all tests use all

use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use memif::{Config, Event, Frame, Memif, Opened, Peer, Receiver, Role, Sender, Socket};

/// How long anything may take.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// An abstract socket of this test alone.
pub fn socket() -> Socket {
    static MADE: AtomicU32 = AtomicU32::new(0);
    Socket::Abstract(format!("/memif-test-{}-{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed)))
}

/// Both ends' settings, one queue each way.
pub fn configs() -> [Config; 2] {
    let socket = socket();
    [Role::Server, Role::Client].map(|role| Config::new(role, socket.clone()))
}

pub fn open(config: &Config) -> Opened {
    Memif::open(config.clone()).unwrap()
}

/// Drives an end until something becomes of its connection.
pub fn event(memif: &mut Memif) -> Event {
    memif.poll(PATIENCE).unwrap().expect("nothing happens")
}

/// Drives an end until it is connected.
pub fn connected(memif: &mut Memif) -> Peer {
    loop {
        if let Event::Connected(peer) = event(memif) {
            return peer;
        }
    }
}

/// Drives both ends until they are connected.
pub fn connect(one: &mut Memif, other: &mut Memif) {
    let deadline = Instant::now() + PATIENCE;
    while !(one.is_connected() && other.is_connected()) {
        assert!(Instant::now() < deadline, "no connection");
        one.poll(Duration::from_millis(1)).unwrap();
        other.poll(Duration::from_millis(1)).unwrap();
    }
}

/// A server and a client that are connected.
pub fn pair(configs: &[Config; 2]) -> [Opened; 2] {
    let [mut server, mut client] = configs.each_ref().map(open);
    connect(&mut server.memif, &mut client.memif);
    [server, client]
}

/// A frame that tells its number: of 60 bytes and more.
pub fn frame(number: u64, longest: usize) -> Vec<u8> {
    let length = 60 + number as usize % (longest - 59);
    let mut bytes = vec![number as u8; length];
    bytes[..8].copy_from_slice(&number.to_be_bytes());
    bytes
}

/// Sends the frames of these numbers, however long it takes.
pub fn send_all(sender: &mut Sender, numbers: std::ops::Range<u64>, longest: usize) {
    let deadline = Instant::now() + PATIENCE;
    let frames: Vec<Vec<u8>> = numbers.map(|number| frame(number, longest)).collect();
    let mut rest: Vec<&[u8]> = frames.iter().map(Vec::as_slice).collect();
    while !rest.is_empty() {
        assert!(Instant::now() < deadline, "{} frames find no room", rest.len());
        let sent = sender.send(&rest[..rest.len().min(32)]);
        rest.drain(..sent);
        if sent == 0 {
            thread::yield_now();
        }
    }
}

/// Receives the frames of these numbers, in order and whole.
pub fn receive_all(receiver: &mut Receiver, numbers: std::ops::Range<u64>, longest: usize) {
    let deadline = Instant::now() + PATIENCE;
    let mut lent = [Frame::NONE; 64];
    let mut expected = numbers.clone();
    while expected.start < numbers.end {
        assert!(Instant::now() < deadline, "frame {} does not come", expected.start);
        let wanted = lent.len().min((numbers.end - expected.start) as usize);
        let count = receiver.receive(&mut lent[..wanted]);
        for (received, number) in lent[..count].iter().zip(&mut expected) {
            // SAFETY: it is lent until the release below.
            assert_eq!(unsafe { received.bytes() }, frame(number, longest), "frame {number}");
        }
        receiver.release();
        if count == 0 {
            thread::yield_now();
        }
    }
}
