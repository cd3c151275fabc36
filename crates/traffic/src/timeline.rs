//! Who sends when: streams that begin and end enter, stretches of time in which the same ones send leave.
//!
//! Streams begin by themselves or after another one, wait (`isg`), and send bursts or without end. Between two such
//! events every stream that sends has its rate, so that all frames of a stretch leave at equal distances. A burst
//! has exactly its frames, however many stretches it takes. Times are nanoseconds from the start.

use std::time::Duration;

use crate::stream::gcd;

/// The most frames of a stretch that is not made of smaller equal ones.
const CHUNK: u64 = 1 << 15;
/// For ever.
pub const NEVER: u64 = u64::MAX;

/// A burst that comes again so often comes without end.
pub const ENDLESS: u64 = u64::MAX;

/// How one stream sends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mode {
    /// Without end.
    Continuous,
    /// Bursts with a pause between two of them.
    Bursts {
        /// Frames of each.
        frames: u64,
        /// How many, or [`ENDLESS`].
        count: u64,
        /// The pause.
        gap: Duration,
    },
}

/// One stream of a port.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lane {
    /// The port that it leaves by.
    pub port: usize,
    /// Frames a second.
    pub pps: f64,
    /// How it sends.
    pub mode: Mode,
    /// How long it waits before its first frame, each time that it begins.
    pub wait: u64,
    /// The lane that begins when this one has ended.
    pub next: Option<usize>,
    /// How often that one begins so; 0 is without end, as TRex's `action_count` less one.
    pub turns: Option<u64>,
    /// Whether it begins by itself.
    pub starts: bool,
}

/// What a lane does.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Doing {
    Nothing,
    /// Until then, with so many bursts to come.
    Waits {
        until: u64,
        bursts: u64,
    },
    /// From then until then, of which so many frames are accounted for, with so many bursts to come.
    Sends {
        from: u64,
        until: u64,
        frames: u64,
        sent: u64,
        bursts: u64,
    },
}

/// A stretch of time in which the same streams send.
#[derive(Clone, Debug, PartialEq)]
pub struct Stretch {
    /// When it begins.
    pub start: u64,
    /// When it ends, or [`NEVER`].
    pub end: u64,
    /// The frames of each lane; of one that never ends, their proportions.
    pub frames: Vec<u64>,
    /// Frames a second of all lanes.
    pub pps: f64,
}

impl Stretch {
    /// The frames of all lanes.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.frames.iter().fold(0, |sum, frames| sum.saturating_add(*frames))
    }

    /// How often each lane takes its turn: the frames without what they have in common.
    #[must_use]
    pub fn turns(&self) -> Vec<u64> {
        let common = self.frames.iter().fold(0, |common, frames| gcd(common, *frames)).max(1);
        self.frames.iter().map(|frames| frames / common).collect()
    }
}

/// All lanes, from the start on: an iterator over the stretches in which something is sent.
#[derive(Clone, Debug, PartialEq)]
pub struct Timeline {
    lanes: Vec<Lane>,
    doing: Vec<Doing>,
    turns: Vec<Option<u64>>,
    /// In the last stretch, which never ends, how often each lane takes its turn.
    at_last: Vec<u64>,
    now: u64,
    /// When each port has sent all, once it has.
    ended: [Option<u64>; 2],
}

impl Timeline {
    /// Lanes at their start; `at_last` has how often each of those that never end takes its turn.
    #[must_use]
    pub fn new(lanes: Vec<Lane>, at_last: Vec<u64>) -> Self {
        let (count, turns) = (lanes.len(), lanes.iter().map(|lane| lane.turns).collect());
        let mut timeline =
            Self { lanes, doing: vec![Doing::Nothing; count], turns, at_last, now: 0, ended: [None; 2] };
        for lane in 0..count {
            if timeline.lanes[lane].starts {
                timeline.begin(lane);
            }
        }
        timeline.go_on();
        timeline
    }

    /// When `port` has sent all, if that is known by now.
    #[must_use]
    pub fn ended(&self, port: usize) -> Option<u64> {
        self.ended.get(port).copied().flatten()
    }

    /// How far it has come.
    pub(crate) fn now(&self) -> u64 {
        self.now
    }

    /// Whether a lane sends without end from now on.
    pub(crate) fn sends_without_end(&self, lane: usize) -> bool {
        self.lanes[lane].mode == Mode::Continuous && matches!(self.doing[lane], Doing::Sends { .. })
    }

    /// What every lane does, seen from now: what comes after two equal ones is equal, but for streams that send
    /// without end.
    pub(crate) fn phase(&self) -> Vec<[u64; 5]> {
        let bursts_left = |lane: &Lane, bursts: u64| match lane.mode {
            Mode::Bursts { count, .. } if count != ENDLESS => bursts,
            _ => 0,
        };
        let lanes = self.lanes.iter().zip(&self.doing).zip(&self.turns);
        let phase = lanes.map(|((lane, doing), turns)| {
            let turns = turns.map_or(0, |turns| turns.saturating_add(1));
            match *doing {
                Doing::Nothing => [turns, 0, 0, 0, 0],
                Doing::Waits { until, bursts } => [turns, 1, until - self.now, bursts_left(lane, bursts), 0],
                Doing::Sends { .. } if lane.mode == Mode::Continuous => [turns, 2, 0, 0, 0],
                Doing::Sends { until, sent, bursts, .. } => {
                    [turns, 3, until - self.now, bursts_left(lane, bursts), sent]
                }
            }
        });
        phase.collect()
    }

    /// A lane begins now.
    fn begin(&mut self, lane: usize) {
        let bursts = match self.lanes[lane].mode {
            Mode::Continuous => 1,
            Mode::Bursts { count, .. } => count,
        };
        self.doing[lane] = Doing::Waits { until: self.now.saturating_add(self.lanes[lane].wait), bursts };
    }

    /// Does all that is due now, and what that brings about.
    fn go_on(&mut self) {
        // Every turn of a chain sends for some time, so that this ends.
        while let Some(lane) = (0..self.lanes.len()).find(|lane| self.due(*lane) <= self.now) {
            let Lane { pps, mode, .. } = self.lanes[lane];
            match (self.doing[lane], mode) {
                (Doing::Waits { bursts, .. }, Mode::Bursts { frames, .. }) => {
                    let length = ((frames as f64 / pps * 1e9).round() as u64).max(1);
                    let until = self.now.saturating_add(length);
                    self.doing[lane] = Doing::Sends {
                        from: self.now,
                        until,
                        frames,
                        sent: 0,
                        bursts: if bursts == ENDLESS { bursts } else { bursts.saturating_sub(1) },
                    };
                }
                (Doing::Waits { bursts, .. }, Mode::Continuous) => {
                    self.doing[lane] =
                        Doing::Sends { from: self.now, until: NEVER, frames: u64::MAX, sent: 0, bursts };
                }
                (Doing::Sends { bursts, .. }, Mode::Bursts { gap, .. }) if bursts > 0 => {
                    let gap = u64::try_from(gap.as_nanos()).unwrap_or(NEVER);
                    self.doing[lane] = Doing::Waits { until: self.now.saturating_add(gap), bursts };
                }
                _ => self.end(lane),
            }
        }
        for (port, ended) in self.ended.iter_mut().enumerate() {
            let mut of_port = self.lanes.iter().zip(&self.doing).filter(|(lane, _)| lane.port == port);
            if ended.is_none() && of_port.all(|(_, doing)| *doing == Doing::Nothing) {
                *ended = Some(self.now);
            }
        }
    }

    /// A lane has ended: another may begin.
    fn end(&mut self, lane: usize) {
        self.doing[lane] = Doing::Nothing;
        let Some(next) = self.lanes[lane].next.filter(|next| *next < self.lanes.len()) else { return };
        if let Some(turns) = self.turns[lane].as_mut() {
            if *turns == 0 {
                return;
            }
            *turns -= 1;
        }
        // One that another chain has begun is left to it, as with TRex.
        if self.doing[next] == Doing::Nothing {
            self.begin(next);
        }
    }

    /// When a lane's state changes next.
    fn due(&self, lane: usize) -> u64 {
        match self.doing[lane] {
            Doing::Nothing => NEVER,
            Doing::Waits { until, .. } | Doing::Sends { until, .. } => until,
        }
    }

    /// From now until `end`.
    fn stretch(&self, end: u64) -> Stretch {
        let stretch = Stretch { start: self.now, end, frames: self.frames_until(end), pps: 0.0 };
        Stretch { pps: stretch.total() as f64 / ((end - self.now) as f64 / 1e9), ..stretch }
    }

    /// The frames of each lane from now until `end`.
    fn frames_until(&self, end: u64) -> Vec<u64> {
        let lanes = self.lanes.iter().zip(&self.doing);
        let frames = lanes.map(|(lane, doing)| match *doing {
            Doing::Sends { until, frames, sent, .. } if until == end => frames - sent,
            Doing::Sends { from, frames, sent, .. } => {
                // Those whose time is before the end: the first is due at once.
                let due = (lane.pps * (end - from) as f64 / 1e9 - 1e-6).ceil().max(0.0) as u64;
                due.min(frames).saturating_sub(sent)
            }
            _ => 0,
        });
        frames.collect()
    }
}

impl Iterator for Timeline {
    type Item = Stretch;

    fn next(&mut self) -> Option<Stretch> {
        while self.now < NEVER {
            let start = self.now;
            let mut end = (0..self.lanes.len()).map(|lane| self.due(lane)).min().unwrap_or(NEVER);
            if end == NEVER {
                self.now = NEVER;
                let sends = |lane: &usize| matches!(self.doing[*lane], Doing::Sends { .. });
                let pps = (0..self.lanes.len()).filter(sends).map(|lane| self.lanes[lane].pps).sum();
                let turns = self.at_last.iter().enumerate();
                let frames = turns.map(|(lane, turns)| if sends(&lane) { *turns } else { 0 }).collect();
                let last = Stretch { start, end, frames, pps };
                return (last.total() > 0).then_some(last);
            }
            let mut stretch = self.stretch(end);
            let turns: u64 = stretch.turns().iter().fold(0, |sum: u64, turns| sum.saturating_add(*turns));
            if turns > CHUNK {
                let share = CHUNK as f64 / stretch.total() as f64;
                end = start + (((end - start) as f64 * share) as u64).clamp(1, end - start);
                stretch = self.stretch(end);
            }
            for (doing, frames) in self.doing.iter_mut().zip(&stretch.frames) {
                if let Doing::Sends { sent, .. } = doing {
                    *sent += frames;
                }
            }
            self.now = end;
            self.go_on();
            if stretch.total() > 0 {
                return Some(stretch);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MS: u64 = 1_000_000;

    fn lane(pps: f64, mode: Mode) -> Lane {
        Lane { port: 0, pps, mode, wait: 0, next: None, turns: None, starts: true }
    }

    fn burst(pps: f64, frames: u64) -> Lane {
        lane(pps, Mode::Bursts { frames, count: 1, gap: Duration::ZERO })
    }

    fn bursts(pps: f64, frames: u64, count: u64, gap_ms: u64) -> Lane {
        lane(pps, Mode::Bursts { frames, count, gap: Duration::from_millis(gap_ms) })
    }

    fn stretches(lanes: Vec<Lane>) -> Vec<(u64, u64, Vec<u64>)> {
        let turns = vec![1; lanes.len()];
        Timeline::new(lanes, turns).take(1_000).map(|it| (it.start, it.end, it.frames)).collect()
    }

    #[test]
    fn a_chain_goes_from_one_stream_to_the_next() {
        // As in burst_3st_600pkt.py: 10, then 20, then 30.
        let lanes = vec![
            Lane { next: Some(1), wait: 10 * MS, ..burst(1e3, 10) },
            Lane { starts: false, next: Some(2), ..burst(1e3, 20) },
            Lane { starts: false, ..burst(1e3, 30) },
        ];
        let expected = vec![
            (10 * MS, 20 * MS, vec![10, 0, 0]),
            (20 * MS, 40 * MS, vec![0, 20, 0]),
            (40 * MS, 70 * MS, vec![0, 0, 30]),
        ];
        assert_eq!(stretches(lanes.clone()), expected);
        // Back to the first, twice in all: action_count is 2.
        let mut looping = lanes;
        looping[2] = Lane { next: Some(0), turns: Some(1), ..looping[2] };
        let mut timeline = Timeline::new(looping.clone(), vec![0; 3]);
        assert_eq!(timeline.by_ref().map(|it| it.total()).sum::<u64>(), 120);
        assert_eq!((timeline.ended(0), timeline.ended(1)), (Some(140 * MS), Some(0)));
        looping[2].turns = None;
        assert_eq!(stretches(looping).len(), 1_000);
    }

    #[test]
    fn bursts_beside_a_stream_without_end_have_exactly_their_frames() {
        let lanes = vec![lane(1e3, Mode::Continuous), bursts(1e4, 50, 3, 10)];
        let seen = stretches(lanes);
        let expected = vec![
            (0, 5 * MS, vec![5, 50]),
            (5 * MS, 15 * MS, vec![10, 0]),
            (15 * MS, 20 * MS, vec![5, 50]),
            (20 * MS, 30 * MS, vec![10, 0]),
            (30 * MS, 35 * MS, vec![5, 50]),
            (35 * MS, NEVER, vec![1, 0]),
        ];
        assert_eq!(seen, expected);
    }

    #[test]
    fn streams_that_share_nothing_are_cut_into_equal_pieces() {
        let seen = stretches(vec![burst(1e6, 1_000_003), burst(999_983.0, 1_000_000)]);
        let sums = seen.iter().fold([0; 2], |sum, it| [sum[0] + it.2[0], sum[1] + it.2[1]]);
        assert_eq!(sums, [1_000_003, 1_000_000]);
        assert!(seen.len() < 80);
        let few = |frames: &Vec<u64>| frames[0] / gcd(frames[0], frames[1]).max(1) <= CHUNK;
        assert!(seen.iter().all(|it| few(&it.2)));
    }

    proptest! {
        #[test]
        fn all_frames_leave_and_time_goes_on(
            lanes in prop::collection::vec((1.0..1e6_f64, 1..2_000_u64, 1..4_u64, 0..20_u64, 0..5_u64, any::<bool>()), 1..5),
        ) {
            let count = lanes.len();
            let lanes: Vec<Lane> = lanes.into_iter().enumerate().map(|(index, (pps, frames, count_of, gap, wait, starts))| {
                let next = (!starts).then_some((index + 1) % count);
                Lane { wait: wait * MS, starts: starts || index == 0, turns: Some(2), next, ..bursts(pps, frames, count_of, gap) }
            }).collect();
            let (mut last, mut sent) = (0, vec![0; count]);
            for stretch in Timeline::new(lanes.clone(), vec![0; count]) {
                prop_assert!(stretch.start >= last && stretch.end > stretch.start);
                last = stretch.end;
                sent.iter_mut().zip(&stretch.frames).for_each(|(sent, frames)| *sent += frames);
            }
            for (lane, sent) in lanes.iter().zip(&sent) {
                let Mode::Bursts { frames, count, .. } = lane.mode else { continue };
                prop_assert_eq!(sent % (frames * count), 0);
                prop_assert!(*sent > 0 || !lane.starts);
            }
        }
    }
}
