//! Workers of a router in user space: the parameters `workers`, `cores`, `queues` and `rss` enter; how many there are, on
//! which cores, and how packets come to them leaves.

use std::collections::{BTreeMap, BTreeSet};

use lab::Workers;

use super::spec::Parameters;
use super::{Parameter, SpecError};

/// More than any machine has cores.
const MAX: usize = 64;

pub(super) const WORKERS: Parameter = Parameter {
    key: "workers",
    values: "1 to 64, as many as cores where these are given",
    meaning: "threads that forward, each on a core of its own (default 1, or as many as cores)",
};

pub(super) const CORES: Parameter = Parameter {
    key: "cores",
    values: "different cores with + between, as in 2+3",
    meaning: "the core of each worker (default the device's, and further ones that the tester does not use)",
};

pub(super) const QUEUES: Parameter = Parameter {
    key: "queues",
    values: "1 to 64",
    meaning: "receive queues of each port, dealt out to the workers in turn (default 1, or as many as the tester sends by in \
              user space)",
};

pub(super) const RSS: Parameter = Parameter {
    key: "rss",
    values: "on or off",
    meaning: "whether the flows that arrive by one queue are spread over all workers (default off)",
};

/// The workers that `parameters` ask for.
pub(super) fn read(parameters: &Parameters) -> Result<Workers, SpecError> {
    let number = |text: &str| text.parse().ok().filter(|number| (1..=MAX).contains(number));
    let cores = parameters.get(CORES.key, cores)?.unwrap_or_default();
    let fits = |count: &usize| cores.is_empty() || cores.len() == *count;
    let count = parameters.get(WORKERS.key, |text| number(text).filter(fits))?;
    parameters.get(QUEUES.key, number)?;
    parameters.switch(RSS.key, false)?;
    Ok(Workers { count: count.unwrap_or(cores.len()).max(1), cores, beside: 0 })
}

/// Different cores.
fn cores(text: &str) -> Option<Vec<usize>> {
    let cores: Vec<usize> = text.split('+').map(str::parse).collect::<Result<_, _>>().ok()?;
    let different: BTreeSet<_> = cores.iter().collect();
    (different.len() == cores.len() && cores.len() <= MAX).then_some(cores)
}

/// How packets come to the workers of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spread {
    /// Receive queues of each port, where they are asked for.
    pub queues: Option<usize>,
    /// Whether the flows of a queue are spread over all workers.
    pub rss: bool,
}

impl Spread {
    /// What the `parameters` of a device say, which were read before.
    pub fn of(parameters: &BTreeMap<String, String>) -> Self {
        Self {
            queues: parameters.get(QUEUES.key).and_then(|text| text.parse().ok()),
            rss: parameters.get(RSS.key).is_some_and(|text| text == "on"),
        }
    }
}

#[cfg(test)]
mod tests {
    use lab::Device;

    use crate::DutSpec;

    use super::*;

    #[test]
    fn workers_their_cores_and_queues_are_read() {
        let of = |text: &str| {
            let spec = text.parse::<DutSpec>().unwrap();
            let Workers { count, cores, beside } = Device::workers(&spec);
            (count, cores, beside, Device::queues(&spec).count, Spread::of(spec.parameters()))
        };
        let spread = |queues, rss| Spread { queues, rss };
        assert_eq!(of("fastpath"), (1, vec![], 0, 1, spread(None, false)));
        assert_eq!(of("fastpath:workers=3,rss=on"), (3, vec![], 0, 1, spread(None, true)));
        assert_eq!(of("fastpath:cores=3+1,queues=2"), (2, vec![3, 1], 0, 2, spread(Some(2), false)));
        assert_eq!(of("vpp:workers=1"), (1, vec![], 0, 1, spread(None, false)));
        assert_eq!(of("vpp:workers=2,cores=1+2,rss=on"), (2, vec![1, 2], 1, 1, spread(None, true)));
        for wrong in
            ["workers=0", "workers=65", "workers=2,cores=1", "cores=1+1", "cores=", "queues=0", "rss=yes"]
        {
            for name in ["fastpath", "vpp"] {
                assert!(format!("{name}:{wrong}").parse::<DutSpec>().is_err(), "{name}:{wrong}");
            }
        }
    }
}
