//! When frames are due: loads enter as they are announced, departures leave. Pure.
//!
//! The twin, for engines in user space, of what `xdp/generate.bpf.c` does in the kernel; the two go by
//! the same rules. The schedule of departures is the integral of the rate: a frame belongs to the
//! interval that it was due in, and one that is more than [`GIVE_UP_NS`] late is given up.

use traffic::FrameTable;
use traffic::table::MEAN_DISTANCE;

use crate::{Error, Load, Order, Part};

/// A worker that is further behind than this gives the missed frames up: they are unsent.
pub const GIVE_UP_NS: u64 = 10_000_000;
/// A late worker catches up at most 1/15 faster than asked, but for what it missed in this time.
const CATCH_UP_NS: u64 = 20_000;
/// A worker that is further behind than this catches up 1/7 faster instead, before it must give frames up.
const HURRY_NS: u64 = GIVE_UP_NS / 2;
/// Paced frames that follow silence begin this long after they are asked for, so that all workers have
/// followed by then.
const LEAD_NS: u64 = 1_000_000;
/// So many rows with distances of their own are given up at once.
const MOST_ROWS_GIVEN_UP: u64 = 1024;
/// Most frames a second.
const MOST_PPS: f64 = 1e9;

/// How departures follow each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Not at all.
    #[default]
    Idle,
    /// At once.
    Max,
    /// At equal distances, or at those of a table whose profile has bursts.
    Rate,
    /// At equal distances, so many.
    Burst,
    /// The same of some rows, from exactly the time that was asked for.
    Part,
}

impl Mode {
    fn is_paced(self) -> bool {
        matches!(self, Self::Rate | Self::Burst | Self::Part)
    }

    fn ends(self) -> bool {
        matches!(self, Self::Burst | Self::Part)
    }
}

/// The load of one interval, as every worker takes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Announced {
    /// When it is asked for: nanoseconds of the monotonic clock.
    pub start: u64,
    /// Nanoseconds between departures of one worker …
    pub gap: u64,
    /// … and 2^-32 nanoseconds more.
    pub gap_fraction: u64,
    /// Of a burst or a part, all workers and directions together.
    pub frames: u64,
    /// The rows that a part sends: the first …
    pub first: u64,
    /// … and how many; 0 for the whole table.
    pub rows: u64,
    /// How departures follow each other.
    pub mode: Mode,
}

impl Announced {
    /// `load` in each of `directions`, asked for at `start`, divided among `workers`.
    ///
    /// # Errors
    /// [`Error::Refused`] for rates that no engine keeps.
    pub fn new(load: Load, directions: usize, workers: usize, start: u64) -> Result<Self, Error> {
        let (mode, pps, frames) = match load {
            Load::Idle => return Ok(Self { start, ..Self::default() }),
            Load::Max => return Ok(Self { start, mode: Mode::Max, ..Self::default() }),
            Load::Rate(pps) => (Mode::Rate, pps, 0),
            Load::Burst { pps, frames } => (Mode::Burst, pps, frames.saturating_mul(directions as u64)),
        };
        if !(1.0..=MOST_PPS).contains(&pps) {
            return Err(Error::Refused(format!(
                "a rate of {pps} frames a second is too low or too high: engines send 1 to 1,000,000,000"
            )));
        }
        let (gap, gap_fraction) = gap(1e9 * workers as f64 / (pps * directions as f64));
        Ok(Self { start, gap, gap_fraction, frames, mode, ..Self::default() })
    }

    /// `part`, from `start`, divided among `workers`.
    ///
    /// # Errors
    /// [`Error::Refused`] for rates that no engine keeps, and for fewer rows than workers.
    pub fn part(part: &Part, workers: usize, start: u64) -> Result<Self, Error> {
        let Part { first, rows, frames, pps } = *part;
        if !(1e-3..=2.0 * MOST_PPS).contains(&pps) || rows < workers as u64 {
            return Err(Error::Refused(format!(
                "{rows} rows at {pps} packets/s cannot be sent by {workers} workers"
            )));
        }
        let (gap, gap_fraction) = gap(1e9 * workers as f64 / pps);
        Ok(Self { start, gap, gap_fraction, frames, first, rows, mode: Mode::Part })
    }

    /// What `order` asks for; see [`Announced::new`] and [`Announced::part`].
    ///
    /// # Errors
    /// As these.
    pub fn of(order: &Order, directions: usize, workers: usize, start: u64) -> Result<Self, Error> {
        match order {
            Order::Load(load) => Self::new(*load, directions, workers, start),
            Order::Part(part) => Self::part(part, workers, start),
        }
    }
}

/// Whole nanoseconds, and 2^-32 of them.
fn gap(nanoseconds: f64) -> (u64, u64) {
    (nanoseconds as u64, (nanoseconds.fract() * 2f64.powi(32)) as u64)
}

/// One worker's place in its schedule.
#[derive(Clone, Debug, Default)]
pub struct Schedule {
    worker: u64,
    workers: u64,
    mode: Mode,
    gap: u64,
    gap_fraction: u64,
    /// When the next frame is due …
    next: u64,
    /// … and 2^-32 nanoseconds more.
    next_fraction: u64,
    /// When it may leave at the soonest, however late the worker is.
    earliest: u64,
    /// Frames of a burst or a part still to come.
    left: u64,
    /// Whether the rows are those of a part.
    in_part: bool,
    /// How far the next frame is from the one before: nanoseconds.
    distance: u64,
    /// The distances of rows, where they are not equal.
    spacing: Option<Spacing>,
}

/// The distances of a worker's rows, of which the next is sent at a rate.
#[derive(Clone, Debug)]
struct Spacing {
    /// See [`FrameTable::distances`].
    distances: Vec<u64>,
    /// See [`FrameTable::first_time`].
    first: u64,
    row: usize,
}

impl Spacing {
    /// Goes on to the next row of one of so many workers, and says how far that is.
    #[inline]
    fn next(&mut self, workers: usize) -> u64 {
        let distance = self.distances.get(self.row).copied().unwrap_or(MEAN_DISTANCE);
        self.row += workers;
        if self.row >= self.distances.len() {
            self.row -= self.distances.len();
        }
        distance
    }
}

/// What a worker does now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// Nothing.
    Nothing,
    /// It sends a frame, which was due so many nanoseconds ago, and says [`Schedule::depart`].
    Frame {
        /// Nanoseconds; 0 where nothing is paced.
        late: u64,
    },
    /// It counts so many frames as unsent: they are too late. Where [`Schedule::is_spaced`], their rows are left out.
    GivenUp(u64),
}

/// How a worker came from one interval to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Followed {
    /// When the next one really began: nanoseconds of the monotonic clock.
    pub begun: u64,
    /// The rows that the worker begins with, the first and how many, 0 for all of the table: its own first row
    /// again for a burst, so that all bursts of a size are alike. Else it goes on.
    pub rewind: Option<(u64, u64)>,
    /// Frames of a burst that ended too early: unsent, of the interval that ends.
    pub unsent: u64,
}

impl Schedule {
    /// An idle schedule of worker `worker` of `workers`.
    #[must_use]
    pub fn new(worker: usize, workers: usize) -> Self {
        Self { worker: worker as u64, workers: workers.max(1) as u64, ..Self::default() }
    }

    /// This schedule for the frames of `table`. Where the rows of the table have distances of their own, the worker must
    /// send them in their order: [`Followed::rewind`] says where it begins, and [`Due::GivenUp`] how many it leaves out.
    #[must_use]
    pub fn of(self, table: &FrameTable) -> Self {
        let (worker, workers) = (self.worker as usize, self.workers as usize);
        let spacing = table.first_time(worker, workers).map(|first| Spacing {
            distances: table.distances(workers),
            first,
            row: worker,
        });
        Self { spacing, ..self }
    }

    /// Whether frames leave at the distances of their rows.
    #[must_use]
    pub fn is_spaced(&self) -> bool {
        self.mode == Mode::Rate && self.spacing.is_some()
    }

    /// Whether anything may become due without another load.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.mode == Mode::Idle
    }

    /// Whether departures have a time.
    #[must_use]
    pub fn is_paced(&self) -> bool {
        self.mode.is_paced()
    }

    /// What the worker does at `now`.
    #[inline]
    pub fn due(&mut self, now: u64) -> Due {
        match self.mode {
            Mode::Idle => return Due::Nothing,
            Mode::Max => return Due::Frame { late: 0 },
            Mode::Rate | Mode::Burst | Mode::Part => {}
        }
        if !reached(now, self.next) || !reached(now, self.earliest) {
            return Due::Nothing;
        }
        let late = now - self.next;
        if late > GIVE_UP_NS { self.give_up(late) } else { Due::Frame { late } }
    }

    /// A frame leaves at `now`: the next one is due a gap later.
    #[inline]
    pub fn depart(&mut self, now: u64) {
        if !self.mode.is_paced() {
            return;
        }
        let soonest = now.saturating_sub(CATCH_UP_NS);
        if !reached(self.earliest, soonest) {
            self.earliest = soonest;
        }
        let hurries = reached(now, self.next.wrapping_add(HURRY_NS));
        self.go_on();
        let sooner = self.distance >> if hurries { 3 } else { 4 };
        self.earliest = self.earliest.wrapping_add(self.distance - sooner);
        if self.mode.ends() {
            self.end_burst_after(1);
        }
    }

    /// The next frame is due after the one at hand.
    #[inline]
    fn go_on(&mut self) {
        self.distance = match &mut self.spacing {
            Some(spacing) if self.mode == Mode::Rate => {
                let gap = u128::from(self.gap) << 32 | u128::from(self.gap_fraction);
                let distance =
                    gap * u128::from(spacing.next(self.workers as usize)) / u128::from(MEAN_DISTANCE);
                self.next_fraction += distance as u64 & 0xffff_ffff;
                (distance >> 32) as u64
            }
            _ => {
                self.next_fraction += self.gap_fraction;
                self.gap
            }
        };
        self.next = self.next.wrapping_add(self.distance + (self.next_fraction >> 32));
        self.next_fraction &= 0xffff_ffff;
    }

    /// Gives up the frames that were due for `late` nanoseconds.
    fn give_up(&mut self, late: u64) -> Due {
        if self.is_spaced() {
            return self.give_up_rows(late);
        }
        // In units of 2^-32 ns, so that none is given up that is not due yet.
        let gap = u128::from(self.gap) << 32 | u128::from(self.gap_fraction);
        let owed = u128::from(late) << 32 | u128::from(u32::MAX);
        let Some(missed) = (owed - u128::from(self.next_fraction)).checked_div(gap) else {
            return Due::Nothing;
        };
        let missed = u64::try_from(missed + 1).unwrap_or(u64::MAX);
        let missed = if self.mode.ends() { missed.min(self.left) } else { missed };
        let distance = u128::from(missed) * gap + u128::from(self.next_fraction);
        self.next = self.next.wrapping_add((distance >> 32) as u64);
        self.next_fraction = (distance & u128::from(u32::MAX)) as u64;
        if self.mode.ends() {
            self.end_burst_after(missed);
        }
        Due::GivenUp(missed)
    }

    /// The same of rows that have distances of their own, a bounded number at once.
    fn give_up_rows(&mut self, late: u64) -> Due {
        let end = self.next.wrapping_add(late);
        let mut missed = 0;
        while missed < MOST_ROWS_GIVEN_UP && reached(end, self.next) {
            self.go_on();
            missed += 1;
        }
        Due::GivenUp(missed)
    }

    /// So many frames of a burst or a part have left, or will not: the last one ends it.
    fn end_burst_after(&mut self, frames: u64) {
        self.left = self.left.saturating_sub(frames);
        if self.left == 0 {
            self.mode = Mode::Idle;
        }
    }

    /// Whether all frames have left, or been given up, that were due before `next` was asked for: the
    /// worker can follow. Says how many it gives up for that.
    pub fn finish_before(&mut self, next: &Announced, now: u64) -> (bool, u64) {
        if !self.mode.is_paced() || self.next >= next.start {
            return (true, 0);
        }
        if now <= self.next.saturating_add(GIVE_UP_NS) {
            return (false, 0);
        }
        let given_up = match self.give_up(next.start - 1 - self.next) {
            Due::GivenUp(frames) => frames,
            _ => 0,
        };
        if self.is_spaced() {
            return (self.next >= next.start, given_up);
        }
        self.next = self.next.max(next.start);
        (true, given_up)
    }

    /// Takes over the load of the next interval at `now`. `first` says that it is the worker's first.
    /// From one rate to the next the part of a gap still to come is kept, so that the number of
    /// departures is the integral of the rate.
    pub fn follow(&mut self, load: &Announced, now: u64, first: bool) -> Followed {
        let had_rate = self.mode == Mode::Rate;
        let begun = if had_rate { self.end_of_rate(load) } else { self.begin_of(load, now) };
        let mut unsent = 0;
        let goes_on = load.mode == Mode::Rate && had_rate;
        if goes_on {
            let rest = |time: u64| rescale(time.saturating_sub(begun), self.gap, load.gap);
            (self.next, self.earliest) = (begun + rest(self.next), begun + rest(self.earliest));
            self.distance = rescale(self.distance, self.gap, load.gap);
        } else {
            if self.mode == Mode::Burst {
                unsent = self.left;
            }
            let from = if had_rate { self.begin_of(load, now) } else { begun };
            let (first, distance) = match &mut self.spacing {
                Some(spacing) if load.mode == Mode::Rate => {
                    spacing.row = self.worker as usize;
                    let first = rescale(load.gap, MEAN_DISTANCE, spacing.first);
                    (first, first + load.gap)
                }
                _ => (self.worker * load.gap / self.workers, load.gap),
            };
            (self.next, self.distance) = (from + first, distance);
            self.next_fraction = 0;
            self.earliest = self.next;
        }
        let was_part = std::mem::replace(&mut self.in_part, load.mode == Mode::Part);
        self.mode = load.mode;
        self.gap = load.gap;
        self.gap_fraction = load.gap_fraction;
        if load.mode.ends() {
            self.left = (load.frames + self.workers - 1).saturating_sub(self.worker) / self.workers;
            self.end_burst_after(0);
        }
        let anew = first || was_part || load.mode.ends() || (self.spacing.is_some() && !goes_on);
        Followed { begun, rewind: anew.then_some((load.first, load.rows)), unsent }
    }

    /// Where a rate ends: when the next load is asked for, or after the last departure that was due, if
    /// the worker heard of it late and went on.
    fn end_of_rate(&self, next: &Announced) -> u64 {
        let departed = self.next.saturating_sub(self.distance) + 1;
        departed.max(next.start)
    }

    /// When a load begins that does not go on from a rate: never before the worker takes it up, so that
    /// it owes no frames and need not catch up. A part has its time in a schedule.
    fn begin_of(&self, load: &Announced, now: u64) -> u64 {
        if load.mode == Mode::Part {
            return load.start;
        }
        let silent = self.mode == Mode::Idle || load.mode == Mode::Burst;
        let lead = if load.mode.is_paced() && silent { LEAD_NS } else { 0 };
        (load.start + lead).max(now)
    }
}

/// Whether the clock has come from `time` to `now`; it may have wrapped.
#[inline]
fn reached(now: u64, time: u64) -> bool {
    now.wrapping_sub(time).cast_signed() >= 0
}

/// What is left of `rest`, a part of the gap `from`, when the gap becomes `to`.
fn rescale(rest: u64, from: u64, to: u64) -> u64 {
    let scaled = u128::from(rest) * u128::from(to);
    scaled.checked_div(u128::from(from)).map_or(0, |scaled| u64::try_from(scaled).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests;
