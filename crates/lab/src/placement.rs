//! Which core does what: the cores there are and the wishes enter, a placement leaves. Pure,
//! but for [`online`], which asks the kernel.

use nix::unistd::Pid;
use scheduling::Cores;

/// Which core does what in a lab.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// One core for each worker that generates. Control threads stay on the first.
    pub generate: Vec<usize>,
    /// The core where the tester's ports receive.
    pub receive: usize,
    /// The cores that receive in user space, where they are not those that generate.
    pub receive_cores: Vec<usize>,
    /// The core of the device under test.
    pub dut: usize,
    /// What a reader of the results should know of it.
    pub notes: Vec<String>,
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

impl Placement {
    /// Places a lab on the cores `online`, in their order.
    ///
    /// The device gets the last core for itself; the tester generates on the first ones, and
    /// receives on a core of its own where one is left. Where none is, receiving runs on the
    /// device's core: that slows the device, never the load offered to it.
    ///
    /// # Errors
    /// [`PlacementError`] when a wish cannot be met.
    pub fn choose(online: &[usize], wishes: &Wishes) -> Result<Self, PlacementError> {
        let check = |core: usize| match online.contains(&core) {
            true => Ok(core),
            false => Err(PlacementError::NoSuchCore { core, online: online.to_vec() }),
        };
        let wanted = wishes.generate.as_deref().unwrap_or_default();
        let workers = match wishes.workers.max(1) {
            1 if !wanted.is_empty() => wanted.len(),
            workers if !wanted.is_empty() && wanted.len() != workers => {
                return Err(PlacementError::CoresPerWorker { workers, cores: wanted.len() });
            }
            workers => workers,
        };
        for core in wanted.iter().chain(&wishes.receive) {
            check(*core)?;
        }
        let dut = match wishes.dut {
            Some(core) => check(core)?,
            // The last core that nobody asked for, or with a single core that one.
            None => *online
                .iter()
                .rfind(|core| !wanted.contains(core) && !wishes.receive.contains(core))
                .or(online.last())
                .ok_or(PlacementError::TooFewCores { workers, free: 0 })?,
        };
        let generate = if wanted.is_empty() { first_cores(online, workers, dut)? } else { wanted.to_vec() };
        let spare = online.iter().rfind(|core| **core != dut && !generate.contains(core));
        let receive = spare.copied().unwrap_or(dut);
        let receive_cores = wishes.receive.clone();
        let mut placement = Self { generate, receive, receive_cores, dut, notes: Vec::new() };
        placement.notes = placement.caveats(online.len());
        Ok(placement)
    }

    /// Which core does what, for people.
    #[must_use]
    pub fn in_words(&self) -> String {
        let cores = self.generate.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let Self { dut, receive, .. } = self;
        match self.receives_on_dut_core() {
            true => format!("generator on core {cores}, device and receiver on core {dut}"),
            false => format!("generator on core {cores}, device on core {dut}, receiver on core {receive}"),
        }
    }

    /// Whether the tester's ports receive on the device's core, in its time.
    #[must_use]
    pub fn receives_on_dut_core(&self) -> bool {
        self.receive == self.dut
    }

    /// What a reader must know of this placement on a host with so many `cores`.
    fn caveats(&self, cores: usize) -> Vec<String> {
        let mut notes = Vec::new();
        if self.generate.contains(&self.dut) {
            notes.push(format!(
                "generator and device share core {}: the rates are those of the two together",
                self.dut
            ));
        }
        if self.receives_on_dut_core() {
            let (why, remedy) = match cores > self.generate.len() + 1 {
                true => (String::new(), "name another core to receive on"),
                false => (format!("only {cores} cores: "), "add a core"),
            };
            notes.push(format!(
                "WARNING: {why}tester RX and DUT share core {}, so DUT rates are understated ({remedy})",
                self.dut
            ));
        }
        notes
    }
}

/// The first cores that are not the device's; the device's only if it is the only one.
fn first_cores(online: &[usize], workers: usize, dut: usize) -> Result<Vec<usize>, PlacementError> {
    let mut free: Vec<usize> = online.iter().copied().filter(|core| *core != dut).collect();
    if free.is_empty() {
        free.push(dut);
    }
    if workers > free.len() {
        return Err(PlacementError::TooFewCores { workers, free: free.len() });
    }
    free.truncate(workers);
    Ok(free)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(online: &[usize], wishes: &Wishes) -> (Vec<usize>, usize, usize, usize) {
        let placement = Placement::choose(online, wishes).unwrap();
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
        let refused = Placement::choose(&[0, 1], &two).unwrap_err();
        assert_eq!(refused, PlacementError::TooFewCores { workers: 2, free: 1 });
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
            Placement::choose(&[0, 1], &wishes),
            Err(PlacementError::NoSuchCore { core: 9, .. })
        ));
        let wishes = Wishes { dut: Some(7), ..Wishes::default() };
        let refused = Placement::choose(&[0, 1], &wishes).unwrap_err();
        assert_eq!(refused.to_string(), "core 7 is not available. There are: 0, 1");
        let wishes = Wishes { workers: 3, generate: Some(vec![0, 1]), ..Wishes::default() };
        assert!(matches!(
            Placement::choose(&[0, 1, 2], &wishes),
            Err(PlacementError::CoresPerWorker { workers: 3, cores: 2 })
        ));
        assert!(Placement::choose(&[], &Wishes::default()).is_err());
    }
}
