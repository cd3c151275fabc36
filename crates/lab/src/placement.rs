//! Which core does what: how the host's cores are arranged and the wishes enter, a placement leaves. Pure,
//! but for [`online`] and [`host`], which ask the kernel.

mod choice;
mod siblings;

use hardware::System;
use nix::unistd::Pid;
use results::record::Topology;
use scheduling::Cores;

use crate::device::Workers;
use choice::Choice;

/// Which core does what in a lab.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// One core for each worker that generates. Control threads stay on the first.
    pub generate: Vec<usize>,
    /// The core where the tester's ports receive.
    pub receive: usize,
    /// The cores that receive in user space, where they are not those that generate.
    pub receive_cores: Vec<usize>,
    /// The core of the device under test; of one with several workers, that of the first.
    pub dut: usize,
    /// The core of each of the device's workers.
    pub dut_workers: Vec<usize>,
    /// What a reader of the results of a lab should know of it.
    pub notes: Vec<String>,
    /// How the host's cores are arranged.
    host: Topology,
    /// The NUMA node of the tester's cards.
    node: Option<usize>,
}

/// What the user asks of a placement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wishes {
    /// Workers that generate; 0 counts as 1.
    pub workers: usize,
    /// The cores that generate, one for each worker (`--cores`).
    pub generate: Option<Vec<usize>>,
    /// Cores that the tester receives on in user space (`--receive-cores`): the device keeps off them.
    pub receive: Vec<usize>,
    /// The device's core (`--dut-core`).
    pub dut: Option<usize>,
    /// The workers of the device. Where it names their cores, these go before [`Self::dut`].
    pub dut_workers: Workers,
    /// The NUMA node of the tester's cards, where both are on one.
    pub node: Option<usize>,
}

/// The cores asked for cannot be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlacementError {
    /// A core that this process may not use.
    #[error("core {core} is not available. There are: {}", numbers(online))]
    NoSuchCore {
        /// The core asked for.
        core: usize,
        /// The cores that there are.
        online: Vec<usize>,
    },
    /// More workers than cores to put them on.
    #[error(
        "{workers} workers need {workers} cores beside the device's, and there are {free}. \
         Ask for fewer workers"
    )]
    TooFewCores {
        /// Workers asked for.
        workers: usize,
        /// Cores that could generate.
        free: usize,
    },
    /// More workers of the device than cores to put them on.
    #[error(
        "the device needs {needed} cores beside the {tester} that the tester generates on, and there are {cores} in all. \
         Ask for fewer workers{}",
        other_remedies(*needed, *cores)
    )]
    TooFewForDevice {
        /// Cores that the device needs.
        needed: usize,
        /// Cores that generate.
        tester: usize,
        /// Cores that there are.
        cores: usize,
    },
    /// `--cores` and the number of workers disagree.
    #[error("{workers} workers cannot run on {cores} cores: name one core for each worker")]
    CoresPerWorker {
        /// Workers asked for.
        workers: usize,
        /// Cores named.
        cores: usize,
    },
    /// The kernel does not say.
    #[error("cannot find out which cores there are: {0}. Is /proc mounted?")]
    Unknown(#[from] nix::Error),
}

/// What helps beside fewer workers where a device needs more cores than the tester leaves.
fn other_remedies(needed: usize, cores: usize) -> String {
    // Where there are enough for the device alone, both can share some.
    if needed > cores {
        return " or take a host with more cores".to_owned();
    }
    let shared = (0..cores.clamp(1, 2)).map(|core| core.to_string()).collect::<Vec<_>>().join("+");
    format!(", take a host with more cores, or name cores that both then share (cores={shared})")
}

fn numbers(cores: &[usize]) -> String {
    cores.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// The cores that this process may use, in order.
///
/// # Errors
/// [`PlacementError::Unknown`] when the kernel does not say.
pub fn online() -> Result<Vec<usize>, PlacementError> {
    Ok(Cores::of_thread(Pid::from_raw(0))?.numbers().collect())
}

/// How the cores are arranged that this process may use, and those that the kernel keeps isolated.
///
/// # Errors
/// [`PlacementError::Unknown`] when the kernel does not say.
pub fn host() -> Result<Topology, PlacementError> {
    Ok(usable(System::here().topology(), &online()?))
}

/// Of `all` cores those that a process may use which the kernel lets run on `allowed`. Isolated ones among the others
/// are had by naming them; those that the process runs on already are like all others.
fn usable(all: Topology, allowed: &[usize]) -> Topology {
    if allowed.iter().any(|core| all.core(*core).is_none()) {
        // The kernel does not tell how they are arranged.
        return Topology::flat(allowed);
    }
    let isolated: Vec<usize> = all.isolated.iter().copied().filter(|core| !allowed.contains(core)).collect();
    let numbers: Vec<usize> = allowed.iter().chain(&isolated).copied().collect();
    Topology { isolated, ..all.of(&numbers) }
}

impl Placement {
    /// Places a lab on the cores of `host`.
    ///
    /// The device gets the last core for itself; the tester generates on the first ones, and
    /// receives on a core of its own where one is left. Where none is, receiving runs on the
    /// device's core: that slows the device, never the load offered to it. Two of them are on threads of one
    /// physical core only where no other core is left, and workers are on the node of the tester's cards where they
    /// can be. Isolated cores are used only where they are named.
    ///
    /// # Errors
    /// [`PlacementError`] when a wish cannot be met.
    pub fn choose(host: &Topology, wishes: &Wishes) -> Result<Self, PlacementError> {
        let check = |core: usize| match host.core(core) {
            Some(_) => Ok(core),
            None => Err(PlacementError::NoSuchCore { core, online: host.numbers() }),
        };
        let wanted = wishes.generate.as_deref().unwrap_or_default();
        let workers = match wishes.workers.max(1) {
            1 if !wanted.is_empty() => wanted.len(),
            workers if !wanted.is_empty() && wanted.len() != workers => {
                return Err(PlacementError::CoresPerWorker { workers, cores: wanted.len() });
            }
            workers => workers,
        };
        let named = &wishes.dut_workers.cores;
        for core in wanted.iter().chain(&wishes.receive).chain(named) {
            check(*core)?;
        }
        let choice = Choice::new(host, wishes.node);
        let dut = match named.first().copied().or(wishes.dut) {
            Some(core) => check(core)?,
            // The last core that nobody asked for, or with a single core that one.
            None => choice
                .far(&[wanted, &wishes.receive])
                .or(choice.cores.last().copied())
                .ok_or(PlacementError::TooFewCores { workers, free: 0 })?,
        };
        let kept = if named.is_empty() { vec![dut] } else { named.clone() };
        let generate = if wanted.is_empty() { choice.generators(workers, &kept)? } else { wanted.to_vec() };
        let dut_workers = choice.workers(kept, &wishes.dut_workers, &[&generate, &wishes.receive])?;
        let receive = choice.last(&generate, &[&dut_workers]).unwrap_or(dut);
        let receive_cores = wishes.receive.clone();
        let mut placement = Self {
            generate,
            receive,
            receive_cores,
            dut,
            dut_workers,
            notes: Vec::new(),
            host: host.clone(),
            node: wishes.node,
        };
        placement.notes = placement.caveats();
        Ok(placement)
    }

    /// Which core does what, for people.
    #[must_use]
    pub fn in_words(&self) -> String {
        let cores = numbers(&self.generate);
        let Self { dut, dut_workers, receive, .. } = self;
        match dut_workers.as_slice() {
            [_, _, ..] => {
                let device = numbers(dut_workers);
                format!("generator on core {cores}, device on cores {device}, receiver on core {receive}")
            }
            _ if self.receives_on_dut_core() => {
                format!("generator on core {cores}, device and receiver on core {dut}")
            }
            _ => format!("generator on core {cores}, device on core {dut}, receiver on core {receive}"),
        }
    }

    /// Whether the tester sends, or receives in user space, on a core that a worker of the device has.
    #[must_use]
    pub fn shares_dut_cores(&self) -> bool {
        self.dut_workers.iter().any(|core| self.generate.contains(core) || self.receive_cores.contains(core))
    }

    /// Whether the tester's ports receive on the device's core, in its time.
    #[must_use]
    pub fn receives_on_dut_core(&self) -> bool {
        self.receive == self.dut
    }

    /// Which cores the generator and the device share, for a reader of the results.
    #[must_use]
    pub fn shared_cores(&self) -> Option<String> {
        let both = self.dut_workers.iter().copied().filter(|core| self.generate.contains(core));
        let both: Vec<usize> = both.collect();
        let cores = numbers(&both);
        (!both.is_empty()).then(|| {
            format!("generator and device share core {cores}: the rates are those of the two together")
        })
    }

    /// What a reader must know of a lab that is placed so.
    fn caveats(&self) -> Vec<String> {
        let cores = self.host.cores.len();
        let mut notes = Vec::new();
        notes.extend(self.shared_cores());
        if self.receives_on_dut_core() {
            let (why, remedy) = match cores > self.generate.len() + self.dut_workers.len() {
                true => (String::new(), "name another core to receive on"),
                false => (format!("only {cores} cores: "), "add a core"),
            };
            notes.push(format!(
                "WARNING: {why}tester RX and DUT share core {}, so DUT rates are understated ({remedy})",
                self.dut
            ));
        }
        let receive: &[usize] = if self.receives_on_dut_core() { &[] } else { &[self.receive] };
        notes.extend(self.siblings(&[
            ("generator", &self.generate),
            ("receiver", receive),
            ("device", &self.dut_workers),
        ]));
        notes
    }

    /// What a reader must know of it where the tester's ports are not a lab's; `with_device` where Linerate starts the
    /// device.
    #[must_use]
    pub fn caveats_outside(&self, with_device: bool) -> Vec<String> {
        let device: &[usize] = if with_device { &self.dut_workers } else { &[] };
        let mut notes: Vec<String> = self.shared_cores().filter(|_| with_device).into_iter().collect();
        let roles =
            [("generator", self.generate.as_slice()), ("receiver", &self.receive_cores), ("device", device)];
        notes.extend(self.siblings(&roles));
        notes.extend(self.far_from_cards());
        notes
    }
}

#[cfg(test)]
mod tests {
    use results::record::Core;

    use super::*;

    fn place(online: &[usize], wishes: &Wishes) -> (Vec<usize>, usize, usize, usize) {
        let placement = Placement::choose(&Topology::flat(online), wishes).unwrap();
        (placement.generate, placement.receive, placement.dut, placement.notes.len())
    }

    #[test]
    fn the_device_has_a_core_of_its_own_where_there_are_two() {
        let one = Wishes { workers: 1, ..Wishes::default() };
        assert_eq!(place(&[0], &one), (vec![0], 0, 0, 2));
        assert_eq!(place(&[0, 1], &one), (vec![0], 1, 1, 1));
        assert_eq!(place(&[0, 1, 2], &one), (vec![0], 1, 2, 0));
        assert_eq!(place(&[3, 5, 8, 9], &one), (vec![3], 8, 9, 0));
    }

    #[test]
    fn workers_get_a_core_each() {
        let two = Wishes { workers: 2, ..Wishes::default() };
        assert_eq!(place(&[0, 1, 2, 3], &two), (vec![0, 1], 2, 3, 0));
        assert_eq!(place(&[0, 1, 2], &two), (vec![0, 1], 2, 2, 1));
        let refused = Placement::choose(&Topology::flat(&[0, 1]), &two).unwrap_err();
        assert_eq!(refused, PlacementError::TooFewCores { workers: 2, free: 1 });
    }

    #[test]
    fn the_device_s_workers_get_the_last_cores_or_those_that_it_names() {
        let of = |online: &[usize], count, cores: &[usize], beside| {
            let dut_workers = Workers { count, cores: cores.to_vec(), beside };
            Placement::choose(&Topology::flat(online), &Wishes { dut_workers, ..Wishes::default() })
        };
        let placed = of(&[0, 1, 2, 3], 3, &[], 0).unwrap();
        assert_eq!((placed.generate.as_slice(), placed.dut_workers.as_slice()), (&[0][..], &[3, 2, 1][..]));
        assert_eq!((placed.dut, placed.receive), (3, 3), "no core is left to receive on");
        let words = "generator on core 0, device on cores 3, 2, 1, receiver on core 3";
        assert_eq!(placed.in_words(), words);
        let placed = of(&[0, 1, 2, 3], 2, &[], 1).unwrap();
        assert_eq!((placed.dut_workers.as_slice(), placed.receive, placed.notes.len()), (&[3, 2][..], 1, 0));
        let named = of(&[0, 1], 2, &[1, 0], 0).unwrap();
        assert_eq!((named.generate.as_slice(), named.dut_workers.as_slice()), (&[0][..], &[1, 0][..]));
        assert!(named.shares_dut_cores() && !placed.shares_dut_cores());
        assert!(named.notes[0].starts_with("generator and device share core 0:"), "{:?}", named.notes);
        let refused = of(&[0, 1], 2, &[], 0).unwrap_err().to_string();
        assert_eq!(
            refused,
            "the device needs 2 cores beside the 1 that the tester generates on, and there are 2 in all. Ask for fewer \
             workers, take a host with more cores, or name cores that both then share (cores=0+1)"
        );
        assert!(matches!(of(&[0, 1, 2], 2, &[], 1), Err(PlacementError::TooFewForDevice { needed: 3, .. })));
        // One with a thread beside its workers has no cores to share.
        let refused = of(&[0, 1], 2, &[0, 1], 1).unwrap_err().to_string();
        assert!(refused.ends_with("Ask for fewer workers or take a host with more cores"), "{refused}");
        assert!(matches!(of(&[0, 1], 2, &[0, 7], 0), Err(PlacementError::NoSuchCore { core: 7, .. })));
    }

    #[test]
    fn wishes_are_followed_or_refused() {
        let wishes = Wishes { generate: Some(vec![2, 3]), dut: Some(0), ..Wishes::default() };
        assert_eq!(place(&[0, 1, 2, 3], &wishes), (vec![2, 3], 1, 0, 0));
        let wishes = Wishes { generate: Some(vec![1]), ..Wishes::default() };
        assert_eq!(place(&[0, 1], &wishes), (vec![1], 0, 0, 1));
        let wishes = Wishes { dut: Some(0), ..Wishes::default() };
        assert_eq!(place(&[0, 1], &wishes), (vec![1], 0, 0, 1));
        let wishes = Wishes { receive: vec![3, 2], ..Wishes::default() };
        assert_eq!(place(&[0, 1, 2, 3], &wishes), (vec![0], 3, 1, 0));
        let wishes = Wishes { receive: vec![9], ..Wishes::default() };
        assert!(matches!(
            Placement::choose(&Topology::flat(&[0, 1]), &wishes),
            Err(PlacementError::NoSuchCore { core: 9, .. })
        ));
        let wishes = Wishes { dut: Some(7), ..Wishes::default() };
        let refused = Placement::choose(&Topology::flat(&[0, 1]), &wishes).unwrap_err();
        assert_eq!(refused.to_string(), "core 7 is not available. There are: 0, 1");
        let wishes = Wishes { workers: 3, generate: Some(vec![0, 1]), ..Wishes::default() };
        assert!(matches!(
            Placement::choose(&Topology::flat(&[0, 1, 2]), &wishes),
            Err(PlacementError::CoresPerWorker { workers: 3, cores: 2 })
        ));
        assert!(Placement::choose(&Topology::flat(&[]), &Wishes::default()).is_err());
    }

    /// Cores of which each physical one has two threads: neighbours by number where `adjacent`, else n and n + half.
    fn threads(count: usize, adjacent: bool) -> Topology {
        let sibling = |core: usize| if adjacent { core ^ 1 } else { (core + count / 2) % count };
        let node = |core: usize| core.min(sibling(core)) * 2 / count;
        let core = |number: usize| Core {
            number,
            siblings: vec![sibling(number)],
            node: Some(node(number)),
            ..Core::default()
        };
        Topology { cores: (0..count).map(core).collect(), ..Topology::default() }
    }

    #[test]
    fn each_part_has_a_physical_core_of_its_own_where_there_are_enough() {
        let wishes = Wishes::default();
        for adjacent in [true, false] {
            let host = threads(8, adjacent);
            let placed = Placement::choose(&host, &wishes).unwrap();
            let all = [placed.generate[0], placed.receive, placed.dut];
            let apart = |one: usize, other: usize| !host.are_siblings(all[one], all[other]);
            assert!(apart(0, 1) && apart(0, 2) && apart(1, 2), "{adjacent}: {all:?}");
            assert_eq!(placed.notes, [""; 0]);
        }
        // By their numbers alone, 2 would have been taken: the device's sibling.
        let placed = Placement::choose(&threads(4, true), &wishes).unwrap();
        assert_eq!((placed.generate.as_slice(), placed.dut, placed.receive), (&[0][..], 3, 1));
        let two = Wishes { workers: 2, ..Wishes::default() };
        assert_eq!(Placement::choose(&threads(8, true), &two).unwrap().generate, [0, 2]);
        let dut_workers = Workers { count: 2, ..Workers::default() };
        let device = Wishes { dut_workers, ..Wishes::default() };
        assert_eq!(Placement::choose(&threads(8, true), &device).unwrap().dut_workers, [7, 5]);
    }

    #[test]
    fn where_two_must_share_a_physical_core_it_is_said() {
        let said = |count, wishes: &Wishes| Placement::choose(&threads(count, true), wishes).unwrap().notes;
        assert_eq!(
            said(4, &Wishes::default()),
            [
                "WARNING: generator (core 0) and receiver (core 1) are threads of one physical core and slow each other: \
              use a host with more physical cores"
            ]
        );
        let named = Wishes { generate: Some(vec![6]), dut: Some(7), ..Wishes::default() };
        assert_eq!(
            said(8, &named),
            [
                "WARNING: generator (core 6) and device (core 7) are threads of one physical core and slow each other: \
              name cores of different physical cores"
            ]
        );
        let two = said(2, &Wishes::default());
        assert!(
            two[0].contains("tester RX and DUT share core 1")
                && two[1].contains("(core 0) and device (core 1)"),
            "{two:?}"
        );
        let dut_workers = Workers { count: 2, cores: vec![4, 5], beside: 0 };
        let workers = said(8, &Wishes { dut_workers, ..Wishes::default() });
        assert!(workers[0].contains("device (core 4) and device (core 5)"), "{workers:?}");
    }

    #[test]
    fn workers_are_on_the_node_of_their_card() {
        let wishes = Wishes { workers: 2, node: Some(1), ..Wishes::default() };
        let placed = Placement::choose(&threads(8, true), &wishes).unwrap();
        assert_eq!((placed.generate.as_slice(), placed.caveats_outside(false)), (&[4, 6][..], vec![]));
        let far = Wishes { generate: Some(vec![0, 6]), node: Some(1), ..Wishes::default() };
        let placed = Placement::choose(&threads(8, true), &far).unwrap();
        assert_eq!(
            placed.caveats_outside(false),
            [
                "WARNING: core 0 is not on NUMA node 1 of the ports: frames cross between nodes, and rates are lower \
              (cores of that node: 4, 5, 6, 7)"
            ]
        );
        assert_eq!(placed.notes, [""; 0], "a lab has no card");
    }

    #[test]
    fn isolated_cores_are_used_where_they_are_named() {
        let all = Topology { isolated: vec![2, 3], ..Topology::flat(&[0, 1, 2, 3]) };
        let host = usable(all.clone(), &[0, 1]);
        assert_eq!(host.numbers(), [0, 1, 2, 3]);
        let placed = Placement::choose(&host, &Wishes::default()).unwrap();
        assert_eq!((placed.generate.as_slice(), placed.dut), (&[0][..], 1));
        let named = Wishes { generate: Some(vec![2]), dut: Some(3), ..Wishes::default() };
        let placed = Placement::choose(&host, &named).unwrap();
        assert_eq!((placed.generate.as_slice(), placed.dut, placed.receive), (&[2][..], 3, 1));
        // A user who starts it on isolated cores wants those.
        let started = usable(all, &[2, 3]);
        assert_eq!((started.numbers(), started.isolated.len()), (vec![2, 3], 0));
        assert_eq!(usable(Topology::default(), &[0, 1]), Topology::flat(&[0, 1]));
    }
}
