//! The twin of `calibrated.bpf.c` for frames in user space: frames and the time enter; which of them pass
//! leaves, and the counts. Pure.

use stats::Random;

/// What a device does to frames, as the constants of the kernel program; each is off while it is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Limits {
    /// Of every so many frames in a direction the last is lost.
    pub drop_every: u64,
    /// The chance of each frame to be lost, in 2^-32.
    pub loss: u64,
    /// Between two frames, in 2^-32 ns.
    pub interval: u64,
    /// How long before it is due a frame may come, in ns.
    pub tolerance_ns: u64,
    /// After so many frames in both directions nothing passes any more.
    pub stall_after: u64,
    /// Nor once frames come at a certain rate.
    pub stall: Option<StallRates>,
}

/// Rates that make a device stall.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StallRates {
    /// Frames a second in a direction, from this on …
    pub low: u64,
    /// … and below this; 0 for any.
    pub high: u64,
    /// For so long.
    pub time_ns: u64,
    /// Whether it forwards again after a pause.
    pub ends_in_pause: bool,
}

/// A rate is that of the frames in a window, which a pause begins anew: as in the kernel program.
const WINDOW_NS: u64 = 50_000_000;
const PAUSE_NS: u64 = 250_000_000;
const SECOND_NS: u64 = 1_000_000_000;

/// What became of the frames that entered in one direction; broadcast and multicast are not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// Frames that came.
    pub frames: u64,
    /// Bytes of those, FCS included.
    pub bytes: u64,
    /// Those of them that were sent on.
    pub forwarded: u64,
    /// Those that were not, by [`Rules::NAMES`].
    pub dropped: [u64; 5],
    /// Those that passed all rules, but the other port had no room: the tester took none in time.
    pub refused: u64,
}

impl Passed {
    /// What became of those since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            frames: self.frames.saturating_sub(earlier.frames),
            bytes: self.bytes.saturating_sub(earlier.bytes),
            forwarded: self.forwarded.saturating_sub(earlier.forwarded),
            dropped: std::array::from_fn(|rule| self.dropped[rule].saturating_sub(earlier.dropped[rule])),
            refused: self.refused.saturating_sub(earlier.refused),
        }
    }
}

/// The rules of a `calibrated` device, and what they came to so far.
#[derive(Clone, Debug)]
pub struct Rules {
    limits: Limits,
    directions: [Direction; 2],
    random: Random,
    /// Whether a rate has made it stall.
    stalled: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Direction {
    passed: Passed,
    /// When the next frame is due, if frames come at the rate …
    due_ns: u64,
    /// … and 2^-32 ns more.
    due_fraction: u64,
    rate: RateWatch,
}

/// How fast the frames of a direction come.
#[derive(Clone, Copy, Debug, Default)]
struct RateWatch {
    /// When the last one came, where one did.
    arrived_ns: Option<u64>,
    window_ns: u64,
    /// Frames since the one that began the window.
    window_frames: u64,
    /// How long they have come at a rate that stalls.
    stalling_ns: u64,
}

impl RateWatch {
    /// Notes a frame at `now_ns`: whether the device stalls now, or no more; `None` if it is as before.
    fn note(&mut self, rates: &StallRates, now_ns: u64) -> Option<bool> {
        let before = self.arrived_ns.replace(now_ns);
        if before.is_none_or(|before| now_ns.saturating_sub(before) > PAUSE_NS) {
            (self.window_ns, self.window_frames, self.stalling_ns) = (now_ns, 0, 0);
            return rates.ends_in_pause.then_some(false);
        }
        self.window_frames += 1;
        let elapsed = now_ns.saturating_sub(self.window_ns);
        if elapsed < WINDOW_NS {
            return None;
        }
        let frames = self.window_frames * SECOND_NS;
        let stalls = frames >= rates.low * elapsed && (rates.high == 0 || frames < rates.high * elapsed);
        self.stalling_ns = if stalls { self.stalling_ns + elapsed } else { 0 };
        (self.window_ns, self.window_frames) = (now_ns, 0);
        (self.stalling_ns >= rates.time_ns).then_some(true)
    }
}

/// The bits of 2^-32 ns.
const FRACTION: u64 = 0xffff_ffff;

impl Rules {
    /// The rules in the order in which frames meet them, by their parameters.
    pub const NAMES: [&str; 5] = ["drop-every", "loss", "rate", "stall-after", "stall-rate"];

    /// Rules that chance follows from `seed`.
    pub(super) fn new(limits: Limits, seed: u64) -> Self {
        Self { limits, directions: Default::default(), random: Random::new(seed), stalled: false }
    }

    /// Whether `frame`, without FCS, passes. It entered port 0 (`direction` 0) or port 1 at `now_ns` of
    /// a clock that does not go back.
    #[inline]
    pub fn pass(&mut self, direction: usize, frame: &[u8], now_ns: u64) -> bool {
        if frame.first().is_some_and(|byte| byte & 1 == 1) {
            return true;
        }
        let dropped = self.dropped_by(direction, now_ns);
        let passed = &mut self.directions[direction % 2].passed;
        passed.frames += 1;
        passed.bytes += (frame.len() + wire::size::FCS as usize) as u64;
        match dropped {
            Some(rule) => passed.dropped[rule] += 1,
            None => passed.forwarded += 1,
        }
        dropped.is_none()
    }

    /// The last `frames` that passed in `direction` found no room at the other port.
    pub fn refuse(&mut self, direction: usize, frames: u64) {
        let passed = &mut self.directions[direction % 2].passed;
        passed.forwarded = passed.forwarded.saturating_sub(frames);
        passed.refused += frames;
    }

    /// What became of frames in `direction`.
    #[must_use]
    pub fn passed(&self, direction: usize) -> Passed {
        self.directions[direction % 2].passed
    }

    /// The rule that drops the next frame, by its place in [`Self::NAMES`].
    fn dropped_by(&mut self, direction: usize, now_ns: u64) -> Option<usize> {
        let limits = self.limits;
        let forwarded: u64 = self.directions.iter().map(|direction| direction.passed.forwarded).sum();
        let direction = &mut self.directions[direction % 2];
        if let Some(stalled) = limits.stall.and_then(|rates| direction.rate.note(&rates, now_ns)) {
            self.stalled = stalled;
        }
        if limits.drop_every > 0 && (direction.passed.frames + 1).is_multiple_of(limits.drop_every) {
            Some(0)
        } else if limits.loss > 0 && self.random.bits() >> 32 < limits.loss {
            Some(1)
        } else if limits.interval > 0 && !direction.conforms(&limits, now_ns) {
            Some(2)
        } else if limits.stall_after > 0 && forwarded >= limits.stall_after {
            Some(3)
        } else if self.stalled {
            Some(4)
        } else {
            None
        }
    }
}

impl Direction {
    /// The generic cell rate algorithm, as virtual scheduling (ITU-T I.371), as in the kernel program.
    fn conforms(&mut self, limits: &Limits, now_ns: u64) -> bool {
        if self.due_ns < now_ns {
            (self.due_ns, self.due_fraction) = (now_ns, 0);
        } else if self.due_ns - now_ns > limits.tolerance_ns {
            return false;
        }
        let fraction = self.due_fraction + (limits.interval & FRACTION);
        self.due_ns += (limits.interval >> 32) + (fraction >> 32);
        self.due_fraction = fraction & FRACTION;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME: [u8; 60] = [0; 60];

    fn with(limits: Limits) -> Rules {
        Rules::new(limits, 7)
    }

    /// Frames of `pps` for a second, which come in groups of `group` that share a reading of the clock.
    fn second(rules: &mut Rules, pps: f64, group: u64) -> Passed {
        for frame in 0..pps as u64 {
            let last = (frame / group * group + group - 1) as f64;
            rules.pass(0, &FRAME, 5_000_000_000 + (last / pps * 1e9) as u64);
        }
        rules.passed(0)
    }

    #[test]
    fn a_capacity_is_exact_however_the_frames_come() {
        // 300 ns and a third between frames: the fraction counts.
        let interval = (1e9 * 2f64.powi(32) / 3e6) as u64;
        let limits = Limits { interval, tolerance_ns: 1023 * 333, ..Limits::default() };
        for group in [1, 7, 64] {
            let passed = second(&mut with(limits), 4e6, group);
            let over = passed.forwarded as f64 - 3e6;
            assert!((0.0..=1024.0).contains(&over), "{over} more, in groups of {group}");
            assert_eq!(passed.dropped, [0, 0, passed.frames - passed.forwarded, 0, 0]);
            let below = second(&mut with(limits), 2.99e6, group);
            assert_eq!((below.frames, below.forwarded), (2_990_000, 2_990_000), "in groups of {group}");
        }
    }

    #[test]
    fn a_burst_after_a_pause_is_as_long_as_it_says() {
        let limits = Limits { interval: 1000 << 32, tolerance_ns: 63_000, ..Limits::default() };
        let mut rules = with(limits);
        for now in [1_000_000, 9_000_000] {
            assert_eq!((0..100).filter(|_| rules.pass(1, &FRAME, now)).count(), 64);
        }
        assert_eq!(rules.passed(0), Passed::default(), "the other direction has its own");
    }

    #[test]
    fn of_every_ten_frames_of_a_direction_the_tenth_is_lost() {
        let mut rules = with(Limits { drop_every: 10, ..Limits::default() });
        let lost: Vec<usize> = (1..=25).filter(|_| !rules.pass(0, &FRAME, 0)).collect();
        assert_eq!(lost, [10, 20]);
        assert!((1..10).all(|_| rules.pass(1, &FRAME, 0)) && !rules.pass(1, &FRAME, 0));
        let passed = rules.passed(0);
        assert_eq!((passed.frames, passed.bytes, passed.dropped), (25, 25 * 64, [2, 0, 0, 0, 0]));
    }

    #[test]
    fn frames_are_lost_by_chance_as_often_as_it_says() {
        let mut rules = with(Limits { loss: (0.01 * 2f64.powi(32)) as u64, ..Limits::default() });
        let lost = (0..1_000_000).filter(|_| !rules.pass(0, &FRAME, 0)).count();
        assert!((lost as f64 - 10_000.0).abs() < 5.0 * 99.5, "{lost}");
        let mut all = with(Limits { loss: 1 << 32, ..Limits::default() });
        assert!(!(0..1000).any(|_| all.pass(0, &FRAME, 0)));
    }

    #[test]
    fn after_a_stall_nothing_passes_in_either_direction() {
        let mut rules = with(Limits { stall_after: 5, ..Limits::default() });
        let forwarded = (0..20).filter(|number| rules.pass(number % 2, &FRAME, 0)).count();
        assert_eq!((forwarded, rules.passed(0).dropped[3] + rules.passed(1).dropped[3]), (5, 15));
    }

    /// Sends `pps` for two seconds from `from_ns` on; whether the last frame passed.
    fn last_passes(rules: &mut Rules, pps: u64, from_ns: u64) -> bool {
        let each = (0..2 * pps).map(|frame| rules.pass(0, &FRAME, from_ns + frame * SECOND_NS / pps));
        each.last().unwrap()
    }

    #[test]
    fn at_some_rates_it_stalls_and_a_pause_may_end_that() {
        let stall = |low, high, ends_in_pause| {
            let stall = StallRates { low, high, time_ns: SECOND_NS / 2, ends_in_pause };
            with(Limits { stall: Some(stall), ..Limits::default() })
        };
        for (low, high, stalling, sound) in [
            (0, 2_000, &[10, 100, 1_990][..], &[2_010, 50_000][..]),
            (2_000, 0, &[2_010, 100_000], &[10, 1_990]),
            (100, 200, &[105, 190], &[90, 210, 5_000]),
        ] {
            for pps in stalling {
                assert!(!last_passes(&mut stall(low, high, false), *pps, 7), "{pps} in {low}..{high}");
            }
            for pps in sound {
                assert!(last_passes(&mut stall(low, high, false), *pps, 7), "{pps} in {low}..{high}");
            }
        }
        for ends_in_pause in [false, true] {
            let mut rules = stall(0, 2_000, ends_in_pause);
            assert!(!last_passes(&mut rules, 1_000, 7));
            assert!(!rules.pass(1, &FRAME, 2 * SECOND_NS + 7) || ends_in_pause, "no direction passes");
            assert_eq!(last_passes(&mut rules, 5_000, 3 * SECOND_NS), ends_in_pause);
            assert!(rules.passed(0).dropped[4] > 0);
        }
    }

    #[test]
    fn what_another_port_refuses_was_not_forwarded() {
        let mut rules = with(Limits::default());
        assert!((0..5).all(|_| rules.pass(1, &FRAME, 0)));
        let before = rules.passed(1);
        assert!((0..4).all(|_| rules.pass(1, &FRAME, 0)));
        rules.refuse(1, 3);
        let Passed { frames, forwarded, refused, .. } = rules.passed(1).since(&before);
        assert_eq!((frames, forwarded, refused), (4, 1, 3));
    }

    #[test]
    fn broadcasts_pass_and_count_for_nothing() {
        let mut rules = with(Limits { drop_every: 1, ..Limits::default() });
        assert!(rules.pass(0, &[0xff; 60], 0));
        assert_eq!(rules.passed(0), Passed::default());
        assert!(!rules.pass(0, &FRAME, 0));
    }
}
