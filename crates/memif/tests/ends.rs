//! Two of our own ends with each other.

#![allow(clippy::unwrap_used)] // a test may panic

mod common;

use std::env;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use common::{configs, connect, connected, event, frame, open, pair, receive_all, send_all};
use memif::{Config, Error, Event, Frame, Opened, Reason, Role, Socket};

#[test]
fn frames_arrive_whole_and_in_order_both_ways_at_once() {
    const FRAMES: u64 = 20_000;
    let configs = configs().map(|config| Config { ring_size: 64, buffer_size: 300, ..config });
    let ends = pair(&configs);
    thread::scope(|scope| {
        for mut end in ends {
            scope.spawn(move || {
                for first in (0..FRAMES).step_by(50) {
                    send_all(&mut end.senders[0], first..first + 50, 300);
                    receive_all(&mut end.receivers[0], first..first + 50, 300);
                }
                let [sent, received] = [end.memif.sent()[0], end.memif.received()[0]];
                assert_eq!((sent.frames, received.frames), (FRAMES, FRAMES));
                assert_eq!(sent.bytes, received.bytes);
            });
        }
    });
}

#[test]
fn every_ring_size_wraps() {
    for (log2, ring_size) in (0..=14).map(|log2| (log2, 1 << log2)) {
        let configs = configs().map(|config| Config { ring_size, buffer_size: 64, ..config });
        let [mut server, mut client] = pair(&configs);
        // The indices are 16 bits wide, and wrap as well.
        for (sender, receiver) in [
            (&mut client.senders[0], &mut server.receivers[0]),
            (&mut server.senders[0], &mut client.receivers[0]),
        ] {
            let rounds = if log2 == 12 { 17 } else { 3 };
            let burst = 32.min(u64::from(ring_size));
            for first in (0..rounds * u64::from(ring_size)).step_by(burst as usize) {
                send_all(sender, first..first + burst, 64);
                receive_all(receiver, first..first + burst, 64);
            }
        }
    }
}

#[test]
fn a_full_ring_takes_no_more_until_frames_are_given_back() {
    let configs = configs().map(|config| Config { ring_size: 8, ..config });
    for sends in 0..2 {
        let mut ends = pair(&configs);
        let bytes = [5; 60];
        let mut lent = [Frame::NONE; 16];
        assert_eq!(ends[sends].senders[0].room(), 8);
        assert_eq!(ends[sends].senders[0].send(&[&bytes[..]; 10]), 8);
        assert_eq!((ends[sends].senders[0].room(), ends[sends].senders[0].send(&[&bytes])), (0, 0));
        assert_eq!(ends[1 - sends].receivers[0].receive(&mut lent[..3]), 3);
        assert_eq!(ends[1 - sends].receivers[0].receive(&mut lent), 5, "those that are not lent yet");
        assert_eq!(ends[sends].senders[0].room(), 0, "all are lent");
        ends[1 - sends].receivers[0].release();
        assert_eq!(ends[sends].senders[0].room(), 8);
        let sent = ends[sends].memif.sent()[0];
        assert_eq!((sent.frames, sent.bytes, sent.no_room), (8, 480, 3));
    }
}

#[test]
fn frames_can_be_built_in_the_ring_and_rewritten_where_they_lie() {
    for sends in 0..2 {
        let mut ends = pair(&configs());
        let mut frames = [Frame::NONE; 32];
        let sender = &mut ends[sends].senders[0];
        assert_eq!(sender.reserve(&mut frames), 32);
        for (length, frame) in (60..).zip(&mut frames) {
            assert_eq!((frame.length(), frame.capacity()), (0, 2048));
            frame.set_length(length);
            // SAFETY: it is reserved.
            unsafe { frame.bytes() }.fill(length as u8);
        }
        // Half of them are not wanted after all.
        sender.commit(&frames[..16]);
        assert_eq!(sender.reserve(&mut frames[..1]), 1);
        sender.commit(&[]);
        let receiver = &mut ends[1 - sends].receivers[0];
        let mut lent = [Frame::NONE; 32];
        assert_eq!(receiver.receive(&mut lent), 16);
        for (length, frame) in (60..76).zip(&mut lent) {
            // SAFETY: it is lent.
            assert_eq!(unsafe { frame.bytes() }, vec![length as u8; length]);
            assert_eq!(frame.capacity(), 2048, "there is room to lengthen it");
            frame.set_length(2048);
            // SAFETY: it is lent, and has room.
            unsafe { frame.bytes() }.fill(9);
        }
        receiver.release();
    }
}

#[test]
fn lent_frames_can_be_sent_on() {
    let [mut near, mut source] = pair(&configs());
    let [mut far, mut sink] = pair(&configs());
    send_all(&mut source.senders[0], 0..100, 2048);
    let mut lent = [Frame::NONE; 100];
    assert_eq!(near.receivers[0].receive(&mut lent), 100);
    // SAFETY: they are lent.
    assert_eq!(unsafe { far.senders[0].send_frames(&lent) }, 100);
    near.receivers[0].release();
    receive_all(&mut sink.receivers[0], 0..100, 2048);
}

#[test]
fn a_frame_that_is_too_long_is_refused_and_the_rest_sent() {
    let configs = configs().map(|config| Config { buffer_size: 100, ..config });
    for sends in 0..2 {
        let mut ends = pair(&configs);
        let bytes = [7; 101];
        assert_eq!(ends[sends].senders[0].send(&[&bytes[..60], &bytes, &bytes[..100]]), 3);
        let sent = ends[sends].memif.sent()[0];
        assert_eq!((sent.frames, sent.too_long), (2, 1));
        assert_eq!(ends[1 - sends].receivers[0].receive(&mut [Frame::NONE; 4]), 2);
    }
}

#[test]
fn each_queue_has_its_own_frames_and_missing_ones_are_idle() {
    let [server, client] = configs();
    let server = Config { receive_queues: 4, send_queues: 2, ring_size: 512, ..server };
    let client = Config { send_queues: 3, receive_queues: 5, ..client };
    let [mut server, mut client] = [server, client].each_ref().map(open);
    connect(&mut server.memif, &mut client.memif);
    assert_eq!(client.senders[0].room(), 512, "the smaller ring");
    for (queue, sender) in (0..).zip(&mut client.senders) {
        send_all(sender, 100 * queue..100 * queue + 10, 100);
    }
    for (queue, receiver) in (0..).zip(&mut server.receivers[..3]) {
        receive_all(receiver, 100 * queue..100 * queue + 10, 100);
    }
    assert_eq!(server.receivers[3].receive(&mut [Frame::NONE]), 0);
    assert!(server.senders.iter_mut().all(|sender| sender.room() == 512));
    let mut idle = Vec::new();
    for receiver in &mut client.receivers {
        assert_eq!(receiver.receive(&mut [Frame::NONE]), 0);
        idle.push(!receiver.is_connected());
    }
    assert_eq!(idle, [false, false, true, true, true]);
}

#[test]
fn a_server_takes_the_next_client_and_a_client_the_next_server() {
    let [server_config, client_config] = configs();
    let mut server = open(&server_config);
    for round in 0..3 {
        let mut client = open(&client_config);
        connect(&mut server.memif, &mut client.memif);
        send_all(&mut client.senders[0], round..round + 20, 100);
        receive_all(&mut server.receivers[0], round..round + 20, 100);
        drop(client);
        assert_eq!(event(&mut server.memif), Event::Disconnected(Reason::Said("closed".into())));
        assert_eq!((server.senders[0].room(), server.senders[0].send(&[&[0; 60]])), (0, 0));
    }
    let mut client = open(&client_config);
    connect(&mut server.memif, &mut client.memif);
    drop(server);
    assert_eq!(event(&mut client.memif), Event::Disconnected(Reason::Said("closed".into())));
    let mut server = open(&server_config);
    connect(&mut server.memif, &mut client.memif);
    send_all(&mut server.senders[0], 0..20, 100);
    receive_all(&mut client.receivers[0], 0..20, 100);
}

#[test]
fn lent_frames_keep_their_memory_when_their_connection_ends() {
    let [server_config, client_config] = configs();
    for (stays, goes) in [(&server_config, &client_config), (&client_config, &server_config)] {
        let (mut one, mut other) = (open(stays), open(goes));
        connect(&mut one.memif, &mut other.memif);
        send_all(&mut other.senders[0], 0..1, 100);
        let mut lent = [Frame::NONE; 2];
        assert_eq!(one.receivers[0].receive(&mut lent), 1);
        drop(other);
        assert!(matches!(event(&mut one.memif), Event::Disconnected(_)));
        let mut other = open(goes);
        connect(&mut one.memif, &mut other.memif);
        send_all(&mut other.senders[0], 1..2, 100);
        assert_eq!(one.receivers[0].receive(&mut lent[1..]), 0, "the old ones are still lent");
        // SAFETY: it is lent.
        assert_eq!(unsafe { lent[0].bytes() }, frame(0, 100));
        one.receivers[0].release();
        receive_all(&mut one.receivers[0], 1..2, 100);
    }
}

#[test]
fn a_second_client_or_one_without_the_secret_is_refused() {
    let [server, client] = configs().map(|config| Config { secret: "s3cret".into(), ..config });
    let mut server = open(&server);
    let mut wrong = open(&Config { secret: "wrong".into(), ..client.clone() });
    let mut refusal = None;
    while refusal.is_none() {
        wrong.memif.poll(Duration::from_millis(1)).unwrap();
        refusal = server.memif.poll(Duration::from_millis(1)).unwrap();
    }
    assert_eq!(refusal, Some(Event::Refused(Reason::Refused("incorrect secret"))));
    assert_eq!(event(&mut wrong.memif), Event::Refused(Reason::Said("incorrect secret".into())));
    drop(wrong);
    let mut first = open(&client);
    connect(&mut server.memif, &mut first.memif);
    let mut second = open(&client);
    let told = thread::scope(|scope| {
        let told = scope.spawn(|| event(&mut second.memif));
        let refused = event(&mut server.memif);
        assert_eq!(refused, Event::Refused(Reason::Refused("already connected")));
        told.join().unwrap()
    });
    assert_eq!(told, Event::Refused(Reason::Said("already connected".into())));
    send_all(&mut first.senders[0], 0..10, 100);
    receive_all(&mut server.receivers[0], 0..10, 100);
}

#[test]
fn two_servers_cannot_listen_at_one_socket() {
    let [server, _] = configs();
    let _first = open(&server);
    let Err(error) = memif::Memif::open(server) else { panic!("it listens") };
    assert!(matches!(error, Error::Listen { .. }));
    assert!(error.to_string().contains("choose another socket"), "{error}");
}

/// Where a process of this test finds its peer.
const PEER: &str = "LINERATE_MEMIF_PEER";

/// Not a test but the peer of the next: it sends until it is killed.
#[test]
fn peer_process() {
    let Ok(name) = env::var(PEER) else { return };
    let (role, name) = name.split_once(' ').unwrap();
    let role = if role == "server" { Role::Server } else { Role::Client };
    let Opened { mut memif, mut senders, receivers: _receivers } =
        open(&Config::new(role, Socket::Abstract(name.into())));
    connected(&mut memif);
    for number in 0.. {
        if senders[0].send(&[&frame(number, 100)]) == 0 {
            thread::yield_now();
        }
        assert!(memif.poll(Duration::ZERO).unwrap().is_none(), "the test has gone");
    }
}

#[test]
fn a_killed_process_takes_nothing_with_it() {
    let [server, client] = configs();
    for (config, role) in [(&server, "client"), (&client, "server")] {
        let mut end = open(config);
        let Socket::Abstract(name) = &config.socket else { panic!("a file") };
        for _ in 0..2 {
            let mut peer = Command::new(env::current_exe().unwrap())
                .args(["--exact", "peer_process"])
                .env(PEER, format!("{role} {name}"))
                .stdout(Stdio::null())
                .spawn()
                .unwrap();
            connected(&mut end.memif);
            let mut lent = [Frame::NONE; 8];
            while end.receivers[0].receive(&mut lent) < 8 {
                end.receivers[0].release();
            }
            peer.kill().unwrap();
            peer.wait().unwrap();
            assert_eq!(event(&mut end.memif), Event::Disconnected(Reason::Gone));
            for lent in lent {
                // SAFETY: it is lent.
                let bytes = unsafe { lent.bytes() };
                let number = u64::from_be_bytes(bytes[..8].try_into().unwrap());
                assert_eq!(bytes, frame(number, 100));
            }
            end.receivers[0].release();
            assert_eq!((end.receivers[0].receive(&mut lent), end.senders[0].room()), (0, 0));
        }
    }
}
