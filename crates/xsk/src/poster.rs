//! The sending end of a socket for who sends copies and forgets them: frames enter, and how many there was room for
//! leaves. What becomes of them later is counted.

use std::sync::Arc;

use crate::frames::Share;
use crate::ring::{Consumer, Producer};
use crate::wake::{SendCounters, Wake, Waking, Woken, add};

/// What became of the frames that were posted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Posted {
    /// So many of the first were taken; for the next there was no room.
    pub taken: usize,
    /// Whether the next one would never fit.
    pub stopped_at_unfit: bool,
}

/// The sending end of a socket, for one thread at a time.
pub struct Poster {
    wake: Arc<dyn Wake>,
    share: Share,
    transmit: Producer,
    completion: Consumer,
    waking: Waking,
    state: Woken,
    counters: Arc<SendCounters>,
}

impl Poster {
    pub(crate) fn new(
        wake: Arc<dyn Wake>,
        share: Share,
        (transmit, completion): (Producer, Consumer),
        waking: Waking,
        counters: Arc<SendCounters>,
    ) -> Self {
        Self { wake, share, transmit, completion, waking, state: Woken::Done, counters }
    }

    /// Sends copies of `frames`, in their order, as far as there is room. A frame that is empty, or longer than the
    /// socket was opened for, is not sent, and none behind it.
    pub fn post<'f>(&mut self, frames: impl IntoIterator<Item = &'f [u8]>) -> Posted {
        self.share.reap(&mut self.completion);
        if !self.can_send() {
            return Posted::default();
        }
        let (mut room, mut posted) = (self.transmit.room(), Posted::default());
        for frame in frames {
            match self.put(frame, &mut room) {
                Some(true) => posted.taken += 1,
                Some(false) => break,
                None => {
                    posted.stopped_at_unfit = true;
                    break;
                }
            }
        }
        self.transmit.publish();
        add(&self.counters.sent, posted.taken as u64);
        self.wake();
        posted
    }

    /// Whether the interface is there and up, as far as is known; one that was down is asked again.
    fn can_send(&mut self) -> bool {
        if self.state == Woken::Down {
            self.state = self.wake.wake_to_send();
        }
        !matches!(self.state, Woken::Down | Woken::Gone)
    }

    /// Puts a copy of a frame into the ring, where there is `room`; says whether there was, and nothing of a frame
    /// that never fits.
    #[inline]
    fn put(&mut self, bytes: &[u8], room: &mut u32) -> Option<bool> {
        let length = u32::try_from(bytes.len()).ok().filter(|length| *length > 0)?;
        let entries = self.share.chunks(length);
        let Some(frame) = self.share.take() else { return Some(false) };
        let place = self.share.bytes_mut(frame).and_then(|place| place.get_mut(..bytes.len()));
        let Some(place) = place.filter(|_| entries <= *room) else {
            let is_unfit = entries <= *room;
            self.share.give_back(frame);
            return (!is_unfit).then_some(false);
        };
        place.copy_from_slice(bytes);
        self.share.write(frame, length, &mut self.transmit);
        self.share.lend(frame, entries);
        *room -= entries;
        Some(true)
    }

    /// Has the kernel take what is in the ring. One that copies takes some at each call, and says when its driver
    /// dropped the last.
    #[inline]
    fn wake(&mut self) {
        let waiting = || self.transmit.next().wrapping_sub(self.transmit.consumed());
        if !self.waking.copies {
            if self.waking.polls || self.transmit.needs_wakeup() {
                self.state = self.wake.wake_to_send();
            }
            return;
        }
        let (mut drops, mut calls) = (waiting(), 2 + waiting() / 16);
        while calls > 0 && waiting() > 0 {
            self.state = self.wake.wake_to_send();
            match self.state {
                Woken::Down | Woken::Gone => return,
                Woken::Dropped => {
                    add(&self.counters.dropped, 1);
                    drops = drops.saturating_sub(1);
                    if drops == 0 {
                        return;
                    }
                }
                Woken::Done | Woken::Again => calls -= 1,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::Ordering::Relaxed;

    use super::*;
    use crate::frames::Memory;
    use crate::ring::simulated::ring;

    /// A kernel that copies: it takes up to 4 frames a call, drops each of this number, and may be down.
    struct Simulated {
        rings: Mutex<(Consumer, Producer)>,
        says: Mutex<Woken>,
        drops: u64,
        seen: Mutex<Vec<u32>>,
    }

    impl Wake for Simulated {
        fn wake_to_send(&self) -> Woken {
            let says = *self.says.lock().unwrap();
            if says != Woken::Done {
                return says;
            }
            let (transmit, completion) = &mut *self.rings.lock().unwrap();
            let mut seen = self.seen.lock().unwrap();
            for _ in 0..4 {
                if transmit.available() == 0 {
                    return Woken::Done;
                }
                let descriptor = transmit.descriptor(0);
                transmit.release(1);
                completion.write_address(descriptor.address);
                completion.publish();
                seen.push(descriptor.length);
                if (seen.len() as u64).is_multiple_of(self.drops) {
                    return Woken::Dropped;
                }
            }
            Woken::Again
        }

        fn wake_to_receive(&self) {}
    }

    fn poster(drops: u64) -> (Poster, Arc<Simulated>) {
        let (transmit, taken) = ring(16, 2, u32::MAX - 7);
        let (completed, completion) = ring(16, 1, 3);
        let kernel = Arc::new(Simulated {
            rings: Mutex::new((taken, completed)),
            says: Mutex::new(Woken::Done),
            drops,
            seen: Mutex::default(),
        });
        let share = Share::new(&Arc::new(Memory::new(16, 2048, 0).unwrap()), 0, 16, 1);
        let wake: Arc<dyn Wake> = Arc::clone(&kernel) as _;
        let waking = Waking { copies: true, polls: false };
        (Poster::new(wake, share, (transmit, completion), waking, Arc::default()), kernel)
    }

    fn posted(taken: usize) -> Posted {
        Posted { taken, stopped_at_unfit: false }
    }

    #[test]
    fn what_is_taken_was_sent_or_dropped_and_counted() {
        let (mut poster, kernel) = poster(3);
        let frame = [7; 60];
        let mut taken = 0;
        for count in 0..40 {
            let done = poster.post(std::iter::repeat_n(&frame[..], count));
            assert_eq!(done, posted(count.min(16)));
            taken += done.taken;
        }
        let seen = kernel.seen.lock().unwrap().len();
        let counters = &poster.counters;
        assert_eq!((seen, counters.sent.load(Relaxed)), (taken, taken as u64));
        assert_eq!(counters.dropped.load(Relaxed), seen as u64 / 3);
    }

    #[test]
    fn a_frame_that_never_fits_stops_those_behind_it_and_no_other() {
        let (mut poster, kernel) = poster(u64::MAX);
        let frames = [&[1; 60][..], &[2; 2049], &[3; 61]];
        assert_eq!(poster.post(frames), Posted { taken: 1, stopped_at_unfit: true });
        assert_eq!(poster.post([&[][..]]), Posted { taken: 0, stopped_at_unfit: true });
        assert_eq!(poster.post([&[3; 2048][..]]), posted(1));
        assert_eq!(*kernel.seen.lock().unwrap(), [60, 2048]);
    }

    #[test]
    fn nothing_is_taken_while_the_interface_is_down_and_all_once_it_is_up() {
        let (mut poster, kernel) = poster(u64::MAX);
        let frame = [7; 60];
        *kernel.says.lock().unwrap() = Woken::Down;
        assert_eq!(poster.post([&frame[..]]), posted(1), "nobody knew");
        assert_eq!(poster.post([&frame[..]]), posted(0));
        *kernel.says.lock().unwrap() = Woken::Done;
        assert_eq!(poster.post([&frame[..]; 3]), posted(3));
        *kernel.says.lock().unwrap() = Woken::Gone;
        assert_eq!((poster.post([&frame[..]]), poster.post([&frame[..]])), (posted(1), posted(0)));
        assert_eq!(kernel.seen.lock().unwrap().len(), 4);
    }
}
