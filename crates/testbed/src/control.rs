//! Where the controlling thread runs: beside the generator, before everyone else, while a load
//! test goes on; where it ran before, afterwards.

use engine::xdp::precedence;
use nix::unistd::Pid;
use scheduling::Cores;

/// The calling thread's place, until this is dropped. Never on the device's core: what it does
/// there would be the device's loss. It takes microseconds of the generator's instead.
pub struct Control {
    before: Option<Cores>,
}

impl Control {
    /// Moves the calling thread to the generator's `cores`. What is refused is done without:
    /// samples are then read a little later, and are as exact.
    pub fn beside(cores: &[usize]) -> Self {
        let this = Pid::from_raw(0);
        let others = lab::placement::online().is_ok_and(|online| online.len() > cores.len());
        let before = Cores::of_thread(this).ok();
        let _ = Cores::of(cores).and_then(|wanted| wanted.keep(this));
        precedence::control(others);
        Self { before }
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        precedence::give_back();
        if let Some(before) = &self.before {
            let _ = before.keep(Pid::from_raw(0));
        }
    }
}
