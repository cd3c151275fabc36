//! Which core suits a thread best: the arrangement of the host's cores and the cores already taken enter, the best free core
//! leaves.

use results::record::Topology;

use super::PlacementError;
use crate::device::Workers;

/// The cores that may be chosen.
pub(super) struct Choice<'a> {
    host: &'a Topology,
    /// Those that need not be named, in order; all where there are no others.
    pub(super) cores: Vec<usize>,
    /// The NUMA node of the tester's cards.
    node: Option<usize>,
}

/// How badly a core suits: first by whose thread its physical core has already (2: others', 1: one's own), then by
/// whether it is on another node than the cards.
type Cost = (u8, bool);

impl<'a> Choice<'a> {
    pub(super) fn new(host: &'a Topology, node: Option<usize>) -> Self {
        let all = host.numbers();
        let plain: Vec<usize> = all.iter().copied().filter(|core| !host.isolated.contains(core)).collect();
        Self { host, cores: if plain.is_empty() { all } else { plain }, node }
    }

    /// What `core` costs somebody who has the cores `own` beside `others` that have theirs.
    fn cost(&self, core: usize, own: &[usize], others: &[&[usize]]) -> Cost {
        let is_beside = |cores: &[usize]| cores.iter().any(|taken| self.host.are_siblings(core, *taken));
        let crowded = match others.iter().any(|cores| is_beside(cores)) {
            true => 2,
            false => u8::from(is_beside(own)),
        };
        let is_far = self.node.is_some_and(|node| self.host.node(core).is_some_and(|its| its != node));
        (crowded, is_far)
    }

    /// The cores that nobody has.
    fn free<'b>(
        &'b self,
        own: &'b [usize],
        others: &'b [&'b [usize]],
    ) -> impl DoubleEndedIterator<Item = usize> + 'b {
        let is_taken =
            move |core: &usize| own.contains(core) || others.iter().any(|cores| cores.contains(core));
        self.cores.iter().copied().filter(move |core| !is_taken(core))
    }

    /// The best free core, of equals the last.
    pub(super) fn last(&self, own: &[usize], others: &[&[usize]]) -> Option<usize> {
        self.free(own, others).rev().min_by_key(|core| self.cost(*core, own, others))
    }

    /// The same for somebody who has nothing to do with the cards, and so leaves their node to those who have.
    pub(super) fn far(&self, others: &[&[usize]]) -> Option<usize> {
        let cost = |core: &usize| {
            let (crowded, is_far) = self.cost(*core, &[], others);
            (crowded, !is_far)
        };
        self.free(&[], others).rev().min_by_key(cost)
    }

    /// The first cores that are not the device's; one of these only if there is no other.
    pub(super) fn generators(&self, workers: usize, dut: &[usize]) -> Result<Vec<usize>, PlacementError> {
        let others = [dut];
        let free = self.free(&[], &others).count();
        if let (0, 1, Some(core)) = (free, workers, dut.last()) {
            return Ok(vec![*core]);
        }
        if workers > free {
            return Err(PlacementError::TooFewCores { workers, free: free.max(1) });
        }
        let mut cores = Vec::new();
        for _ in 0..workers {
            let best = self.free(&cores, &others).min_by_key(|core| self.cost(*core, &cores, &others));
            cores.extend(best);
        }
        cores.sort_unstable();
        Ok(cores)
    }

    /// The cores of the device's workers: those that it has, and the last ones that the tester does not use.
    pub(super) fn workers(
        &self,
        mut cores: Vec<usize>,
        workers: &Workers,
        tester: &[&[usize]; 2],
    ) -> Result<Vec<usize>, PlacementError> {
        let further = workers.count.max(1).saturating_sub(cores.len());
        if further + workers.beside > self.free(&cores, tester).count() {
            let needed = workers.count.max(1) + workers.beside;
            let tester = tester[0].len();
            return Err(PlacementError::TooFewForDevice { needed, tester, cores: self.host.cores.len() });
        }
        for _ in 0..further {
            let best = self.last(&cores, tester);
            cores.extend(best);
        }
        Ok(cores)
    }
}
