//! What the hypervisor takes, to the nanosecond: cores enter, how long each was taken away leaves.
//!
//! The scheduler keeps that clock, and a kernel program reads it. Where the kernel does not let it
//! (no type information, no permission, no hypervisor's clock), the ticks of `/proc/stat` remain.

use std::fmt;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::thread;
use std::time::Duration;

use libbpf_rs::libbpf_sys::{bpf_prog_test_run_opts, bpf_test_run_opts};
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;

#[allow(clippy::all, clippy::pedantic, clippy::undocumented_unsafe_blocks, clippy::unwrap_used)]
mod program {
    include!(concat!(env!("OUT_DIR"), "/steal.skel.rs"));
}

/// Cores that the program knows, as in `steal.bpf.c`.
const MAX_CORES: usize = 512;

/// Reads the clocks of some cores.
pub(super) struct StealClocks {
    read: OwnedFd,
    /// For each core two words: its run queue, and the clock.
    variables: MapHandle,
    cores: Vec<usize>,
}

impl StealClocks {
    /// `None` where the kernel does not tell.
    pub(super) fn open(cores: &[usize]) -> Option<Self> {
        if cores.iter().any(|core| *core >= MAX_CORES) {
            return None;
        }
        let mut object = MaybeUninit::uninit();
        let loaded = program::StealSkelBuilder::default().open(&mut object).ok()?.load().ok()?;
        let find = loaded.progs.find.as_fd();
        let found = thread::scope(|scope| {
            // On a thread of its own, which moves from core to core.
            let found = scope.spawn(|| cores.iter().all(|core| go_to(*core) && run(&find) == Some(0)));
            found.join().unwrap_or(false)
        });
        let clocks = Self {
            read: loaded.progs.read.as_fd().try_clone_to_owned().ok()?,
            variables: MapHandle::try_from(&loaded.maps.bss).ok()?,
            cores: cores.to_vec(),
        };
        found.then_some(clocks).filter(|clocks| clocks.read().is_some())
    }

    /// How long each core was taken away since the machine started, in the order of the cores.
    pub(super) fn read(&self) -> Option<Vec<Duration>> {
        run(&self.read)?;
        let variables = self.variables.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY).ok()??;
        let clock = |core: &usize| {
            let bytes = variables.get(core * 16 + 8..)?.first_chunk()?;
            Some(Duration::from_nanos(u64::from_ne_bytes(*bytes)))
        };
        self.cores.iter().map(clock).collect()
    }
}

impl fmt::Debug for StealClocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StealClocks").field("cores", &self.cores).finish_non_exhaustive()
    }
}

/// Moves the calling thread.
fn go_to(core: usize) -> bool {
    let mut cores = CpuSet::new();
    cores.set(core).and_then(|()| sched_setaffinity(Pid::from_raw(0), &cores)).is_ok()
}

/// Runs a program, and returns what it returns.
fn run(program: &impl AsRawFd) -> Option<u32> {
    let mut options =
        bpf_test_run_opts { sz: size_of::<bpf_test_run_opts>() as _, ..bpf_test_run_opts::default() };
    // SAFETY: the descriptor is open, and the options say their own size and outlive the call.
    let result = unsafe { bpf_prog_test_run_opts(program.as_raw_fd(), &raw mut options) };
    (result == 0).then_some(options.retval)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::usage;

    #[test]
    fn the_clocks_agree_with_the_ticks() {
        let Some(clocks) = StealClocks::open(&[0]) else {
            eprintln!("skipped: the kernel does not tell what the hypervisor takes");
            return;
        };
        let stat = std::fs::read_to_string("/proc/stat").unwrap();
        let ticks = usage::parse_stat(&stat, 0).unwrap().steal;
        let told = clocks.read().unwrap()[0].as_secs_f64() * 100.0;
        assert!((told - ticks as f64).abs() <= 3.0, "{told} ticks, /proc/stat says {ticks}");
        assert!(StealClocks::open(&[MAX_CORES]).is_none());
    }
}
