//! Replays frames as they are: frames with times, a pace and two ports enter; what left, what came back
//! and when leaves.
//!
//! Beside [`crate::Engine`]s, whose frames carry a signature: Linerate adds none to these, so that what
//! comes back is known by its content ([`traffic::capture::key`]), in one direction, by one thread. No
//! frame is given up: one that is late leaves late, and its lateness is counted.

mod sockets;

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use stats::Histogram;
use traffic::capture::{Captured, key};

use crate::live::monotonic;
use crate::{Error, Untaken};
pub use sockets::Sockets;

/// Frames that leave and arrive together at most.
pub const BURST: usize = 64;
/// Frames that follow silence begin this long after they are asked for.
const LEAD_NS: u64 = 1_000_000;
/// A port that takes no frame for so long takes none any more.
const PATIENCE_NS: u64 = 10_000_000_000;

/// Two ports, of whatever kind.
pub trait Carrier {
    /// Sends `frames`, at most [`BURST`], by port 0, and says how many of the first it took: for the
    /// others there is no room now.
    ///
    /// # Errors
    /// When the port is gone, or refuses a frame for good.
    fn send(&mut self, frames: &[&[u8]]) -> Result<usize, Error>;

    /// Calls `each` for every frame that has arrived at port 1.
    ///
    /// # Errors
    /// When the port is gone.
    fn receive(&mut self, each: &mut dyn FnMut(&[u8])) -> Result<(), Error>;

    /// Frames that arrived, and that there was no room for.
    ///
    /// # Errors
    /// When the port does not say.
    fn missed(&self) -> Result<u64, Error>;

    /// Frames that port 0 took and that did not leave all the same, by reason, and their bytes.
    fn untaken(&self) -> (Untaken, u64) {
        (Untaken::default(), 0)
    }
}

/// When frames leave.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// As they were captured, so many times as fast.
    Captured(f64),
    /// So many a second, evenly.
    Rate(f64),
    /// As fast as the port takes them.
    Max,
}

/// What is replayed, and how.
pub struct Replay<'a> {
    /// Whole frames of a capture.
    pub frames: &'a [Captured],
    /// When they leave.
    pub pace: Pace,
    /// How often all of them.
    pub loops: u64,
    /// How long the last ones are waited for.
    pub drain: Duration,
    /// Set by someone else to end it.
    pub stop: &'a AtomicBool,
}

/// What became of it.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Frames that left.
    pub sent: u64,
    /// Bytes of those, without FCS.
    pub sent_bytes: u64,
    /// Frames that were due and did not leave, because the port did not take them: unsent, by reason.
    pub untaken: Untaken,
    /// From the first to the last departure, in seconds.
    pub elapsed_s: f64,
    /// How long that should have taken.
    pub intended_s: f64,
    /// How late departures were, in nanoseconds; nothing where nothing is paced.
    pub lateness: Histogram,
    /// Frames that came back, each no more often than it left.
    pub received: u64,
    /// Frames that arrived beside those.
    pub foreign: u64,
    /// Frames that arrived, and that the tester had no room for.
    pub missed: u64,
    /// Why it ended before all frames had left, if a port failed: cause and remedy.
    pub failure: Option<String>,
}

impl Replay<'_> {
    /// When frame `number`, counted through all loops, is due after the first: nanoseconds. `None` where
    /// it need not wait.
    fn due(&self, number: u64) -> Option<u64> {
        let count = self.frames.len() as u64;
        match self.pace {
            Pace::Max => None,
            Pace::Rate(pps) => Some((number as f64 * 1e9 / pps) as u64),
            Pace::Captured(speed) => {
                let time = |index: u64| self.frames.get(index as usize).map_or(0, |frame| frame.time);
                let last = time(count.saturating_sub(1));
                // From the last frame to the first of the next loop: as from one to the next on average.
                let turn = last + last / count.saturating_sub(1).max(1);
                let after = (number / count.max(1)) as f64 * turn as f64 + time(number % count.max(1)) as f64;
                Some((after / speed) as u64)
            }
        }
    }

    /// How long it takes at this pace, but for the wait at its end.
    #[must_use]
    pub fn planned(&self) -> Duration {
        Duration::from_nanos(self.due(self.all().saturating_sub(1)).unwrap_or_default())
    }

    /// The frames of all loops.
    fn all(&self) -> u64 {
        (self.frames.len() as u64).saturating_mul(self.loops)
    }

    /// Sends all of it through `carrier`; `arrived` is called for every frame at port 1 with the time
    /// (nanoseconds of the monotonic clock), and may fail when it keeps them. A port that fails ends it, and
    /// the outcome says so beside what was counted.
    ///
    /// # Errors
    /// When `arrived` fails, or the clock cannot be read.
    pub fn run(
        &self,
        carrier: &mut dyn Carrier,
        arrived: &mut dyn FnMut(u64, &[u8]) -> io::Result<()>,
    ) -> Result<Outcome, Error> {
        let all = self.all();
        let mut progress = Progress::new(self.frames);
        let start = monotonic()? + LEAD_NS;
        let mut end = None;
        loop {
            let now = monotonic()?;
            let goes_on = progress.outcome.sent < all && progress.outcome.failure.is_none();
            if goes_on && !self.stop.load(Ordering::SeqCst) {
                let sent = self.send(carrier, &mut progress, (start, now), all);
                progress.note(sent);
            } else if now > *end.get_or_insert(now + self.drain.as_nanos() as u64) {
                break;
            }
            let mut kept = Ok(());
            let received = carrier.receive(&mut |frame| {
                progress.arrived(frame);
                if kept.is_ok() {
                    kept = arrived(now, frame);
                }
            });
            progress.note(received);
            kept.map_err(|error| Error::Failed(format!("what arrives cannot be kept: {error}")))?;
        }
        let Progress { mut outcome, departures, .. } = progress;
        outcome.elapsed_s = departures.map_or(0.0, |(first, last)| (last - first) as f64 / 1e9);
        outcome.intended_s = self.planned().as_secs_f64();
        if outcome.failure.is_none() {
            outcome.missed = carrier.missed()?;
        }
        let (untaken, untaken_bytes) = carrier.untaken();
        outcome.untaken = untaken;
        outcome.sent = outcome.sent.saturating_sub(untaken.total());
        outcome.sent_bytes = outcome.sent_bytes.saturating_sub(untaken_bytes);
        Ok(outcome)
    }

    /// Sends what is due at `now` of `all` frames, up to a burst.
    fn send(
        &self,
        carrier: &mut dyn Carrier,
        progress: &mut Progress,
        (start, now): (u64, u64),
        all: u64,
    ) -> Result<(), Error> {
        let sent = progress.outcome.sent;
        let is_due = |number: &u64| self.due(*number).is_none_or(|due| start + due <= now);
        let upcoming = (sent..all).take(BURST).take_while(is_due);
        let mut burst: [&[u8]; BURST] = [&[]; BURST];
        let mut count = 0;
        for number in upcoming {
            burst[count] = self.frame(number);
            count += 1;
        }
        if count == 0 {
            return Ok(());
        }
        let taken = carrier.send(&burst[..count])?;
        progress.wait_no_longer(taken, now)?;
        for number in (sent..).take(taken) {
            progress.left(number, self.frame(number).len(), now);
            if let Some(due) = self.due(number) {
                progress.outcome.lateness.record(now.saturating_sub(start + due), 1);
            }
        }
        Ok(())
    }

    fn frame(&self, number: u64) -> &[u8] {
        &self.frames[number as usize % self.frames.len()].bytes
    }
}

/// How far a replay is.
struct Progress {
    outcome: Outcome,
    /// What stands for each frame.
    keys: Vec<u64>,
    /// How many frames of a content have left and not come back.
    underway: HashMap<u64, u64>,
    /// When the first frame left, and the last.
    departures: Option<(u64, u64)>,
    /// Since when the port has taken none.
    refused_since: Option<u64>,
}

impl Progress {
    fn new(frames: &[Captured]) -> Self {
        let keys: Vec<u64> = frames.iter().map(|frame| key(&frame.bytes)).collect();
        let underway = HashMap::with_capacity(keys.len());
        Self { outcome: Outcome::default(), keys, underway, departures: None, refused_since: None }
    }

    fn left(&mut self, number: u64, length: usize, now: u64) {
        *self.underway.entry(self.keys[number as usize % self.keys.len()]).or_default() += 1;
        self.departures = Some((self.departures.map_or(now, |(first, _)| first), now));
        self.outcome.sent += 1;
        self.outcome.sent_bytes += length as u64;
    }

    /// Notes why a port failed, if it did so first.
    fn note(&mut self, result: Result<(), Error>) {
        if let (Err(error), None) = (result, &self.outcome.failure) {
            self.outcome.failure = Some(error.to_string());
        }
    }

    /// Notes that a port took so many frames; fails when it has taken none for too long.
    fn wait_no_longer(&mut self, taken: usize, now: u64) -> Result<(), Error> {
        if taken > 0 {
            self.refused_since = None;
        } else if now - *self.refused_since.get_or_insert(now) > PATIENCE_NS {
            let seconds = PATIENCE_NS / 1_000_000_000;
            return Err(Error::Port(format!(
                "port 0 has taken no frame for {seconds} s: is its other end gone, or its link down?"
            )));
        }
        Ok(())
    }

    fn arrived(&mut self, frame: &[u8]) {
        match self.underway.get_mut(&key(frame)).filter(|count| **count > 0) {
            Some(count) => {
                *count -= 1;
                self.outcome.received += 1;
            }
            None => self.outcome.foreign += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(times: &[u64]) -> Vec<Captured> {
        let frame =
            |(time, number): (&u64, u8)| Captured { time: *time, bytes: vec![number; 60], length: 60 };
        times.iter().zip(1..).map(frame).collect()
    }

    fn replay<'a>(frames: &'a [Captured], pace: Pace, loops: u64, stop: &'a AtomicBool) -> Replay<'a> {
        Replay { frames, pace, loops, drain: Duration::from_millis(1), stop }
    }

    /// A cable that takes three frames at a time, and loses the second of all.
    #[derive(Default)]
    struct Cable {
        took: usize,
        queue: Vec<Vec<u8>>,
    }

    impl Carrier for Cable {
        fn send(&mut self, frames: &[&[u8]]) -> Result<usize, Error> {
            let taken = frames.len().min(3);
            for frame in &frames[..taken] {
                self.took += 1;
                if self.took != 2 {
                    self.queue.push(frame.to_vec());
                }
            }
            Ok(taken)
        }

        fn receive(&mut self, each: &mut dyn FnMut(&[u8])) -> Result<(), Error> {
            self.queue.drain(..).for_each(|frame| each(&frame));
            Ok(())
        }

        fn missed(&self) -> Result<u64, Error> {
            Ok(0)
        }
    }

    #[test]
    fn frames_are_due_as_captured_or_evenly() {
        let frames = frames(&[0, 100, 1000]);
        let stop = AtomicBool::new(false);
        let due = |pace| {
            let replay = replay(&frames, pace, 2, &stop);
            (0..6).map(|number| replay.due(number).unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(due(Pace::Captured(1.0)), [0, 100, 1000, 1500, 1600, 2500]);
        assert_eq!(due(Pace::Captured(10.0)), [0, 10, 100, 150, 160, 250]);
        assert_eq!(due(Pace::Rate(1e6)), [0, 1000, 2000, 3000, 4000, 5000]);
        assert_eq!(replay(&frames, Pace::Max, 1, &stop).due(2), None);
        assert_eq!(replay(&frames[..1], Pace::Captured(1.0), 2, &stop).due(1), Some(0));
    }

    #[test]
    fn every_frame_leaves_once_a_loop_and_what_comes_back_is_known_by_its_content() {
        let frames = frames(&[0, 1000, 2000, 2000, 2000]);
        let stop = AtomicBool::new(false);
        for pace in [Pace::Max, Pace::Captured(1.0), Pace::Rate(1e6)] {
            let mut cable = Cable { took: 0, queue: vec![vec![0xee; 60], vec![1; 60]] };
            let mut seen = Vec::new();
            let mut arrived = |_, frame: &[u8]| {
                seen.push(frame[0]);
                Ok(())
            };
            let outcome = replay(&frames, pace, 3, &stop).run(&mut cable, &mut arrived).unwrap();
            assert_eq!((outcome.sent, outcome.sent_bytes), (15, 900));
            // One of the two that came of itself looks like the first.
            assert_eq!((outcome.received, outcome.foreign), (14, 2), "{pace:?}");
            assert_eq!(seen.len(), 16);
            let paced = if pace == Pace::Max { 0 } else { 15 };
            assert_eq!(outcome.lateness.total(), paced);
        }
    }

    /// A cable that breaks after five frames.
    struct Broken(Cable);

    impl Carrier for Broken {
        fn send(&mut self, frames: &[&[u8]]) -> Result<usize, Error> {
            if self.0.took >= 5 { Err(Error::Port("port 0 is gone".into())) } else { self.0.send(frames) }
        }

        fn receive(&mut self, each: &mut dyn FnMut(&[u8])) -> Result<(), Error> {
            self.0.receive(each)
        }

        fn missed(&self) -> Result<u64, Error> {
            Ok(0)
        }
    }

    #[test]
    fn a_port_that_fails_ends_it_and_what_was_counted_stays() {
        let frames = frames(&[0, 0, 0, 0]);
        let stop = AtomicBool::new(false);
        let mut broken = Broken(Cable::default());
        let outcome = replay(&frames, Pace::Max, 5, &stop).run(&mut broken, &mut |_, _| Ok(())).unwrap();
        assert_eq!((outcome.sent, outcome.received), (6, 5));
        assert_eq!(outcome.failure.as_deref(), Some("port 0 is gone"));
    }

    #[test]
    fn it_ends_when_it_is_told_to_and_when_frames_cannot_be_kept() {
        let frames = frames(&[0, 1_000_000_000]);
        let stop = AtomicBool::new(true);
        let outcome = replay(&frames, Pace::Captured(1.0), 1, &stop)
            .run(&mut Cable::default(), &mut |_, _| Ok(()))
            .unwrap();
        assert_eq!(outcome.sent, 0);
        stop.store(false, Ordering::SeqCst);
        let full = &mut |_, _: &[u8]| Err(io::Error::other("disk full"));
        let error = replay(&frames, Pace::Max, 1, &stop).run(&mut Cable::default(), full).unwrap_err();
        assert!(error.to_string().contains("disk full"), "{error}");
    }
}
