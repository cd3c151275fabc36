//! The machine that a run was on, and what decides how fast its cores are: how they are arranged, and how they are
//! set.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

/// The machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Environment {
    /// Linerate's version.
    pub linerate: String,
    /// The kernel's release.
    pub kernel: String,
    /// The distribution.
    pub os: String,
    /// The processor's model.
    pub cpu: String,
    /// Cores online.
    pub cores: usize,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// The hypervisor, when there is one.
    pub hypervisor: Option<String>,
    /// What decides how fast its cores are; older records have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<Box<Host>>,
}

/// A machine, as its kernel tells it. What the kernel does not tell is absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Host {
    /// How its cores are arranged.
    pub topology: Topology,
    /// The kernel's command line, without what follows ` -- `, which is for the first process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command_line: Option<String>,
    /// The frequency governors in use, like `performance`.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub governors: BTreeSet<String>,
    /// The revision of the processor's microcode, like `0xffffffff`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub microcode: Option<String>,
    /// What the kernel does about each vulnerability of the processor that is affected.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub mitigations: BTreeMap<String, String>,
    /// The rate of the time stamp counter in hertz, as it was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tsc_hz: Option<f64>,
    /// How long a cache line took from the first core in use to each other one and back, by core, in nanoseconds:
    /// the median of the run. Frames that go from core to core in memory are slower the longer it is.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub core_to_core_ns: BTreeMap<usize, u64>,
    /// The highest frequency of a core in hertz.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_hz: Option<f64>,
}

/// How the cores of a machine are arranged. A core is what Linux calls a CPU: one for each hardware thread.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Topology {
    /// The cores that are online, by number.
    pub cores: Vec<Core>,
    /// Those of them that the scheduler leaves alone (`isolcpus`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub isolated: Vec<usize>,
    /// Those of them that have no tick while a single thread runs there (`nohz_full`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nohz_full: Vec<usize>,
    /// What the kernel says of hardware threads: `on`, `off`, `forceoff`, `notsupported` or `notimplemented`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smt: Option<String>,
    /// Each kind of cache, the nearest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub caches: Vec<Cache>,
}

/// One core.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Core {
    /// Its number.
    pub number: usize,
    /// The socket that it is in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub package: Option<usize>,
    /// The other cores that are threads of its physical core (SMT siblings).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub siblings: Vec<usize>,
    /// The NUMA node that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<usize>,
}

/// A kind of cache.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Cache {
    /// 1 is the nearest to the core.
    pub level: u8,
    /// `Data`, `Instruction` or `Unified`.
    pub kind: String,
    /// The size of one of them, in KiB.
    pub kib: u64,
    /// How many of them there are.
    pub count: usize,
    /// How many cores share one of them.
    pub cores: usize,
}

impl Topology {
    /// Cores of which nothing is known but their numbers: each counts as a physical core.
    #[must_use]
    pub fn flat(numbers: &[usize]) -> Self {
        let core = |number: &usize| Core { number: *number, ..Core::default() };
        Self { cores: numbers.iter().map(core).collect(), ..Self::default() }
    }

    /// The same of those cores only that are among `numbers`. Siblings that are none of them stay named: others may
    /// run there.
    #[must_use]
    pub fn of(mut self, numbers: &[usize]) -> Self {
        let is_there = |number: &usize| numbers.contains(number);
        self.cores.retain(|core| is_there(&core.number));
        self.isolated.retain(is_there);
        self.nohz_full.retain(is_there);
        self
    }

    /// The numbers of its cores.
    #[must_use]
    pub fn numbers(&self) -> Vec<usize> {
        self.cores.iter().map(|core| core.number).collect()
    }

    /// The core of this number.
    #[must_use]
    pub fn core(&self, number: usize) -> Option<&Core> {
        self.cores.iter().find(|core| core.number == number)
    }

    /// Whether two different cores are threads of one physical core.
    #[must_use]
    pub fn are_siblings(&self, one: usize, other: usize) -> bool {
        self.core(one).is_some_and(|core| core.siblings.contains(&other))
    }

    /// The NUMA node of a core.
    #[must_use]
    pub fn node(&self, number: usize) -> Option<usize> {
        self.core(number)?.node
    }

    /// The NUMA nodes that have cores.
    #[must_use]
    pub fn nodes(&self) -> BTreeSet<usize> {
        self.cores.iter().filter_map(|core| core.node).collect()
    }

    /// One core of each physical core, in order: its lowest number.
    #[must_use]
    pub fn physical(&self) -> Vec<usize> {
        let is_first = |core: &&Core| {
            !core.siblings.iter().any(|other| *other < core.number && self.core(*other).is_some())
        };
        self.cores.iter().filter(is_first).map(|core| core.number).collect()
    }

    /// `cores` in an order in which those of different physical cores come first, and of these the lower ones.
    #[must_use]
    pub fn spread(&self, cores: &[usize]) -> Vec<usize> {
        let (mut first, mut rest) = (Vec::new(), Vec::new());
        for core in cores {
            let is_beside = first.iter().any(|taken| self.are_siblings(*taken, *core));
            if is_beside { &mut rest } else { &mut first }.push(*core);
        }
        first.extend(rest);
        first
    }

    /// How its cores are arranged, in one line: `8 cores: 4 physical cores of 2 threads, on 2 NUMA nodes`.
    #[must_use]
    pub fn in_words(&self) -> String {
        let (cores, physical) = (self.cores.len(), self.physical().len());
        let plural =
            |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
        let mut text = plural(cores, "core");
        if physical < cores {
            let most = self.cores.iter().map(|core| core.siblings.len() + 1).max().unwrap_or(1);
            text += &format!(": {} of {most} threads", plural(physical, "physical core"));
        }
        match self.nodes().len() {
            0 | 1 => {}
            nodes => text += &format!(", on {nodes} NUMA nodes"),
        }
        for (what, numbers) in [("isolated", &self.isolated), ("without a tick", &self.nohz_full)] {
            if !numbers.is_empty() {
                let list = numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
                text += &format!("; {what}: {list}");
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two physical cores of two threads, numbered as most servers do: 0 and 2, 1 and 3.
    fn threads() -> Topology {
        let core = |number: usize| Core {
            number,
            package: Some(0),
            siblings: vec![(number + 2) % 4],
            node: Some(number % 2),
        };
        Topology { cores: (0..4).map(core).collect(), ..Topology::default() }
    }

    #[test]
    fn siblings_are_threads_of_one_physical_core() {
        let topology = threads();
        assert!(topology.are_siblings(0, 2) && topology.are_siblings(3, 1));
        assert!(!topology.are_siblings(0, 1) && !topology.are_siblings(0, 0) && !topology.are_siblings(9, 0));
        assert_eq!(topology.physical(), [0, 1]);
        assert_eq!(topology.spread(&[0, 2, 1, 3]), [0, 1, 2, 3]);
        assert_eq!(topology.spread(&[3, 1, 0]), [3, 0, 1]);
        assert_eq!(topology.in_words(), "4 cores: 2 physical cores of 2 threads, on 2 NUMA nodes");
    }

    #[test]
    fn where_nothing_is_known_of_threads_each_core_counts_as_physical() {
        let flat = Topology::flat(&[3, 5]);
        assert_eq!((flat.physical(), flat.nodes().len()), (vec![3, 5], 0));
        assert_eq!(
            (flat.in_words().as_str(), Topology::flat(&[1]).in_words().as_str()),
            ("2 cores", "1 core")
        );
    }

    #[test]
    fn a_part_of_the_cores_has_its_own_physical_cores_and_isolated_ones() {
        let some = Topology { isolated: vec![2, 3], ..threads() }.of(&[2, 1]);
        assert_eq!(
            (some.numbers(), some.physical(), some.isolated.clone()),
            (vec![1, 2], vec![1, 2], vec![2])
        );
        assert_eq!(some.in_words(), "2 cores, on 2 NUMA nodes; isolated: 2");
    }
}
