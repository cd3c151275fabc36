//! What is around a strategy: the machine's noise, the device's core, nodes and counters, and the person who steers. A
//! strategy asks, and what is known here leaves.

use engine::Load;
use results::record::{DeviceCounted, NodeRuntimes};

use crate::{Bursts, Noise};

/// Answers what a strategy asks while it runs, and resets the device. By default nothing is known.
pub trait Surroundings {
    /// Who else knows: what is not answered here is asked there.
    fn beyond(&mut self) -> Option<&mut dyn Surroundings> {
        None
    }

    /// What the machine did since the last call beside the measurement, as far as that may have cost frames of this
    /// load; of [`Load::Idle`], what a load that begins now must expect. Asked at the beginning of
    /// each phase and of each trial of a search, where the answer is not used, and at the end of
    /// each interval; but of intervals that are shorter than 90 ms, only at the end of some.
    fn noise(&mut self, load: Load) -> Noise {
        self.beyond().map(|next| next.noise(load)).unwrap_or_default()
    }

    /// Resets the device, as RFC 2544 section 26.6 asks for. Returns once that is under way.
    ///
    /// # Errors
    /// Why it cannot be reset, with the remedy.
    fn reset(&mut self) -> Result<(), String> {
        let unknown = || Err("Linerate does not know how to reset this device".into());
        self.beyond().map_or_else(unknown, Surroundings::reset)
    }

    /// What the device itself has counted since it was started, one for each direction, where it
    /// counts. Asked in a soak when an interval ends.
    fn device_counters(&mut self) -> Option<Vec<DeviceCounted>> {
        self.beyond()?.device_counters()
    }

    /// Frames of all directions that a reference device has lost by its rules since it was started;
    /// `None` of any other device. Asked before and after each trial of a search: what else was lost found
    /// a queue full, because the machine kept its core or the tester's from working.
    fn lost_by_rules(&mut self) -> Option<u64> {
        self.beyond()?.lost_by_rules()
    }

    /// How frames came at the device since it was started, both directions together; `None` of one that does
    /// not know. Asked before and after each trial of a search.
    fn bursts(&mut self) -> Option<Bursts> {
        self.beyond()?.bursts()
    }

    /// What the nodes of the device have done since it started, where it is a graph of them.
    fn nodes(&mut self) -> Option<NodeRuntimes> {
        self.beyond()?.nodes()
    }

    /// The load that a person wants in each direction in place of `pps`, in frames a second; 0 is a pause. Asked before
    /// each interval of a load that can be steered.
    fn steer(&mut self, pps: f64) -> f64 {
        self.beyond().map_or(pps, |next| next.steer(pps))
    }

    /// How busy the DUT's core was since the last call, 0 to 1, where that is known. Asked at
    /// the beginning of each phase, where the answer is not used, and at the end of each
    /// interval.
    fn dut_core_busy(&mut self) -> Option<f64> {
        self.beyond()?.dut_core_busy()
    }
}
