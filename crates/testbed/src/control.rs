//! Where the controlling thread runs: beside the generator, before everyone else, while a load
//! test goes on; where it ran before, afterwards.

use engine::xdp::precedence::{self, Rank};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

/// The calling thread's place, until this is dropped. Never on the device's core: what it does
/// there would be the device's loss. It takes microseconds of the generator's instead.
pub struct Control {
    before: Option<CpuSet>,
}

impl Control {
    /// Moves the calling thread to the generator's `cores`. What is refused is done without:
    /// samples are then read a little later, and are as exact.
    pub fn beside(cores: &[usize]) -> Self {
        let this = Pid::from_raw(0);
        let others = lab::placement::online().is_ok_and(|online| online.len() > cores.len());
        let before = sched_getaffinity(this).ok();
        let mut wanted = CpuSet::new();
        let _ = cores
            .iter()
            .try_for_each(|core| wanted.set(*core))
            .and_then(|()| sched_setaffinity(this, &wanted));
        precedence::take(Rank::Control, others);
        Self { before }
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        precedence::give_back();
        if let Some(before) = &self.before {
            let _ = sched_setaffinity(Pid::from_raw(0), before);
        }
    }
}
