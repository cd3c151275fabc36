//! The judgement: times and shares of one stretch enter, what disturbed it leaves. Pure.

use std::time::Duration;

use crate::disturbance::Disturbance;
use crate::interruptions::{Interruption, TaskName};

/// A part of a span of time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Share {
    /// The part.
    pub part: Duration,
    /// The whole.
    pub of: Duration,
}

impl Share {
    /// As a ratio, 0 to 1. Of no time it is 0. (The kernel counts a wait when it ends, so a stretch
    /// can have more of it than it is long.)
    #[must_use]
    pub fn ratio(self) -> f64 {
        if self.of.is_zero() { 0.0 } else { (self.part.as_secs_f64() / self.of.as_secs_f64()).min(1.0) }
    }
}

/// What happened in a stretch of time beside Linerate's own work.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Conditions {
    /// How long it was.
    pub duration: Duration,
    /// Each core watched, in order.
    pub cores: Vec<CoreConditions>,
    /// By how much clocks that should go alike went apart: `CLOCK_MONOTONIC` from
    /// `CLOCK_MONOTONIC_RAW` (somebody corrects the time) or from `CLOCK_BOOTTIME` (the machine
    /// was suspended).
    pub clock_jump: Duration,
    /// When the cores did not do our work, as far as it was over after the stretch began. `None` where the
    /// kernel does not tell, or there was more than it keeps.
    pub interruptions: Option<Vec<Interruption>>,
}

/// What happened on one core.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CoreConditions {
    /// The core.
    pub core: usize,
    /// What the hypervisor took. Where the kernel tells it in ticks of 10 ms only, of the last
    /// second if that is longer than the stretch. `None` where the kernel does not tell.
    pub steal: Option<Share>,
    /// How long the core was busy with the work of others. Of the stretch, or of the last second if
    /// that is longer, since the kernel counts in ticks of 10 ms.
    pub other_work: Option<Share>,
    /// How long kernel threads that are not Linerate's ran there; `None` where the kernel does not tell.
    pub kernel_threads: Option<Share>,
    /// How long one of Linerate's threads waited for the core while the work of others was done there.
    pub waited: Share,
    /// The core's speed as a share of what it usually is, in this process so far: of the fastest
    /// tenth of all timings. `None` if it was not timed.
    pub speed_index: Option<f64>,
    /// The longest that the core let a thread wait that had slept.
    pub wake_delay: Duration,
    /// How quickly a cache line went between the first core and this one and back, as a share of the usual
    /// speed in this process so far: 0.25 is four times the usual time. `None` for the first core, or if that was
    /// not timed.
    pub nearness: Option<f64>,
    /// How long the core had nothing to do; `None` where the kernel does not tell, or the stretch is too short for its
    /// ticks.
    pub idle: Option<Share>,
    /// Whether nothing was lost unseen because threads there were slow. Frames that a thread which only sends is too slow
    /// for are counted as unsent; those that a device is too slow for may be counted when its full queue refuses them.
    pub slowness_is_counted: bool,
    /// The other program's or the kernel's thread that had the core longest, and how long; `None` if none had it for
    /// 50 µs at a time, or where the kernel does not tell.
    pub other_task: Option<(TaskName, Duration)>,
}

/// How much of each kind is not yet a disturbance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// Share of the time that a hypervisor may take, 0 to 1.
    pub steal: f64,
    /// Share of the time for other work, 0 to 1. What it does to Linerate's threads shows as waiting; and
    /// waking a device's thread 200,000 times a second takes a fifth of its core, which the kernel books on no
    /// thread. So other work is noted by itself only where it takes most of a core.
    pub other_work: f64,
    /// Share of the time that Linerate's threads may wait, 0 to 1.
    pub waited: f64,
    /// By how much the speed may differ from the usual one, as a share of it, 0 to 1.
    pub speed: f64,
    /// How long a thread may wait for its core when it wakes.
    pub wake_delay: Duration,
    /// How quickly cache lines must go between cores, as a share of the usual speed, 0 to 1. (The halves of one
    /// physical core are nearer to each other than two cores that share a cache, by less than that.)
    pub nearness: f64,
    /// By how much clocks may go apart, as a share of the time. (NTP corrects by 0.05 % at most.)
    pub clock: f64,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            steal: 0.01,
            other_work: 0.5,
            waited: 0.01,
            speed: 0.1,
            wake_delay: Duration::from_millis(10),
            nearness: 0.5,
            clock: 0.001,
        }
    }
}

/// Clocks may go apart by this much however short the time, since they are not read at once.
const CLOCK_READING: Duration = Duration::from_micros(50);
/// A single tick of stolen time may have gathered for long before.
const ONE_TICK: Duration = Duration::from_millis(10);
/// How late a sleeping thread may wake on a quiet core.
const WAKING: Duration = Duration::from_micros(100);
/// The share of the time that a core must have been idle, so that it did all its work, however slow it was.
const TIME_TO_SPARE: f64 = 0.5;

impl Conditions {
    /// Adds the `time` in which a thread on `core` polled and found nothing: the kernel took that for work. What was taken
    /// from the core meanwhile may be part of that, since a thread does not notice, and is left out.
    pub fn add_idle_polling(&mut self, core: usize, time: Duration) {
        for core in self.cores.iter_mut().filter(|it| it.core == core) {
            let taken = core.steal.map_or(0.0, Share::ratio) + core.waited.ratio();
            if let Some(idle) = &mut core.idle {
                idle.part += time.saturating_sub(self.duration.mul_f64(taken));
            }
        }
    }

    /// Nothing was lost on `core` because the threads there were slow: what is lost so is counted, and none was.
    pub fn kept_up(&mut self, core: usize) {
        self.cores.iter_mut().filter(|it| it.core == core).for_each(|it| it.slowness_is_counted = true);
    }

    /// The same without what slow and far cores cannot have cost under a load that was paced: those whose slowness is
    /// counted elsewhere, and those that had time to spare. (A host gives cores that idle less power, or moves them
    /// apart; they are all that a low load needs.)
    #[must_use]
    pub fn paced(mut self) -> Self {
        let first_kept_up = self.cores.first().is_some_and(CoreConditions::lost_nothing_by_slowness);
        for core in self.cores.iter_mut().filter(|core| core.lost_nothing_by_slowness()) {
            core.speed_index = None;
            // That is between two cores.
            core.nearness = core.nearness.filter(|_| !first_kept_up);
        }
        self
    }

    /// The share of the frames whose loss all this may account for, 0 to 1: an upper estimate. A
    /// core that stands still for a moment loses what comes meanwhile, and when it is overloaded
    /// by what waited, as much once more.
    #[must_use]
    pub fn cost(&self, bounds: &Bounds) -> f64 {
        let standing: f64 = self.cores.iter().map(|core| core.cost(self.duration, bounds)).sum();
        (2.0 * standing).min(1.0).max(self.lasting_cost(bounds))
    }

    /// The part of that which lasted all the time, unlike interruptions: slow cores; clocks that
    /// cannot be trusted and cores that are far apart, of which nobody can say what they cost.
    #[must_use]
    pub fn lasting_cost(&self, bounds: &Bounds) -> f64 {
        if self.clock_jump > self.clock_bound(bounds) || self.cores.iter().any(|core| core.is_far(bounds)) {
            return 1.0;
        }
        (2.0 * self.cores.iter().map(|core| core.slowness(bounds)).sum::<f64>()).min(1.0)
    }

    fn clock_bound(&self, bounds: &Bounds) -> Duration {
        self.duration.mul_f64(bounds.clock.clamp(0.0, 1.0)) + CLOCK_READING
    }

    /// What exceeds the bounds, core by core.
    #[must_use]
    pub fn disturbances(&self, bounds: &Bounds) -> Vec<Disturbance> {
        let clock = (self.clock_jump > self.clock_bound(bounds))
            .then_some(Disturbance::Clock { jump: self.clock_jump });
        self.cores.iter().flat_map(|core| core.disturbances(self.duration, bounds)).chain(clock).collect()
    }
}

impl CoreConditions {
    /// The share of the time in which Linerate's work may have stood still here, or the share of the
    /// work that a slow core did not do.
    fn cost(&self, duration: Duration, bounds: &Bounds) -> f64 {
        let steal = self.steal.map_or(0.0, Share::ratio);
        let kernel = self.kernel_threads.map_or(0.0, Share::ratio);
        let delay = self.wake_delay.saturating_sub(WAKING).as_secs_f64() / duration.as_secs_f64().max(1e-3);
        // What delayed the probe may be seen in the other two as well.
        (steal + kernel + self.waited.ratio()).max(delay) + self.slowness(bounds)
    }

    /// The share of the work that a core did not do because it was slower than usual.
    fn slowness(&self, bounds: &Bounds) -> f64 {
        self.speed_index.filter(|index| *index < 1.0 - bounds.speed).map_or(0.0, |index| 1.0 - index)
    }

    fn lost_nothing_by_slowness(&self) -> bool {
        self.slowness_is_counted || self.idle.is_some_and(|idle| idle.ratio() >= TIME_TO_SPARE)
    }

    fn is_far(&self, bounds: &Bounds) -> bool {
        self.nearness.is_some_and(|nearness| nearness < bounds.nearness)
    }

    /// The thread to name for a share of the time: the one that had at least half of it.
    fn task_of(&self, share: f64, duration: Duration) -> Option<TaskName> {
        let (task, time) = self.other_task?;
        (Share { part: time, of: duration }.ratio() >= share / 2.0).then_some(task)
    }

    fn disturbances(&self, duration: Duration, bounds: &Bounds) -> impl Iterator<Item = Disturbance> {
        let core = self.core;
        let task = |share| self.task_of(share, duration);
        let above = |share: Share, bound: f64| Some(share.ratio()).filter(|ratio| *ratio > bound);
        let steal = self.steal.filter(|steal| steal.part > ONE_TICK);
        let steal = steal.and_then(|steal| above(steal, bounds.steal));
        let other_work = self.other_work.filter(|work| work.part > ONE_TICK * 2);
        let other_work = other_work.and_then(|work| above(work, bounds.other_work));
        let waited = above(self.waited, bounds.waited);
        let index = self.speed_index.filter(|index| (index - 1.0).abs() > bounds.speed);
        let delay = Some(self.wake_delay).filter(|delay| *delay > bounds.wake_delay);
        [
            steal.map(|share| Disturbance::Steal { core, share }),
            other_work.map(|share| Disturbance::OtherWork { core, share, task: task(share) }),
            waited.map(|share| Disturbance::Waited { core, share, task: task(share) }),
            index.map(|index| Disturbance::Speed { core, index }),
            delay.map(|delay| Disturbance::WakeDelay { core, delay }),
            self.nearness.filter(|_| self.is_far(bounds)).map(|nearness| Disturbance::Far { core, nearness }),
        ]
        .into_iter()
        .flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn quiet() -> CoreConditions {
        let share = |part| Share { part: ms(part), of: ms(1000) };
        CoreConditions {
            core: 1,
            steal: Some(share(10)),
            other_work: Some(share(20)),
            kernel_threads: Some(share(10)),
            waited: share(10),
            speed_index: Some(0.91),
            wake_delay: ms(10),
            nearness: Some(0.6),
            idle: None,
            slowness_is_counted: false,
            other_task: None,
        }
    }

    #[test]
    fn a_share_is_of_the_whole_at_most() {
        let share = |part, of| Share { part: ms(part), of: ms(of) }.ratio();
        assert_eq!((share(1, 4), share(5, 4), share(1, 0)), (0.25, 1.0, 0.0));
    }

    fn reasons(core: CoreConditions) -> Vec<String> {
        let conditions =
            Conditions { duration: ms(1000), cores: vec![core], clock_jump: ms(1), interruptions: None };
        conditions.disturbances(&Bounds::default()).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_is_within_the_bounds_disturbs_nothing() {
        assert!(reasons(quiet()).is_empty());
        assert!(reasons(CoreConditions { speed_index: Some(1.09), ..quiet() }).is_empty());
        let unknown = CoreConditions { steal: None, other_work: None, speed_index: None, ..quiet() };
        assert!(reasons(unknown).is_empty());
    }

    #[test]
    fn one_stolen_tick_proves_nothing_however_short_the_time() {
        let steal =
            |part, of| CoreConditions { steal: Some(Share { part: ms(part), of: ms(of) }), ..quiet() };
        assert!(reasons(steal(10, 100)).is_empty());
        assert_eq!(reasons(steal(20, 100)), ["the hypervisor took 20 % of core 1"]);
    }

    #[test]
    fn the_cost_is_what_stood_still_twice() {
        let core = CoreConditions { wake_delay: ms(0), speed_index: Some(1.0), ..quiet() };
        let conditions =
            Conditions { duration: ms(1000), cores: vec![core], clock_jump: ms(0), interruptions: None };
        // 10 ms each of stolen time, kernel threads and waiting.
        assert!((conditions.cost(&Bounds::default()) - 0.06).abs() < 1e-9);
        assert!(conditions.lasting_cost(&Bounds::default()).abs() < 1e-9);
        let slow = CoreConditions { speed_index: Some(0.8), ..quiet() };
        let slow = Conditions { cores: vec![slow], ..conditions.clone() };
        assert!((slow.lasting_cost(&Bounds::default()) - 0.4).abs() < 1e-9);
        let far = CoreConditions { nearness: Some(0.25), ..quiet() };
        let far = Conditions { cores: vec![far], ..conditions.clone() };
        assert!((far.lasting_cost(&Bounds::default()) - 1.0).abs() < 1e-9);
        assert!((far.cost(&Bounds::default()) - 1.0).abs() < 1e-9);
        let jumped = Conditions { clock_jump: ms(100), ..conditions };
        assert!((jumped.cost(&Bounds::default()) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_core_with_time_to_spare_costs_a_paced_load_nothing_nor_does_one_whose_slowness_is_counted() {
        let slow_and_far = CoreConditions { speed_index: Some(0.7), nearness: Some(0.2), ..quiet() };
        let lasting = |core: CoreConditions| {
            let conditions = Conditions { duration: ms(1000), cores: vec![core], ..Conditions::default() };
            let bounds = Bounds::default();
            let paced = conditions.clone().paced();
            assert!(conditions.lasting_cost(&bounds) >= 1.0 && conditions.disturbances(&bounds).len() == 2);
            (paced.lasting_cost(&bounds) > 0.0, paced.disturbances(&bounds).len())
        };
        let idle = |part| CoreConditions {
            idle: Some(Share { part: ms(part), of: ms(1000) }),
            ..slow_and_far.clone()
        };
        assert_eq!(lasting(idle(500)), (false, 0));
        assert_eq!(lasting(idle(490)), (true, 2));
        assert_eq!(lasting(CoreConditions { slowness_is_counted: true, ..idle(0) }), (false, 0));
        assert_eq!(lasting(CoreConditions { idle: None, ..slow_and_far.clone() }), (true, 2));
        // What takes a core away has its cost all the same.
        let stolen = CoreConditions { steal: Some(Share { part: ms(200), of: ms(1000) }), ..idle(600) };
        let conditions = Conditions { duration: ms(1000), cores: vec![stolen], ..Conditions::default() };
        assert!(conditions.paced().cost(&Bounds::default()) > 0.4);
    }

    #[test]
    fn a_core_whose_threads_poll_and_find_nothing_has_time_to_spare() {
        let share = |part| Share { part: ms(part), of: ms(1000) };
        let polls = CoreConditions {
            speed_index: Some(0.7),
            steal: Some(share(200)),
            waited: share(50),
            idle: Some(share(10)),
            ..quiet()
        };
        let found_nothing_for = |time| {
            let mut conditions =
                Conditions { duration: ms(1000), cores: vec![polls.clone()], ..Conditions::default() };
            conditions.add_idle_polling(1, ms(time));
            conditions.add_idle_polling(7, ms(1000));
            conditions.paced().lasting_cost(&Bounds::default()) == 0.0
        };
        assert!(!found_nothing_for(0));
        // A quarter of the time may have been taken from a thread that saw nothing to do.
        assert!(found_nothing_for(740) && !found_nothing_for(739));
        let mut conditions =
            Conditions { duration: ms(1000), cores: vec![polls.clone()], ..Conditions::default() };
        conditions.kept_up(1);
        assert_eq!(conditions.paced().lasting_cost(&Bounds::default()), 0.0);
    }

    #[test]
    fn each_reason_is_told_with_its_number() {
        let share = |part| Share { part: ms(part), of: ms(1000) };
        let disturbed = CoreConditions {
            core: 0,
            steal: Some(share(40)),
            other_work: Some(share(623)),
            kernel_threads: Some(share(10)),
            waited: share(15),
            speed_index: Some(0.714),
            wake_delay: Duration::from_micros(12_345),
            nearness: Some(0.24),
            idle: Some(share(300)),
            slowness_is_counted: false,
            other_task: Some((TaskName::named("kdamond.0"), ms(8))),
        };
        let conditions =
            Conditions { duration: ms(1000), cores: vec![disturbed], clock_jump: ms(3), interruptions: None };
        let reasons = conditions.disturbances(&Bounds::default());
        let reasons: Vec<String> = reasons.iter().map(ToString::to_string).collect();
        assert_eq!(
            reasons,
            [
                "the hypervisor took 4.0 % of core 0",
                "core 0 did other work for 62 % of the time",
                "Linerate's threads were runnable but not running on core 0 for 1.5 % of the time (another task had it, mostly kdamond.0)",
                "core 0 ran 29 % slower than normal (throttling or SMT neighbour)",
                "a thread on core 0 woke 12.3 ms late",
                "core-to-core latency (cache-line bounce) to core 0 was 4.2× normal: the hypervisor probably moved a vCPU",
                "two clocks of the host drifted apart by 3.0ms",
            ]
        );
    }

    #[test]
    fn a_thread_is_named_where_it_had_at_least_half_of_the_time() {
        let waited = |other_task| {
            reasons(CoreConditions { waited: Share { part: ms(20), of: ms(1000) }, other_task, ..quiet() })
        };
        let words = "Linerate's threads were runnable but not running on core 1 for 2.0 % of the time (another task had it";
        assert_eq!(waited(Some((TaskName::named("sh"), ms(10)))), [format!("{words}, mostly sh)")]);
        assert_eq!(waited(Some((TaskName::named("sh"), ms(9)))), [format!("{words})")]);
        assert_eq!(waited(None), [format!("{words})")]);
    }
}
