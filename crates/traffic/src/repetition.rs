//! Bursts and chains as a load test sends them: streams that begin and end enter, one period of all their frames
//! leaves, in order and with the times of their departures.
//!
//! A load test repeats that period, faster or slower as its load asks. [`Timeline`] says who sends when, for a load
//! test as for a server.

use std::collections::HashMap;

use crate::schedule::interleave;
use crate::table::in_mean_distances;
use crate::timeline::{Lane, NEVER, Stretch, Timeline};

/// The most stretches that are looked at until all repeats.
const MOST_STRETCHES: usize = 1 << 16;
/// How far the rate of a stream without end may be from what was asked for.
const TOLERANCE: f64 = 0.01;

/// One period of streams with bursts.
#[derive(Clone, Debug, PartialEq)]
pub struct Repetition {
    /// Whose turn each frame is: the places of streams.
    pub turns: Vec<u8>,
    /// When each frame leaves: nanoseconds from the first.
    pub times: Vec<u64>,
    /// Nanoseconds after which all begins again.
    pub length: u64,
}

/// Why streams have no period.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RepetitionError {
    /// Bursts come to an end.
    #[error(
        "the bursts end after {0} frames, and a load test sends until its time is over: give a burst without end, with \
         a pause, or let the last stream of a chain begin the first one again (next)"
    )]
    Ends(u64),
    /// The period is too long.
    #[error(
        "bursts and rates do not come together again within {0} frames: use shorter bursts, or bursts, pauses and rates \
         that have more in common"
    )]
    Long(usize),
    /// A stream has no part in it.
    #[error("stream {0} never begins: let it begin by itself, or let another one name it as the next")]
    Silent(usize),
}

impl Repetition {
    /// The period of `lanes`, of at most `most` frames. What comes before it, such as the wait of the first stream, is
    /// left out.
    ///
    /// # Errors
    /// When there is none.
    pub fn of(lanes: &[Lane], most: usize) -> Result<Self, RepetitionError> {
        let mut timeline = Timeline::new(lanes.to_vec(), vec![1; lanes.len()]);
        let mut stretches: Vec<Stretch> = Vec::new();
        let mut seen = HashMap::new();
        let mut frames = 0;
        loop {
            let now = (stretches.len(), timeline.now());
            let (first, start) = *seen.entry(timeline.phase()).or_insert(now);
            let period = stretches.get(first..).unwrap_or_default();
            if !period.is_empty() && keeps_rates(lanes, &timeline, period, now.1 - start) {
                all_take_part(lanes, &stretches, first)?;
                return Ok(Self::new(period, start, now.1));
            }
            let Some(stretch) = timeline.next().filter(|stretch| stretch.end != NEVER) else {
                all_take_part(lanes, &stretches, 0)?;
                return Err(RepetitionError::Ends(frames));
            };
            frames = frames.saturating_add(stretch.total());
            if frames > most as u64 || stretches.len() >= MOST_STRETCHES {
                return Err(RepetitionError::Long(most));
            }
            stretches.push(stretch);
        }
    }

    /// `period`, which begins at `start` and ends at `end`.
    fn new(period: &[Stretch], start: u64, end: u64) -> Self {
        let (mut turns, mut times) = (Vec::new(), Vec::new());
        for stretch in period {
            let order = interleave(&stretch.turns(), usize::MAX);
            let (total, length) = (stretch.total(), u128::from(stretch.end - stretch.start));
            turns.extend(order.iter().cycle().take(total as usize));
            let after = |frame: u64| (u128::from(frame) * length / u128::from(total.max(1))) as u64;
            times.extend((0..total).map(|frame| stretch.start - start + after(frame)));
        }
        let first = times.first().copied().unwrap_or(0);
        times.iter_mut().for_each(|time| *time -= first);
        Self { turns, times, length: end - start }
    }

    /// Frames a second in the mean of a period.
    #[must_use]
    pub fn mean_pps(&self) -> f64 {
        self.turns.len() as f64 / (self.length.max(1) as f64 / 1e9)
    }

    /// How often each of so many streams has its turn in a period.
    #[must_use]
    pub fn frames(&self, streams: usize) -> Vec<u64> {
        let mut frames = vec![0; streams];
        for turn in &self.turns {
            if let Some(frames) = frames.get_mut(usize::from(*turn)) {
                *frames += 1;
            }
        }
        frames
    }

    /// When `count` rows of a table leave, as [`FrameTable::times`] has it. Of `lanes` rows at a time each is of another
    /// direction, and they share the distance to the next.
    ///
    /// [`FrameTable::times`]: crate::FrameTable::times
    #[must_use]
    pub fn of_rows(&self, count: usize, lanes: usize) -> Vec<u64> {
        let (each, lanes) = (self.times.len().max(1), lanes.max(1));
        let time = |frame: usize| {
            let before = self.length.saturating_mul((frame / each) as u64);
            before + self.times.get(frame % each).copied().unwrap_or(0)
        };
        let row = |row: usize| {
            let (this, next) = (time(row / lanes), time(row / lanes + 1));
            this + (next - this) * (row % lanes) as u64 / lanes as u64
        };
        in_mean_distances(&(0..count).map(row).collect::<Vec<_>>(), row(count))
    }

    /// What the reader of a result should know.
    #[must_use]
    pub fn note(&self) -> String {
        format!(
            "the profile has bursts: loads are means, and frames leave up to {:.1} times as fast within bursts",
            self.peak()
        )
    }

    /// How many times as fast as in the mean frames leave where they are closest.
    fn peak(&self) -> f64 {
        // Frames at a distance of nothing are of streams that send at the same time: eight frames tell.
        let over = 8.min(self.times.len().saturating_sub(1));
        let later = self.times.iter().skip(over);
        let shortest = later.zip(&self.times).map(|(later, time)| later - time).min().unwrap_or(self.length);
        over as f64 / (shortest.max(1) as f64 / 1e9) / self.mean_pps()
    }
}

/// Refuses lanes that send nothing in the stretches from `first` on, which repeat.
fn all_take_part(lanes: &[Lane], stretches: &[Stretch], first: usize) -> Result<(), RepetitionError> {
    for lane in 0..lanes.len() {
        let sum = |stretches: &[Stretch]| stretches.iter().map(|stretch| stretch.frames[lane]).sum::<u64>();
        let (before, period) = stretches.split_at(first);
        match (sum(before), sum(period)) {
            (0, 0) => return Err(RepetitionError::Silent(lane + 1)),
            (frames, 0) => return Err(RepetitionError::Ends(frames)),
            _ => {}
        }
    }
    Ok(())
}

/// Whether all that send without end have as many frames in `period`, of `length` nanoseconds, as their rates say.
fn keeps_rates(lanes: &[Lane], timeline: &Timeline, period: &[Stretch], length: u64) -> bool {
    lanes.iter().enumerate().filter(|(index, _)| timeline.sends_without_end(*index)).all(|(index, lane)| {
        let expected = lane.pps * length as f64 / 1e9;
        let frames: u64 = period.iter().map(|stretch| stretch.frames[index]).sum();
        (frames as f64 - expected).abs() <= expected * TOLERANCE
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::timeline::{ENDLESS, Mode};

    const MS: u64 = 1_000_000;

    fn lane(pps: f64, mode: Mode) -> Lane {
        Lane { port: 0, pps, mode, wait: 0, next: None, turns: None, starts: true }
    }

    fn bursts(pps: f64, frames: u64, count: u64, gap_us: u64) -> Lane {
        lane(pps, Mode::Bursts { frames, count, gap: Duration::from_micros(gap_us) })
    }

    #[test]
    fn a_burst_and_its_pause_are_a_period() {
        let found = Repetition::of(&[bursts(1e6, 4, ENDLESS, 996)], 1000).unwrap();
        assert_eq!((found.turns, found.times, found.length), (vec![0; 4], vec![0, 1000, 2000, 3000], MS));
        let found = Repetition::of(&[Lane { wait: 5 * MS, ..bursts(1e6, 4, ENDLESS, 996) }], 1000).unwrap();
        assert_eq!(
            (found.times, found.length),
            (vec![0, 1000, 2000, 3000], MS),
            "the first wait is left out"
        );
    }

    #[test]
    fn a_stream_without_end_goes_on_in_bursts_and_pauses() {
        let found =
            Repetition::of(&[lane(1e3, Mode::Continuous), bursts(1e4, 50, ENDLESS, 5_000)], 1000).unwrap();
        assert_eq!((found.frames(2), found.length), (vec![10, 50], 10 * MS));
        assert!((found.mean_pps() - 6_000.0).abs() < 1.0);
        assert!((found.peak() - 11.0 / 6.0).abs() < 0.01, "{}", found.peak());
        // A third of a frame in each period: only after some of them is the rate right.
        let found =
            Repetition::of(&[lane(100.0, Mode::Continuous), bursts(1e4, 1, ENDLESS, 3_233)], 1000).unwrap();
        assert_eq!(found.frames(2), [1, 3]);
    }

    #[test]
    fn a_chain_that_leads_back_to_its_beginning_is_a_period() {
        let chain = |turns| {
            vec![
                Lane { next: Some(1), wait: MS, ..bursts(1e6, 10, 2, 90) },
                Lane { next: Some(0), turns, starts: false, ..bursts(5e5, 20, 1, 0) },
            ]
        };
        let found = Repetition::of(&chain(None), 1000).unwrap();
        assert_eq!((found.frames(2), found.length), (vec![20, 20], MS + 110_000 + 40_000));
        assert_eq!(found.times[9..12], [9_000, 100_000, 101_000]);
        assert_eq!(Repetition::of(&chain(Some(3)), 1000), Err(RepetitionError::Ends(160)));
    }

    #[test]
    fn what_has_no_period_is_refused() {
        let refused = |lanes: &[Lane]| Repetition::of(lanes, 1000).unwrap_err();
        assert_eq!(refused(&[bursts(1e6, 100, 1, 0)]), RepetitionError::Ends(100));
        assert_eq!(
            refused(&[lane(1e3, Mode::Continuous), bursts(1e6, 100, 1, 0)]),
            RepetitionError::Ends(101)
        );
        assert_eq!(refused(&[bursts(1e6, 1001, ENDLESS, 1)]), RepetitionError::Long(1000));
        assert_eq!(
            refused(&[bursts(1e6, 7, ENDLESS, 13), bursts(1e6, 7, ENDLESS, 1_009)]),
            RepetitionError::Long(1000)
        );
        let silent = [bursts(1e6, 7, ENDLESS, 13), Lane { starts: false, ..bursts(1e6, 7, 1, 0) }];
        assert_eq!(refused(&silent), RepetitionError::Silent(2));
        let ends = [bursts(1e6, 7, ENDLESS, 13), bursts(1e6, 9, 1, 0)];
        assert_eq!(refused(&ends), RepetitionError::Ends(9), "beside one without end");
    }
}
