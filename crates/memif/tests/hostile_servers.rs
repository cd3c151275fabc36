//! Servers that break the protocol: none makes a client touch memory that is not its own, or stop.

#![allow(clippy::unwrap_used)] // a test may panic

mod common;
#[path = "common/raw.rs"]
mod raw;

use std::os::fd::{AsFd, OwnedFd};
use std::thread;
use std::time::Duration;

use common::{configs, open, receive_all};
use memif::{Config, Event, Frame, Memif, Opened, Reason};
use raw::{
    ACK, ADD_REGION, ADD_RING, CONNECT, CONNECTED, HEAD, HELLO, IMPOSSIBLE, Raw, SLOTS, Shared, TAIL, event,
    have_writers_wait, hello, in_time, mappings, message, quiet,
};

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

#[test]
fn an_event_file_that_a_server_has_keeps_no_worker_waiting() {
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
