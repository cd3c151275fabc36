//! Patience with a machine that others share: a measurement enters; its result leaves, or nothing where it
//! failed and the machine was seen not to be at rest, so that the failures say nothing about the program.

use std::cell::RefCell;
use std::fmt;
use std::thread;
use std::time::{Duration, Instant};

use lab::placement::online;
use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;

use super::machine;

/// On a machine that is not at rest what takes long is tried as often at least, and no more after so long.
const ENOUGH: (usize, Duration) = (3, Duration::from_secs(25));
/// How long the cores are watched after each failure.
const WATCHES_MS: [u64; 6] = [100, 500, 1000, 2000, 3000, 3000];
/// A thread that reads the clock over and over is away from its core when it misses as much: ticks and
/// interrupts take less.
const NOTICEABLE: Duration = Duration::from_micros(200);
/// A machine is not at rest where a core is away for longer than this at a time: a tester's queues overflow.
const LONG: Duration = Duration::from_millis(10);
/// Nor is it where a core is away for more than this share of the time.
const SHARE: f64 = 0.02;

/// Repeats a measurement that a busy machine may spoil, with growing pauses, until it holds. Laws that hold
/// on any machine are asserted inside, and fail at once.
///
/// In the pauses the cores are watched. A measurement that never holds fails the test on a machine at rest.
/// On any other it says nothing: then the test is skipped, with the reason said, and there is no result; what takes long
/// is not tried as often. A machine is not at rest either where the program said of every failure that the machine
/// disturbed it: that is what it owes to people, and what is watched here are not all of its reasons, as cores that are
/// slow or far apart.
pub fn eventually<T>(measurement: impl Fn() -> Result<T, String>) -> Option<T> {
    let mut failures = Vec::new();
    let mut cores = vec![Core::default(); online().unwrap().len()];
    let began = Instant::now();
    for watch_ms in WATCHES_MS {
        SAID.take();
        let failure = match measurement() {
            Ok(result) => return Some(result),
            Err(words) => Failure { words, disturbed: SAID.take() },
        };
        eprintln!("not this time: {failure}");
        failures.push(failure);
        let seen = watch(Duration::from_millis(watch_ms));
        cores.iter_mut().zip(seen).for_each(|(core, seen)| core.add(seen));
        let is_enough = failures.len() >= ENOUGH.0 && began.elapsed() > ENOUGH.1;
        if is_enough && excuse(&failures, Core::worst(&cores)).is_ok() {
            break;
        }
    }
    match excuse(&failures, Core::worst(&cores)) {
        Ok(excuse) => eprintln!("skipped: {excuse}"),
        Err(accusation) => panic!("{accusation}"),
    }
    None
}

/// A measurement that did not hold.
pub struct Failure {
    /// Why.
    pub words: String,
    /// What the program said then of how the machine disturbed it.
    pub disturbed: Option<String>,
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&short(&self.words))?;
        self.disturbed.iter().try_for_each(|how| write!(formatter, " ({how})"))
    }
}

/// Why nothing follows from `failures`; the error where the program is to answer for them.
pub fn excuse(failures: &[Failure], worst: Core) -> Result<String, String> {
    let last = failures.last().map(Failure::to_string).unwrap_or_default();
    if !worst.is_at_rest() {
        return Ok(format!("the machine was not at rest ({worst}), so that nothing follows from {last}"));
    }
    if failures.iter().all(|failure| failure.disturbed.is_some()) {
        return Ok(format!("the machine disturbed every run, so that nothing follows from {last}"));
    }
    let all: Vec<_> = failures.iter().map(|failure| failure.words.as_str()).collect();
    Err(format!("failed {} times on a machine at rest ({worst}):\n{}", all.len(), all.join("\n")))
}

/// The beginning of what was said.
fn short(words: &str) -> String {
    words.lines().next().unwrap_or_default().chars().take(300).collect()
}

thread_local! {
    /// What the program said last, in this thread, of how the machine disturbed it.
    static SAID: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Takes notice of what the program said to people.
pub fn hear(stderr: &str) {
    let note = stderr.lines().find_map(|line| Some(short(line.split_once(DISTURBED)?.1)));
    if note.is_some() {
        SAID.set(note);
    }
}

/// How the program says that the machine disturbed it.
const DISTURBED: &str = "note: interference from the host during this run ";

/// What a thread that never sleeps sees of its core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Core {
    pub time: Duration,
    /// How much of it the thread was not running.
    pub away: Duration,
    /// The longest time of that without a break.
    pub longest: Duration,
}

impl Core {
    /// Notes how long it took from one reading of the clock to the next.
    pub fn note(&mut self, gap: Duration) {
        self.time += gap;
        if gap > NOTICEABLE {
            self.away += gap;
            self.longest = self.longest.max(gap);
        }
    }

    /// Adds what was seen another time.
    pub fn add(&mut self, other: Self) {
        self.time += other.time;
        self.away += other.away;
        self.longest = self.longest.max(other.longest);
    }

    pub fn is_at_rest(&self) -> bool {
        self.longest <= LONG && self.share() <= SHARE
    }

    /// The one that was away most, by the limits to both.
    pub fn worst(cores: &[Self]) -> Self {
        let by_limits = |core: &Self| f64::max(core.share() / SHARE, core.longest.div_duration_f64(LONG));
        cores.iter().copied().max_by(|a, b| by_limits(a).total_cmp(&by_limits(b))).unwrap_or_default()
    }

    /// How much of the time the thread was not running, 0 to 1.
    pub fn share(&self) -> f64 {
        if self.time.is_zero() { 0.0 } else { self.away.div_duration_f64(self.time) }
    }
}

impl fmt::Display for Core {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { time, away, longest } = self;
        let ms = |time: &Duration| time.as_secs_f64() * 1e3;
        write!(
            formatter,
            "a core was away for {:.1} of {:.0} ms, {:.1} ms at once",
            ms(away),
            ms(time),
            ms(longest)
        )
    }
}

/// Keeps all cores busy for so long, while no other test measures, and tells what was seen of each.
pub fn watch(time: Duration) -> Vec<Core> {
    let _alone = machine();
    let watchers = online().unwrap().into_iter().map(|core| thread::spawn(move || watch_one(core, time)));
    let watchers: Vec<_> = watchers.collect();
    watchers.into_iter().map(|watcher| watcher.join().unwrap()).collect()
}

fn watch_one(core: usize, time: Duration) -> Core {
    let mut cores = CpuSet::new();
    cores.set(core).unwrap();
    sched_setaffinity(Pid::from_raw(0), &cores).unwrap();
    let mut seen = Core::default();
    let mut last = Instant::now();
    while seen.time < time {
        let now = Instant::now();
        seen.note(now - last);
        last = now;
    }
    seen
}
