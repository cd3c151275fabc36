//! One worker's sending side: the schedule enters, built frames leave by the ports.

use super::board::Board;
use super::tally::Tally;
use super::{BURST, Dropped, DroppedBy, Transmit, WhenFull};
use crate::builder::{Builder, Stamp};
use crate::pacing::{Due, GIVE_UP_NS, Schedule};

/// Where frames of one direction leave.
#[derive(Debug)]
pub struct Outlet<T> {
    queue: T,
    when_full: WhenFull,
    /// Lengths of the built frames.
    lengths: [u16; BURST],
    /// And their streams.
    streams: [u8; BURST],
    built: usize,
    /// The slot that they were built in, and when.
    slot: u64,
    departure: u64,
}

/// Sends a worker's share of a frame table.
#[derive(Debug)]
pub struct Sender<T> {
    builder: Builder,
    schedule: Schedule,
    /// The slot that it follows; none before the first.
    slot: Option<u64>,
    /// One for each direction.
    outlets: [Outlet<T>; 2],
}

impl<T: Transmit> Outlet<T> {
    pub fn new(queue: T, when_full: WhenFull) -> Self {
        Self { queue, when_full, lengths: [0; BURST], streams: [0; BURST], built: 0, slot: 0, departure: 0 }
    }

    /// Hands the built frames to the port at `now`, and counts them.
    fn flush(&mut self, direction: usize, tally: &Tally, now: u64) {
        if self.built == 0 {
            return;
        }
        let taken = self.queue.send(self.built);
        let dropped = self.queue.dropped();
        let refused = self.built - taken;
        let (mut offered, mut waiting) = (taken, refused);
        let sent = tally.sent(self.slot, direction);
        if refused > 0 {
            if taken == 0 && !self.queue.is_up() {
                let recalled = self.queue.recall(refused);
                sent.down.add(recalled as u64);
                waiting -= recalled;
            } else if self.when_full == WhenFull::Lost {
                (offered, waiting) = (self.built, 0);
                tally.refused[direction % 2].add(refused as u64);
            } else if now.saturating_sub(self.departure) > GIVE_UP_NS {
                let recalled = self.queue.recall(refused);
                sent.queue_full.add(recalled as u64);
                waiting -= recalled;
            }
        }
        let mut bytes: u64 = self.lengths[..offered].iter().map(|length| u64::from(*length)).sum();
        if tally.counts_streams() {
            self.count_streams(direction, tally, offered, dropped.unsent());
        }
        if dropped.frames != 0 {
            let (frames, of_those) = self.count_dropped(direction, tally, dropped, offered);
            offered -= frames;
            bytes -= of_those;
        }
        sent.frames.add(offered as u64);
        sent.bytes.add(bytes);
        tally.sent_bins[direction % 2].count(self.departure, offered as u64);
        self.lengths.copy_within(taken..taken + waiting, 0);
        self.streams.copy_within(taken..taken + waiting, 0);
        self.built = waiting;
    }

    /// Counts the first `offered` frames under their streams, but for those whose bit is set in `unsent`.
    fn count_streams(&self, direction: usize, tally: &Tally, offered: usize, unsent: u64) {
        let frames = self.streams.iter().zip(&self.lengths).take(offered).enumerate();
        for (place, (stream, length)) in frames {
            let left = unsent.checked_shr(place as u32).unwrap_or(0) & 1 == 0;
            if let Some(stream) = tally.stream(*stream, direction).filter(|_| left) {
                stream.count_sent(*length);
            }
        }
    }

    /// Counts which of the first `taken` frames were dropped, and by whom; says how many of them did not leave,
    /// and their bytes.
    #[cold]
    fn count_dropped(&self, direction: usize, tally: &Tally, dropped: Dropped, taken: usize) -> (usize, u64) {
        let lengths = self.lengths[..taken].iter().enumerate();
        let lost = lengths.filter(|(place, _)| dropped.frames >> place & 1 == 1);
        let (frames, bytes) =
            lost.fold((0, 0), |(frames, bytes), (_, length)| (frames + 1, bytes + u64::from(*length)));
        let sent = tally.sent(self.slot, direction);
        match dropped.by {
            DroppedBy::Device => {
                sent.refused.add(frames as u64);
                tally.refused[direction % 2].add(frames as u64);
                return (0, 0);
            }
            DroppedBy::Driver => sent.dropped.add(frames as u64),
            DroppedBy::DownInterface => sent.down.add(frames as u64),
        }
        (frames, bytes)
    }
}

impl<T: Transmit> Sender<T> {
    pub fn new(builder: Builder, schedule: Schedule, outlets: [Outlet<T>; 2]) -> Self {
        Self { builder, schedule, slot: None, outlets }
    }

    /// Sends what is due at `now`, and says whether there was anything.
    #[inline]
    pub fn send(&mut self, board: &Board, tally: &Tally, now: u64) -> bool {
        // What waits belongs to the interval that it was built in, and a port may say late what it took of it. As
        // long as something waits, the counts of that interval are not final.
        let waited = self.waits();
        self.flush(tally, now);
        if self.waits() {
            return true;
        }
        if self.slot != Some(board.current()) {
            self.follow(board, tally, now);
        }
        if self.schedule.is_idle() {
            return waited;
        }
        self.build(tally, now);
        let built = self.waits();
        self.flush(tally, now);
        waited || built
    }

    /// Whether nothing waits and nothing will become due without another load.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.schedule.is_idle() && !self.waits()
    }

    /// Whether built frames wait for a port.
    #[inline]
    fn waits(&self) -> bool {
        self.outlets.iter().any(|outlet| outlet.built > 0)
    }

    /// Hands all built frames to the ports, which may have no room for them yet.
    #[inline]
    fn flush(&mut self, tally: &Tally, now: u64) {
        for (direction, outlet) in self.outlets.iter_mut().enumerate() {
            outlet.flush(direction, tally, now);
        }
    }

    /// Builds what is due at `now`, up to a burst.
    fn build(&mut self, tally: &Tally, now: u64) {
        let Some(slot) = self.slot else { return };
        let stamp = Stamp { interval: slot as u16, departure: now };
        for _ in 0..BURST {
            let late = match self.schedule.due(now) {
                Due::Nothing => return,
                Due::GivenUp(frames) => {
                    tally.sent(slot, 0).unsent.add(frames);
                    self.leave_out(frames);
                    continue;
                }
                Due::Frame { late } => late,
            };
            let Some(upcoming) = self.builder.upcoming() else { return };
            let Some(outlet) = self.outlets.get_mut(upcoming.direction) else { return };
            // A port may have no buffers left for now: the frame stays due.
            let Some(buffer) = outlet.queue.place(outlet.built, upcoming.length) else { return };
            self.builder.build(buffer, stamp);
            outlet.lengths[outlet.built] = upcoming.length as u16;
            outlet.streams[outlet.built] = upcoming.stream;
            outlet.built += 1;
            (outlet.slot, outlet.departure) = (slot, now);
            if self.schedule.is_paced() {
                tally.lateness[upcoming.direction].count(late);
            }
            self.schedule.depart(now);
        }
    }

    /// Rows of frames that were given up are not sent later, where each has its time.
    fn leave_out(&mut self, frames: u64) {
        if frames > 0 && self.schedule.is_spaced() {
            self.builder.leave_out(frames);
        }
    }

    /// Goes on to the next interval, once all frames have left that were due before it was asked for.
    fn follow(&mut self, board: &Board, tally: &Tally, now: u64) {
        while self.slot != Some(board.current()) {
            let next = self.slot.map_or(0, |slot| slot + 1);
            let load = board.load(next);
            if let Some(slot) = self.slot {
                let (finished, given_up) = self.schedule.finish_before(&load, now);
                tally.sent(slot, 0).unsent.add(given_up);
                self.leave_out(given_up);
                if !finished {
                    return;
                }
            }
            let followed = self.schedule.follow(&load, now, self.slot.is_none());
            if let Some(slot) = self.slot {
                tally.sent(slot, 0).unsent.add(followed.unsent);
            }
            if let Some(rows) = followed.rewind {
                self.builder.rewind(rows);
            }
            tally.sent(next, 0).begun.set(followed.begun);
            tally.follow(next);
            self.slot = Some(next);
        }
    }
}

#[cfg(test)]
mod tests {
    use traffic::{Directions, Endpoint, Endpoints, Profile, Tunables};
    use wire::MacAddress;

    use super::*;
    use crate::Load;
    use crate::pacing::Announced;

    const MS: u64 = 1_000_000;

    /// A port that took what was sent, and says so when it is told to: nothing can be taken back meanwhile.
    #[derive(Default)]
    struct Silent {
        buffer: Vec<u8>,
        says: bool,
    }

    impl Transmit for Silent {
        fn place(&mut self, _: usize, length: usize) -> Option<&mut [u8]> {
            self.buffer.resize(length.max(2048), 0);
            Some(&mut self.buffer)
        }

        fn send(&mut self, count: usize) -> usize {
            if self.says { count } else { 0 }
        }

        fn recall(&mut self, _: usize) -> usize {
            0
        }

        fn is_up(&self) -> bool {
            true
        }
    }

    #[test]
    fn an_interval_is_final_only_when_the_port_has_said_what_it_took() {
        let endpoint = |last| Endpoint {
            source: MacAddress([2, 0, 0, 0, 0, last]),
            destination: MacAddress([2, 0, 0, 0, 1, last]),
        };
        let table = Profile::builtin("bench", &Tunables::default())
            .unwrap()
            .table(&Endpoints([endpoint(1), endpoint(2)]), Directions::Forward);
        let outlet = || Outlet::new(Silent::default(), WhenFull::Waits);
        let mut sender = Sender::new(Builder::new(&table, 0, 1), Schedule::new(0, 1), [outlet(), outlet()]);
        let (board, tally) = (Board::new(), Tally::new(traffic::Apart::default()));
        let load = |load, start| Announced::new(load, 1, 1, start).unwrap();
        board.announce(1, &load(Load::Burst { pps: 1e6, frames: 1 }, 0));
        sender.send(&board, &tally, 0);
        sender.send(&board, &tally, 2 * MS);
        board.announce(2, &load(Load::Idle, 3 * MS));
        for now in 3..40 {
            sender.send(&board, &tally, now * MS);
        }
        assert_eq!((tally.slot(), tally.sent(1, 0).frames.get()), (Some(1), 0));
        sender.outlets[0].queue.says = true;
        sender.send(&board, &tally, 40 * MS);
        assert_eq!((tally.slot(), tally.sent(1, 0).frames.get()), (Some(2), 1));
    }
}
