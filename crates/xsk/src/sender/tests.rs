use std::sync::Mutex;
use std::sync::atomic::Ordering;

use nix::libc::XDP_PKT_CONTD;
use proptest::prelude::*;

use super::*;
use crate::frames::Memory;
use crate::ring::simulated::ring;

/// What the kernel does when it is woken next.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Takes up to so many frames; they complete at once.
    Take(u32),
    /// Takes up to so many, and drops the last.
    Drop(u32),
    Down,
}

/// A kernel that copies.
struct Simulated {
    rings: Mutex<(Consumer, Producer)>,
    steps: Mutex<Vec<Step>>,
    /// The first byte of each frame that left, and its length.
    left: Mutex<Vec<(u64, u32)>>,
    invalid: Mutex<u64>,
    lost: Mutex<u64>,
    /// Pieces of a frame whose last one it does not have.
    partial: Mutex<Vec<(u64, u32)>>,
}

impl Wake for Simulated {
    fn wake_to_send(&self) -> Woken {
        let (transmit, completion) = &mut *self.rings.lock().unwrap();
        let step = self.steps.lock().unwrap().pop().unwrap_or(Step::Take(u32::MAX));
        let (most, drops) = match step {
            Step::Down => return Woken::Down,
            Step::Take(most) => (most, false),
            Step::Drop(most) => (most.max(1), true),
        };
        let mut taken = 0;
        let mut before = self.partial.lock().unwrap();
        // Each piece that the kernel takes has its entry in the completion ring from then on.
        while taken < most && transmit.available() > 0 && completion.room() > before.len() as u32 {
            let descriptor = transmit.descriptor(0);
            transmit.release(1);
            if descriptor.length == 0 {
                assert!(before.is_empty(), "a frame was taken back in the middle");
                *self.invalid.lock().unwrap() += 1;
                continue;
            }
            taken += 1;
            before.push((descriptor.address, descriptor.length));
            if descriptor.options & XDP_PKT_CONTD != 0 {
                assert_eq!(descriptor.length, 2048, "only the last piece is shorter");
                continue;
            }
            let first = before[0].0;
            let length = before.iter().map(|(_, length)| length).sum();
            for (number, (address, _)) in before.drain(..).enumerate() {
                assert_eq!(address, first + 2048 * number as u64);
                completion.write_address(address);
            }
            completion.publish();
            if drops && (taken >= most || transmit.available() == 0) {
                *self.lost.lock().unwrap() += 1;
                return Woken::Dropped;
            }
            self.left.lock().unwrap().push((first / 2048, length));
        }
        if transmit.available() > 0 { Woken::Again } else { Woken::Done }
    }

    fn wake_to_receive(&self) {}
}

fn sender(start: u32, steps: Vec<Step>) -> (Sender, Arc<Simulated>) {
    sender_of(start, steps, 1)
}

/// One whose frames have so many chunks.
fn sender_of(start: u32, steps: Vec<Step>, chunks: u32) -> (Sender, Arc<Simulated>) {
    let (transmit, taken) = ring(128, 2, start);
    let (completed, completion) = ring(128, 1, start);
    let kernel = Arc::new(Simulated {
        rings: Mutex::new((taken, completed)),
        steps: Mutex::new(steps),
        left: Mutex::default(),
        invalid: Mutex::default(),
        lost: Mutex::default(),
        partial: Mutex::default(),
    });
    let memory = Arc::new(Memory::new(100 * chunks, 2048, 0).unwrap());
    let share = Share::new(&memory, 0, 100, chunks as usize);
    (
        Sender::new(
            Arc::clone(&kernel) as Arc<dyn Wake>,
            share,
            transmit,
            completion,
            Waking { copies: true, polls: false },
        ),
        kernel,
    )
}

fn place(sender: &mut Sender, from: usize, count: usize) {
    for index in from..from + count {
        assert!(sender.place(index, 60 + index).is_some());
    }
}

#[test]
fn a_burst_leaves_in_one_call_and_its_frames_come_back() {
    let (mut sender, kernel) = sender(u32::MAX - 10, Vec::new());
    for round in 0..10 {
        place(&mut sender, 0, BURST);
        assert_eq!(sender.send(BURST), Sent { taken: BURST, dropped: 0 }, "{round}");
    }
    assert_eq!(kernel.left.lock().unwrap().len(), 10 * BURST);
    assert_eq!(sender.counters.sent.load(Ordering::Relaxed), 640);
}

#[test]
fn what_the_driver_drops_is_told_and_no_other() {
    // The last step comes first.
    let (mut sender, kernel) = sender(0, vec![Step::Drop(1), Step::Take(2), Step::Drop(3)]);
    place(&mut sender, 0, 8);
    assert_eq!(sender.send(8), Sent { taken: 8, dropped: 0b10_0100 });
    let lengths: Vec<u32> = kernel.left.lock().unwrap().iter().map(|(_, length)| *length).collect();
    assert_eq!(lengths, [60, 61, 63, 64, 66, 67]);
}

#[test]
fn what_waits_while_the_interface_is_down_is_taken_back_and_never_leaves() {
    let (mut sender, kernel) = sender(0, vec![Step::Down]);
    place(&mut sender, 0, 5);
    assert_eq!(sender.send(5), Sent::default());
    assert!(!sender.is_up());
    assert_eq!(sender.recall(5), 5);
    place(&mut sender, 0, 2);
    assert_eq!(sender.send(2), Sent::default(), "it is only now known to be up again");
    assert_eq!(sender.send(2), Sent { taken: 2, dropped: 0 });
    assert_eq!((kernel.left.lock().unwrap().len(), *kernel.invalid.lock().unwrap()), (2, 5));
    // No frame was lost on the way.
    place(&mut sender, 0, BURST);
    assert_eq!(sender.send(BURST).taken, BURST);
    sender.share.reap(&mut sender.completion);
    assert_eq!(sender.share.free(), 100);
}

#[test]
fn what_the_kernel_may_have_taken_is_not_taken_back() {
    let (mut sender, _) = sender(0, vec![Step::Take(0); 8]);
    place(&mut sender, 0, 5);
    assert_eq!(sender.send(3), Sent::default());
    assert_eq!(sender.recall(5), 2, "three are in the ring");
    assert!(sender.place(0, 60).is_none() && sender.place(3, 60).is_some());
}

#[test]
fn a_frame_longer_than_a_buffer_has_no_room() {
    let (mut sender, _) = sender(0, Vec::new());
    assert!(sender.place(0, 2049).is_none() && sender.place(0, 2048).is_some());
    assert!(sender.place(2, 60).is_none(), "numbers come one after the other");
}

proptest! {
    #[test]
    fn every_frame_leaves_once_is_dropped_or_is_taken_back(
        start in any::<u32>(),
        steps in prop::collection::vec(prop_oneof![
            (0_u32..40).prop_map(Step::Take), (1_u32..20).prop_map(Step::Drop), Just(Step::Down)
        ], 0..60),
        rounds in prop::collection::vec((1_usize..=BURST, any::<bool>()), 1..30),
        lengths in prop::collection::vec(60_usize..8192, 1..5),
    ) {
        let (mut sender, kernel) = sender_of(start, steps, 4);
        let (mut offered, mut taken, mut dropped, mut recalled) = (0, 0, 0, 0);
        let mut waits = 0;
        for (count, gives_up) in rounds {
            while waits < count && sender.place(waits, lengths[offered % lengths.len()]).is_some() {
                waits += 1;
                offered += 1;
            }
            let sent = sender.send(waits);
            prop_assert_eq!(sent.dropped & (u64::MAX.checked_shl(sent.taken as u32).unwrap_or(0)), 0);
            taken += sent.taken;
            dropped += u64::from(sent.dropped.count_ones());
            waits -= sent.taken;
            if gives_up {
                let back = sender.recall(waits);
                recalled += back;
                waits -= back;
            }
        }
        kernel.steps.lock().unwrap().clear();
        for _ in 0..12 {
            let sent = sender.send(waits);
            taken += sent.taken;
            dropped += u64::from(sent.dropped.count_ones());
            waits -= sent.taken;
        }
        prop_assert_eq!((waits, offered), (0, taken + recalled));
        prop_assert_eq!(dropped, *kernel.lost.lock().unwrap());
        prop_assert_eq!(kernel.left.lock().unwrap().len() as u64, taken as u64 - dropped);
        sender.share.reap(&mut sender.completion);
        prop_assert_eq!(sender.share.free(), 100);
    }
}
