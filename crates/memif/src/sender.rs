//! The sending end of a queue: frames are copied into the ring, or built in it.

use std::sync::Arc;

use crate::config::Role;
use crate::frame::{Frame, copy};
use crate::layout::Descriptor;
use crate::queue::{Attached, Link, Shared};

/// How many buffers ahead are fetched while frames are copied. A cache line comes from a core that is far away in some
/// 300 clocks: with 8 the sender waits for it, with 32 it is no faster.
const AHEAD: u16 = 16;

/// The sending end of a queue, for one thread. It outlives connections; without one it has no room.
#[repr(align(128))] // two workers' do not share cache lines
pub struct Sender {
    attached: Attached,
    /// The next index to fill.
    next: u16,
    /// Where the room ended when the peer was last asked.
    end: u16,
    /// Buffers that are reserved.
    reserved: u16,
    /// Whether the peer did not want to be woken when the last burst was published.
    unrung: bool,
}

/// What a burst adds to the counters.
#[derive(Default)]
struct Burst {
    frames: u64,
    bytes: u64,
    malformed: u64,
    too_long: u64,
}

impl Sender {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { attached: Attached::new(shared), next: 0, end: 0, reserved: 0, unrung: false }
    }

    /// Whether there is a connection with this queue.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        !self.attached.is_stale() && self.attached.link().is_some()
    }

    /// How many frames there is room for now; 0 without a connection.
    pub fn room(&mut self) -> usize {
        usize::from(self.room_for(usize::MAX))
    }

    /// Copies frames into the ring and publishes them all at once; returns how many are done with, from the
    /// front: sent, or refused for being longer than a buffer, which is counted as `too_long`. The rest
    /// found no room.
    #[inline]
    pub fn send(&mut self, frames: &[&[u8]]) -> usize {
        // SAFETY: slices.
        unsafe { self.send_each(frames.len(), |at| (frames[at].as_ptr(), frames[at].len())) }
    }

    /// As [`Self::send`], of frames that are no slices, such as those that a receiver lends.
    ///
    /// # Safety
    /// All frames are lent and not yet taken back, or are memory of the caller.
    #[inline]
    pub unsafe fn send_frames(&mut self, frames: &[Frame]) -> usize {
        // SAFETY: the caller's promise.
        unsafe { self.send_each(frames.len(), |at| (frames[at].start().cast_const(), frames[at].length())) }
    }

    /// As [`Self::send`], of `count` frames: `frame` tells the address and the length of each by its number.
    ///
    /// # Safety
    /// All that `frame` tells can be read for as long as this takes.
    #[inline]
    pub unsafe fn send_each(&mut self, count: usize, frame: impl Fn(usize) -> (*const u8, usize)) -> usize {
        // SAFETY: the caller's promise.
        unsafe { self.send_while::<false>(count, frame).0 }
    }

    /// As [`Self::send_each`], but stops at a frame that is longer than its buffer. Returns how many were sent,
    /// and whether the next one was such a frame, which is counted as `too_long`.
    ///
    /// # Safety
    /// As there.
    #[inline]
    pub unsafe fn send_each_that_fits(
        &mut self,
        count: usize,
        frame: impl Fn(usize) -> (*const u8, usize),
    ) -> (usize, bool) {
        // SAFETY: the caller's promise.
        unsafe { self.send_while::<true>(count, frame) }
    }

    /// As [`Self::send_each`] or [`Self::send_each_that_fits`].
    #[inline]
    unsafe fn send_while<const STOP: bool>(
        &mut self,
        count: usize,
        frame: impl Fn(usize) -> (*const u8, usize),
    ) -> (usize, bool) {
        let room = self.room_for(count);
        let counters = &self.attached.shared.counters;
        let (Some(link), true) = (self.attached.link(), room > 0) else {
            counters.no_room.add(count as u64);
            return (0, false);
        };
        let first = self.next;
        let mut burst = Burst::default();
        let (mut at, mut stopped) = (0, false);
        while at < count && self.next != self.end {
            let index = self.next;
            fetch_ahead(link, index, self.end);
            let (from, length) = frame(at);
            match link.buffers.empty(&link.ring, index) {
                None => {
                    burst.malformed += 1;
                    skip(link, index);
                }
                Some((buffer, _)) if length > buffer.capacity as usize => {
                    burst.too_long += 1;
                    if STOP {
                        stopped = true;
                        break;
                    }
                    at += 1;
                    continue;
                }
                Some((buffer, region)) => {
                    // SAFETY: `length` bytes are readable by the caller's promise, and the buffer holds as
                    // many. They may overlap, where a broken peer has us send a frame to where it is.
                    unsafe { copy(from, buffer.start.as_ptr(), length) };
                    #[allow(clippy::cast_possible_truncation)] // no more than the capacity
                    link.ring.describe(index, Descriptor { flags: 0, region, length: length as u32 });
                    burst.frames += 1;
                    burst.bytes += length as u64;
                    at += 1;
                }
            }
            self.next = index.wrapping_add(1);
        }
        if self.next != first {
            self.unrung = publish(link, self.next);
        }
        counters.frames.add(burst.frames);
        counters.bytes.add(burst.bytes);
        counters.malformed.add(burst.malformed);
        counters.too_long.add(burst.too_long);
        if !stopped {
            counters.no_room.add((count - at) as u64);
        }
        (at, stopped)
    }

    /// Fills `frames` from the front with empty frames in the ring, to be written and given lengths;
    /// returns how many. They may be used until [`Self::commit`], the next call of another function of this
    /// sender, or its end.
    #[inline]
    pub fn reserve(&mut self, frames: &mut [Frame]) -> usize {
        self.reserved = 0;
        let room = self.room_for(frames.len());
        let Some(link) = self.attached.link() else { return 0 };
        for (frame, index) in frames.iter_mut().zip(0..room) {
            let Some((buffer, _)) = link.buffers.empty(&link.ring, self.next.wrapping_add(index)) else {
                break;
            };
            prefetch::to_write(buffer.start.as_ptr());
            *frame = Frame::within(buffer, 0);
            self.reserved = index + 1;
        }
        if self.reserved == 0 && room > 0 {
            // A buffer that cannot be used goes back, so that the next is looked at.
            skip(link, self.next);
            self.next = self.next.wrapping_add(1);
            self.unrung = publish(link, self.next);
            self.attached.shared.counters.malformed.add(1);
        }
        usize::from(self.reserved)
    }

    /// Publishes the first `frames.len()` of the reserved frames, in the order in which they were reserved,
    /// with the lengths that they have now. Further ones, if any, are not reserved any longer.
    #[inline]
    pub fn commit(&mut self, frames: &[Frame]) {
        let reserved = std::mem::take(&mut self.reserved);
        let Some(link) = self.attached.link() else { return };
        let (first, mut bytes) = (self.next, 0);
        for (frame, _) in frames.iter().zip(0..reserved) {
            // Looked at again, since the peer may have written there: it shall not be told nonsense.
            let buffer = link.buffers.empty(&link.ring, self.next);
            let (capacity, region) = buffer.map_or((0, 0), |(buffer, region)| (buffer.capacity, region));
            #[allow(clippy::cast_possible_truncation)] // no more than the capacity
            let length = frame.length().min(capacity as usize) as u32;
            link.ring.describe(self.next, Descriptor { flags: 0, region, length });
            self.next = self.next.wrapping_add(1);
            bytes += u64::from(length);
        }
        if self.next != first {
            self.unrung = publish(link, self.next);
        }
        let counters = &self.attached.shared.counters;
        counters.frames.add(u64::from(self.next.wrapping_sub(first)));
        counters.bytes.add(bytes);
    }

    /// The room, no more than `wanted`; asks the peer only if the room known is less.
    #[inline]
    fn room_for(&mut self, wanted: usize) -> u16 {
        if self.attached.is_stale() {
            (self.next, self.end, self.reserved, self.unrung) = (0, 0, 0, false);
            self.attached.renew();
        }
        let Some(link) = self.attached.link() else { return 0 };
        if self.unrung && link.ring.wants_interrupts() {
            link.chime.ring();
            self.unrung = false;
        }
        let mut room = self.end.wrapping_sub(self.next);
        if usize::from(room) < wanted {
            let theirs = link.ring.load(link.theirs());
            let end = match link.role {
                // The peer's index says what was read; behind that, there is one ring's size.
                Role::Client => theirs.wrapping_add(link.ring.size()),
                // It says what was offered.
                Role::Server => theirs,
            };
            room = end.wrapping_sub(self.next);
            if room > link.ring.size() {
                self.attached.give_up();
                return 0;
            }
            self.end = end;
        }
        u16::try_from(wanted).map_or(room, |wanted| room.min(wanted))
    }
}

/// Has the buffer that will be written soon fetched, if it is before `end`. What is behind that the peer uses.
#[inline]
fn fetch_ahead(link: &Link, index: u16, end: u16) {
    if end.wrapping_sub(index) > AHEAD
        && let Some((buffer, _)) = link.buffers.empty(&link.ring, index.wrapping_add(AHEAD))
    {
        prefetch::to_write(buffer.start.as_ptr());
    }
}

/// Hands a buffer that cannot be used over as an empty frame.
#[cold]
fn skip(link: &Link, index: u16) {
    let descriptor = link.ring.descriptor(index);
    link.ring.describe(index, Descriptor { flags: 0, length: 0, ..descriptor });
}

/// Publishes all frames before `index`, and wakes a peer that wants to be woken; returns whether it does
/// not.
///
/// A peer that begins to want it at this very moment may be overlooked, since the processor may read its
/// wish before the index is written. A fence would prevent that, and cost a quarter of the speed between
/// two cores; so the wish is read again at the sender's next call.
#[inline]
fn publish(link: &Link, index: u16) -> bool {
    link.ring.publish(link.ours(), index);
    let wants = link.ring.wants_interrupts();
    if wants {
        link.chime.ring();
    }
    !wants
}
