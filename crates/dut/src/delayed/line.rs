//! One direction of the device: frames and the time enter; the frames that are due leave, in the
//! order and as often as the rules say. Pure.

use std::collections::VecDeque;
use std::num::NonZeroU64;
use std::time::{Duration, Instant};

use lab::Counters;

use super::super::FCS;
use super::super::spec::share;

/// Frames that are held at most; the newest are lost then.
pub(super) const QUEUE: usize = 16_384;
/// How long a frame waits for the one that is to overtake it.
const PATIENCE: Duration = Duration::from_millis(100);
/// Shares are kept in millionths, so that how many frames they are is exact.
const MILLION: u64 = 1_000_000;

/// What is done to frames.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rules {
    /// How long each is held.
    pub delay: Duration,
    /// If so, only every second run of so many frames is held.
    pub alternate: Option<NonZeroU64>,
    /// Those that leave after the next one: at most half of all.
    pub reorder: Share,
    /// Those that leave twice.
    pub duplicate: Share,
}

impl Rules {
    /// Whether frame `number`, counted from 1, is held.
    fn holds(&self, number: u64) -> bool {
        self.alternate.is_none_or(|run| (number - 1) / run % 2 == 1)
    }
}

/// A share of frames, spread evenly: of the first `n` frames, `n * share` rounded down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Share(u64);

impl Share {
    /// A share above zero and at most `most`.
    pub fn parse(text: &str, most: f64) -> Option<Self> {
        let share = share(text).filter(|share| *share <= most)?;
        let millionths = (share * MILLION as f64).round() as u64;
        (millionths > 0).then_some(Self(millionths))
    }

    /// Whether frame `number`, counted from 1, is one of them.
    fn has(self, number: u64) -> bool {
        self.of(number) > self.of(number - 1)
    }

    fn of(self, frames: u64) -> u64 {
        (u128::from(frames) * u128::from(self.0) / u128::from(MILLION)) as u64
    }
}

/// The frames that the device holds in one direction.
pub(super) struct Line {
    rules: Rules,
    /// When each is due, and the frame.
    held: VecDeque<(Instant, Box<[u8]>)>,
    /// Frames that were due so far.
    passed: u64,
    /// The frame that the next one is to overtake.
    aside: Option<Due>,
    counted: Counters,
}

/// A frame whose time has come.
struct Due {
    frame: Box<[u8]>,
    twice: bool,
    since: Instant,
}

impl Line {
    pub fn new(rules: Rules) -> Self {
        Self { rules, held: VecDeque::new(), passed: 0, aside: None, counted: Counters::default() }
    }

    pub fn counted(&self) -> Counters {
        self.counted
    }

    pub fn is_empty(&self) -> bool {
        self.held.is_empty() && self.aside.is_none()
    }

    /// Takes in a frame that was read at `now`.
    pub fn enter(&mut self, frame: &[u8], now: Instant) {
        self.counted.frames += 1;
        self.counted.bytes += frame.len() as u64 + FCS;
        if self.held.len() < QUEUE {
            let delay = if self.rules.holds(self.counted.frames) { self.rules.delay } else { Duration::ZERO };
            self.held.push_back((now + delay, frame.into()));
        }
    }

    /// Lets go what is due at `now`: `send` says whether a frame left.
    pub fn leave(&mut self, now: Instant, mut send: impl FnMut(&[u8]) -> bool) {
        while let Some((_, frame)) = self.held.pop_front_if(|(due, _)| *due <= now) {
            self.passed += 1;
            let due = Due { frame, twice: self.rules.duplicate.has(self.passed), since: now };
            if self.aside.is_none() && self.rules.reorder.has(self.passed) {
                self.aside = Some(due);
                continue;
            }
            let overtook = self.send(&due, &mut send);
            if let Some(late) = self.aside.take() {
                let left = self.send(&late, &mut send);
                self.counted.reordered += u64::from(overtook && left);
            }
        }
        if let Some(alone) = self.aside.take_if(|aside| now.duration_since(aside.since) >= PATIENCE) {
            self.send(&alone, &mut send);
        }
    }

    /// Whether the frame left.
    fn send(&mut self, due: &Due, mut send: impl FnMut(&[u8]) -> bool) -> bool {
        let left = send(&due.frame);
        self.counted.forwarded += u64::from(left);
        if due.twice {
            self.counted.duplicated += u64::from(send(&due.frame) && left);
        }
        left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends frames 0, 1, 2 … a millisecond apart; the frames that left, and when (ms), until
    /// `end` ms.
    fn pass(rules: Rules, frames: u8, end: u64) -> (Vec<(u8, u64)>, Counters) {
        let (mut line, start) = (Line::new(rules), Instant::now());
        let mut left = Vec::new();
        for at in 0..end {
            let now = start + Duration::from_millis(at);
            if at < u64::from(frames) {
                line.enter(&[at as u8; 60], now);
            }
            line.leave(now, |frame| {
                left.push((frame[0], at));
                true
            });
        }
        assert!(line.is_empty());
        (left, line.counted())
    }

    fn part(text: &str) -> Share {
        Share::parse(text, 1.0).unwrap()
    }

    #[test]
    fn frames_leave_when_they_are_due() {
        let delay = Duration::from_millis(7);
        let (left, counted) = pass(Rules { delay, ..Rules::default() }, 3, 20);
        assert_eq!(left, [(0, 7), (1, 8), (2, 9)]);
        assert_eq!((counted.frames, counted.bytes, counted.forwarded), (3, 192, 3));
        let (left, _) = pass(Rules::default(), 2, 2);
        assert_eq!(left, [(0, 0), (1, 1)]);
    }

    #[test]
    fn every_second_run_of_frames_is_held() {
        let rules =
            Rules { delay: Duration::from_millis(20), alternate: NonZeroU64::new(2), ..Rules::default() };
        let (left, _) = pass(rules, 4, 40);
        assert_eq!(left, [(0, 0), (1, 1), (2, 22), (3, 23)]);
    }

    #[test]
    fn a_share_is_overtaken_by_the_next_frame() {
        let order = |text| {
            let (left, counted) = pass(Rules { reorder: part(text), ..Rules::default() }, 9, 300);
            (left.iter().map(|(frame, _)| *frame).collect::<Vec<_>>(), counted.reordered)
        };
        assert_eq!(order("50%"), (vec![0, 2, 1, 4, 3, 6, 5, 8, 7], 4));
        assert_eq!(order("0.25"), (vec![0, 1, 2, 4, 3, 5, 6, 8, 7], 2));
        // The last one waits for another that never comes, and goes alone.
        assert_eq!(order("33.3334%"), (vec![0, 1, 3, 2, 4, 6, 5, 7, 8], 2));
    }

    #[test]
    fn a_share_leaves_twice() {
        let rules = Rules { duplicate: part("50%"), reorder: part("50%"), ..Rules::default() };
        let (left, counted) = pass(rules, 5, 10);
        let order: Vec<_> = left.iter().map(|(frame, _)| *frame).collect();
        assert_eq!(order, [0, 2, 1, 1, 4, 3, 3]);
        assert_eq!((counted.forwarded, counted.duplicated, counted.reordered), (5, 2, 2));
        assert_eq!(pass(Rules { duplicate: part("100%"), ..Rules::default() }, 5, 6).1.duplicated, 5);
    }

    #[test]
    fn what_does_not_fit_or_leave_is_lost() {
        let mut line = Line::new(Rules::default());
        let now = Instant::now();
        for _ in 0..QUEUE + 10 {
            line.enter(&[0; 60], now);
        }
        let mut sent = 0;
        line.leave(now, |_| {
            sent += 1;
            sent > 5
        });
        assert_eq!((line.counted().dropped(), line.counted().forwarded), (15, QUEUE as u64 - 5));
    }

    #[test]
    fn shares_are_exact_and_bounded() {
        let one_in_three = part("33.3333%");
        assert_eq!((1..=1_000_000).filter(|number| one_in_three.has(*number)).count(), 333_333);
        for text in ["0", "0%", "0.00001%", "51%", "-1%", "NaN", "%", "", "inf"] {
            assert_eq!(Share::parse(text, 0.5), None, "{text}");
        }
        assert_eq!(Share::parse("50%", 0.5), Some(Share(500_000)));
    }
}
