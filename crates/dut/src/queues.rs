//! Receive queues of a device's interfaces: the parameters `queues` and `cores` enter; how many
//! there are and where each is worked on leaves.
//!
//! A veth has no hash of flows: a frame takes the queue of the core that sent it, counted modulo the
//! queues. So one generating core loads one queue, and several cores several.

use lab::Queues;

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

/// The queues that `parameters` ask for.
pub(super) fn read(parameters: &Parameters) -> Result<Queues, SpecError> {
    let count = |text: &str| text.parse().ok().filter(|count| (1..=MAX).contains(count));
    let cores = |text: &str| text.split('+').map(str::parse).collect::<Result<Vec<_>, _>>().ok();
    Ok(Queues {
        count: parameters.get(QUEUES.key, count)?.unwrap_or(1),
        cores: parameters.get(CORES.key, cores)?.unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use crate::DutSpec;

    use super::*;

    #[test]
    fn queues_and_their_cores_are_read() {
        let queues = |text: &str| text.parse::<DutSpec>().unwrap().device.queues();
        assert_eq!(queues("linux-router"), Queues::default());
        let two = queues("linux-router:queues=2,cores=0+1");
        assert_eq!((two.count, two.cores(&[7])), (2, &[0, 1][..]));
        assert_eq!(queues("linux-bridge:queues=4").cores(&[7]), [7]);
        for text in ["queues=0", "queues=65", "queues=two", "cores=0,1", "cores=+", "cores="] {
            assert!(format!("linux-router:{text}").parse::<DutSpec>().is_err(), "{text}");
        }
    }
}
