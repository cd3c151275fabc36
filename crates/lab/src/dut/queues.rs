//! Receive queues of a device's interfaces: the parameters `queues` and `cores` enter; how many
//! there are and where each is worked on leaves.
//!
//! A veth has no hash of flows: a frame takes the queue of the core that sent it, counted modulo the
//! queues. So one generating core loads one queue, and several cores several.

use super::spec::Parameters;
use super::{Parameter, SpecError};

/// More than any machine has cores to send from.
const MAX: u32 = 64;

pub(super) const QUEUES: Parameter = Parameter {
    key: "queues",
    values: "1 to 64",
    meaning: "receive queues of each interface, of which each generating core feeds one; 1 unless given",
};

pub(super) const CORES: Parameter = Parameter {
    key: "cores",
    values: "cores with + between, as in 0+1",
    meaning: "where the queues are worked on, in turn; on the device's core unless given",
};

/// The receive queues of each interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Queues {
    pub count: u32,
    /// The cores that they are worked on, in turn; empty for the device's.
    pub cores: Vec<usize>,
}

impl Default for Queues {
    fn default() -> Self {
        Self { count: 1, cores: Vec::new() }
    }
}

impl Queues {
    pub(super) fn read(parameters: &Parameters) -> Result<Self, SpecError> {
        let count = |text: &str| text.parse().ok().filter(|count| (1..=MAX).contains(count));
        let cores = |text: &str| text.split('+').map(str::parse).collect::<Result<Vec<_>, _>>().ok();
        Ok(Self {
            count: parameters.get(QUEUES.key, count)?.unwrap_or(1),
            cores: parameters.get(CORES.key, cores)?.unwrap_or_default(),
        })
    }

    /// The cores for the queues, in turn, of a device that works on `core`.
    pub fn cores(&self, core: usize) -> Vec<usize> {
        if self.cores.is_empty() { vec![core] } else { self.cores.clone() }
    }
}

#[cfg(test)]
mod tests {
    use crate::dut::DutSpec;

    use super::*;

    #[test]
    fn queues_and_their_cores_are_read() {
        let queues = |text: &str| text.parse::<DutSpec>().unwrap().device.queues();
        assert_eq!(queues("linux-router"), Queues::default());
        let two = queues("linux-router:queues=2,cores=0+1");
        assert_eq!((two.count, two.cores(7)), (2, vec![0, 1]));
        assert_eq!(queues("linux-bridge:queues=4").cores(7), [7]);
        for text in ["queues=0", "queues=65", "queues=two", "cores=0,1", "cores=+", "cores="] {
            assert!(format!("linux-router:{text}").parse::<DutSpec>().is_err(), "{text}");
        }
    }
}
