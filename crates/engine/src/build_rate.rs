//! How fast frames are built: a frame table and cores enter, what each core built leaves.
//!
//! Nothing is sent. This is what the processor and its memory allow, the most that any engine in
//! user space could offer.

use std::sync::Barrier;
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use traffic::FrameTable;

use crate::Error;
use crate::builder::{Builder, Stamp};
use crate::live::monotonic;
use crate::xdp::precedence;

/// Frames that share a reading of the clock, as engines in user space send them.
pub const BURST: usize = 64;
/// Bytes that a processor fetches at once.
const CACHE_LINE: usize = 64;

/// What one core built.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Built {
    /// Frames.
    pub frames: u64,
    /// How long it took.
    pub seconds: f64,
}

impl Built {
    /// Frames a second.
    #[must_use]
    pub fn pps(&self) -> f64 {
        self.frames as f64 / self.seconds.max(f64::MIN_POSITIVE)
    }
}

/// Builds the frames of `table` in memory on each of `cores` at once, for `duration`, each its share
/// of the rows, and says what each core did.
///
/// # Errors
/// [`Error::Refused`] when a core cannot be used, or there are fewer rows than cores.
pub fn in_memory(table: &FrameTable, cores: &[usize], duration: Duration) -> Result<Vec<Built>, Error> {
    let longest = table.rows.iter().map(|row| usize::from(row.length)).max().unwrap_or(0);
    // An odd number of lines apart, so that the buffers' first lines do not compete for one place.
    let stride = (longest.div_ceil(CACHE_LINE) | 1) * CACHE_LINE;
    on_each(table, cores, duration, vec![(); cores.len()], |(), mut builder| {
        let mut memory = vec![table.fill; stride * BURST];
        Ok(move || {
            let stamp = Stamp { interval: 0, departure: monotonic()? };
            for buffer in memory.chunks_exact_mut(stride) {
                builder.build(buffer, stamp);
            }
            std::hint::black_box(&mut memory);
            Ok(BURST)
        })
    })
}

/// On each of `cores` at once, runs for `duration` what `prepare` makes of what the core is `given` and its
/// builder; it says each time how many frames it built.
pub(crate) fn on_each<Given: Send, Work: FnMut() -> Result<usize, Error>>(
    table: &FrameTable,
    cores: &[usize],
    duration: Duration,
    given: Vec<Given>,
    prepare: impl Fn(Given, Builder) -> Result<Work, Error> + Sync,
) -> Result<Vec<Built>, Error> {
    if given.len() < cores.len() {
        return Err(Error::Failed(format!(
            "{} cores have {} queues; this is a defect",
            cores.len(),
            given.len()
        )));
    }
    if cores.len() > table.rows.len() {
        return Err(Error::Refused(format!(
            "{} cores share a table of {} frames: use fewer cores, or a profile with more flows",
            cores.len(),
            table.rows.len()
        )));
    }
    let others = thread::available_parallelism().is_ok_and(|online| online.get() > cores.len());
    let ready = Barrier::new(cores.len());
    let one = |place: usize, core: usize, given: Given| {
        let prepared = pin(core).and_then(|()| prepare(given, Builder::new(table, place, cores.len())));
        let turns = precedence::in_turns(others);
        ready.wait();
        let _turns = turns?;
        run_for(duration, prepared?)
    };
    thread::scope(|scope| {
        let one = &one;
        let places = cores.iter().enumerate().zip(given);
        let threads = places.map(|((place, core), given)| scope.spawn(move || one(place, *core, given)));
        join(threads.collect())
    })
}

/// What the threads leave when all have ended.
pub(crate) fn join(threads: Vec<ScopedJoinHandle<'_, Result<Built, Error>>>) -> Result<Vec<Built>, Error> {
    let panicked = || Err(Error::Failed("a thread panicked; this is a defect".into()));
    let ended: Vec<_> =
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| panicked())).collect();
    ended.into_iter().collect()
}

fn run_for(duration: Duration, mut work: impl FnMut() -> Result<usize, Error>) -> Result<Built, Error> {
    let begun = Instant::now();
    let mut frames = 0;
    loop {
        frames += work()? as u64;
        let elapsed = begun.elapsed();
        if elapsed >= duration {
            return Ok(Built { frames, seconds: elapsed.as_secs_f64() });
        }
    }
}

/// Keeps the calling thread on `core`.
///
/// # Errors
/// [`Error::Refused`] when there is no such core, or it may not be used.
pub fn pin(core: usize) -> Result<(), Error> {
    scheduling::pin(core)
        .map_err(|error| Error::Refused(format!("cannot run on core {core}: {error}; is it online?")))
}

#[cfg(test)]
mod tests {
    use traffic::{Directions, Endpoint, Endpoints, Profile, Tunables};
    use wire::MacAddress;

    use super::*;

    fn table(vm: &str) -> FrameTable {
        let mac = MacAddress([2, 0, 0, 0, 0, 1]);
        let tunables = Tunables { vm: vm.parse().ok(), ..Tunables::default() };
        let endpoints = Endpoints([Endpoint { source: mac, destination: mac }; 2]);
        Profile::builtin("bench", &tunables).unwrap().table(&endpoints, Directions::Forward)
    }

    #[test]
    fn every_core_builds_for_as_long_as_was_asked() {
        let duration = Duration::from_millis(20);
        let built = in_memory(&table("var2"), &[0], duration).unwrap();
        assert_eq!(built.len(), 1);
        assert!(built[0].seconds >= 0.02 && built[0].frames >= BURST as u64, "{built:?}");
        assert!((built[0].pps() * built[0].seconds - built[0].frames as f64).abs() < 1.0);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let refused =
            |vm, cores: &[usize]| in_memory(&table(vm), cores, Duration::ZERO).unwrap_err().to_string();
        assert!(refused("none", &[0, 0]).contains("fewer cores"));
        assert!(refused("var2", &[1000]).contains("core 1000"));
    }
}
