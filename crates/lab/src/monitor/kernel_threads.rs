//! What kernel threads do: those that are ours enter; how long the others ran on each core leaves.
//!
//! Most kernels do not take a core away from a kernel thread, however urgent the one that waits. A
//! millisecond of a daemon's work on the device's core is a millisecond in which nothing is
//! forwarded, and no other counter shows it.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Read;
use std::mem::MaybeUninit;
use std::time::Duration;

use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{Iter, Link};

#[allow(clippy::all, clippy::pedantic, clippy::undocumented_unsafe_blocks, clippy::unwrap_used)]
mod program {
    include!(concat!(env!("OUT_DIR"), "/kernel_threads.skel.rs"));
}

/// Bytes of `struct ran` in `kernel_threads.bpf.c`.
const RECORD: usize = 16;

/// Reads how long kernel threads have run.
pub(super) struct KernelThreads {
    iterator: Link,
    ours: Vec<i32>,
}

/// How long each thread that is not ours has run, by its id, and the core it ran on last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Ran(BTreeMap<u32, (u32, Duration)>);

impl KernelThreads {
    /// `ours` are not counted. `None` where the kernel does not tell.
    pub(super) fn open(ours: Vec<i32>) -> Option<Self> {
        let mut object = MaybeUninit::uninit();
        let loaded = program::KernelThreadsSkelBuilder::default().open(&mut object).ok()?.load().ok()?;
        let threads = Self { iterator: loaded.progs.threads.attach().ok()?, ours };
        threads.read().map(|_| threads)
    }

    pub(super) fn read(&self) -> Option<Ran> {
        let mut bytes = Vec::new();
        Iter::new(&self.iterator).ok()?.read_to_end(&mut bytes).ok()?;
        Some(parse(&bytes, &self.ours))
    }
}

impl fmt::Debug for KernelThreads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KernelThreads").field("ours", &self.ours).finish_non_exhaustive()
    }
}

fn parse(bytes: &[u8], ours: &[i32]) -> Ran {
    let (records, _) = bytes.as_chunks::<RECORD>();
    let word = |record: &[u8; RECORD], at: usize| {
        record.get(at..).and_then(|rest| rest.first_chunk()).copied().map_or(0, u32::from_ne_bytes)
    };
    let ran = |record: &[u8; RECORD]| {
        let ns = record.last_chunk().copied().map_or(0, u64::from_ne_bytes);
        (word(record, 0), (word(record, 4), Duration::from_nanos(ns)))
    };
    let is_other = |(pid, _): &(u32, _)| !ours.iter().any(|ours| i64::from(*ours) == i64::from(*pid));
    Ran(records.iter().map(ran).filter(is_other).collect())
}

impl Ran {
    /// How long they ran on `core` since `earlier`: all that those did which were there last. A
    /// thread that went elsewhere meanwhile is counted there.
    pub(super) fn since(&self, earlier: &Self, core: usize) -> Duration {
        let here = self.0.iter().filter(|(_, (on, _))| *on as usize == core);
        let passed = |(pid, (_, now)): (&u32, &(u32, Duration))| {
            now.saturating_sub(earlier.0.get(pid).map_or(Duration::ZERO, |(_, then)| *then))
        };
        here.map(passed).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(pid: u32, core: u32, ns: u64) -> Vec<u8> {
        [&pid.to_ne_bytes()[..], &core.to_ne_bytes(), &ns.to_ne_bytes()].concat()
    }

    #[test]
    fn what_others_ran_is_counted_where_they_are() {
        let then = parse(&[record(2, 1, 1_000), record(3, 1, 50), record(9, 1, 7)].concat(), &[9]);
        let now = parse(
            &[record(2, 1, 4_000), record(3, 0, 60), record(5, 1, 500), record(9, 1, 99)].concat(),
            &[9],
        );
        assert_eq!(now.since(&then, 1), Duration::from_nanos(3_500), "2 and the new 5, not ours");
        assert_eq!(now.since(&then, 0), Duration::from_nanos(10));
        assert_eq!(parse(&[1, 2, 3], &[]), Ran::default());
    }

    #[test]
    fn the_kernel_s_threads_are_seen_where_it_tells() {
        let Some(threads) = KernelThreads::open(Vec::new()) else {
            eprintln!("skipped: the kernel does not tell what its threads do");
            return;
        };
        let ran = threads.read().unwrap();
        assert!(ran.0.contains_key(&2), "kthreadd is always there: {ran:?}");
        assert!(!ran.0.contains_key(&std::process::id()));
    }
}
