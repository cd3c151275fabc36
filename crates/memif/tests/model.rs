//! Both ends of a ring against a model: whatever both do in whatever order, a ring is a queue of bounded
//! length.

#![allow(clippy::unwrap_used)] // a test may panic

mod common;

use std::collections::VecDeque;

use common::{configs, frame, pair};
use memif::{Config, Frame, Opened};
use proptest::prelude::*;

const LONGEST: usize = 128;

/// What either end does.
#[derive(Clone, Debug)]
enum Act {
    Send(usize),
    /// Reserves so many buffers, and uses so many of them.
    Build(usize, usize),
    Receive(usize),
    Release,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        (0..40_usize).prop_map(Act::Send),
        (0..40_usize, 0..40_usize).prop_map(|(reserve, used)| Act::Build(reserve, used)),
        (0..40_usize).prop_map(Act::Receive),
        Just(Act::Release),
    ]
}

/// Lets the indices of the ring stand shortly before their end.
fn advance(from: &mut Opened, to: &mut Opened, frames: usize) {
    let bytes = [0; 60];
    let mut lent = [Frame::NONE; 64];
    let mut left = frames;
    while left > 0 {
        let sent = from.senders[0].send(&vec![&bytes[..]; left.min(16)]);
        assert_eq!(to.receivers[0].receive(&mut lent), sent);
        to.receivers[0].release();
        left -= sent;
    }
}

fn check(from: &mut Opened, to: &mut Opened, size: usize, acts: &[Act]) -> Result<(), TestCaseError> {
    let (mut waiting, mut lent, mut number) = (VecDeque::new(), 0, 0);
    let mut frames = [Frame::NONE; 40];
    for act in acts {
        let room = size - waiting.len() - lent;
        match *act {
            Act::Send(count) => {
                let bytes: Vec<Vec<u8>> =
                    (number..).take(count).map(|number| frame(number, LONGEST)).collect();
                let sent = from.senders[0].send(&bytes.iter().map(Vec::as_slice).collect::<Vec<_>>());
                prop_assert_eq!(sent, count.min(room));
                waiting.extend(number..number + sent as u64);
                number += sent as u64;
            }
            Act::Build(count, used) => {
                let reserved = from.senders[0].reserve(&mut frames[..count]);
                prop_assert_eq!(reserved, count.min(room));
                let used = used.min(reserved);
                for built in &mut frames[..used] {
                    let bytes = frame(number, LONGEST);
                    built.set_length(bytes.len());
                    // SAFETY: it is reserved.
                    unsafe { built.bytes() }.copy_from_slice(&bytes);
                    waiting.push_back(number);
                    number += 1;
                }
                from.senders[0].commit(&frames[..used]);
            }
            Act::Receive(count) => {
                let received = to.receivers[0].receive(&mut frames[..count]);
                prop_assert_eq!(received, count.min(waiting.len()));
                for frame_received in &frames[..received] {
                    let expected = frame(waiting.pop_front().unwrap(), LONGEST);
                    // SAFETY: it is lent.
                    prop_assert_eq!(unsafe { frame_received.bytes() }, expected);
                }
                lent += received;
            }
            Act::Release => {
                to.receivers[0].release();
                lent = 0;
            }
        }
        prop_assert_eq!(from.senders[0].room(), size - waiting.len() - lent);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    #[test]
    fn a_ring_is_a_queue_of_bounded_length(
        log2 in 0..6_u8, near_the_end: bool, acts in proptest::collection::vec(act(), 1..60), to_server: bool,
    ) {
        let size = 1_u16 << log2;
        let configs = configs().map(|config| Config { ring_size: size, buffer_size: 128, ..config });
        let [mut server, mut client] = pair(&configs);
        let (from, to) = if to_server { (&mut client, &mut server) } else { (&mut server, &mut client) };
        if near_the_end {
            advance(from, to, 65_520);
        }
        check(from, to, usize::from(size), &acts)?;
    }
}
