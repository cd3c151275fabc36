//! What a lab is built around: a device enters with what it needs of the lab; what runs in its place leaves.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt::{Debug, Display};

use libbpf_rs::{Link as XdpLink, ProgramMut};

use crate::error::{Error, Result};
use crate::namespace::Namespace;
use crate::netlink::Link;

/// Where frames leaving a tester port are addressed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Addressing {
    /// To the device: it routes or swallows them.
    Device,
    /// To the other port: the device only carries them.
    OtherPort,
}

/// What joins a device to the tester's ports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Attachment {
    /// A veth pair at each port, with the other ends, `dut0` and `dut1`, in the device's namespace.
    #[default]
    Veth,
    /// Each port is a tap, whose frames a program exchanges with the tester: a virtual machine.
    Tap,
}

/// The threads of a device that forward.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Workers {
    /// How many; 0 counts as 1.
    pub count: usize,
    /// The core of each; empty where the device names none.
    pub cores: Vec<usize>,
    /// Cores that it needs besides, for what it does beside forwarding.
    pub beside: usize,
}

/// The receive queues of each interface of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queues {
    /// How many, at each interface.
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
    /// The cores for the queues, in turn, of a device whose workers are on the cores `workers`.
    #[must_use]
    pub fn cores<'a>(&'a self, workers: &'a [usize]) -> &'a [usize] {
        if self.cores.is_empty() { workers } else { &self.cores }
    }
}

/// A device with its parameters, not yet running. It is shown as the user names it.
pub trait Device: Debug + Display + Send + Sync {
    /// What it is called.
    fn name(&self) -> &'static str;

    /// The parameters as given.
    fn parameters(&self) -> &BTreeMap<String, String>;

    /// Where frames are addressed to.
    fn addressing(&self) -> Addressing;

    /// What joins it to the tester's ports.
    fn attachment(&self) -> Attachment {
        Attachment::default()
    }

    /// Whether its interfaces merge received frames (GRO).
    fn gro(&self) -> bool {
        false
    }

    /// The receive queues of its interfaces.
    fn queues(&self) -> Queues {
        Queues::default()
    }

    /// Its workers.
    fn workers(&self) -> Workers {
        Workers::default()
    }

    /// Makes the interfaces at `site`, which are up and bare, into this device. It is not called where each port is a tap.
    ///
    /// # Errors
    /// [`Error`], when the kernel refuses a step.
    fn start(&self, site: &Site) -> Result<Running>;
}

/// Where a device is built.
#[derive(Debug)]
pub struct Site<'a> {
    /// The device's namespace.
    pub namespace: &'a Namespace,
    /// `dut0` and `dut1`.
    pub interfaces: &'a [Link; 2],
    /// The core that its work is done on.
    pub core: usize,
}

impl Site<'_> {
    /// The indexes of `dut0` and `dut1`.
    #[must_use]
    pub fn indexes(&self) -> [u32; 2] {
        [self.interfaces[0].index, self.interfaces[1].index]
    }

    /// Attaches `program` to both interfaces. To be called inside the namespace, where the
    /// interfaces' indexes mean them. The kernel detaches it when the links are closed.
    ///
    /// # Errors
    /// [`Error`], when the kernel does not attach it.
    pub fn attach(&self, program: &ProgramMut) -> Result<Vec<XdpLink>> {
        let attach = |interface: &Link| {
            program
                .attach_xdp(i32::try_from(interface.index).unwrap_or_default())
                .map_err(|cause| Error::bpf(format!("cannot attach XDP to {}", interface.name), cause))
        };
        self.interfaces.iter().map(attach).collect()
    }
}

/// A device that runs until it is dropped.
#[derive(Default)]
pub struct Running {
    /// Holds the XDP programs in place.
    pub links: Vec<XdpLink>,
    /// Holds what counts: maps, or a device in user space.
    pub counters: Option<ReadCounters>,
    /// Where it forwards, if not in the device's namespace; several that do so side by side.
    pub jails: Vec<Namespace>,
    /// Where its interfaces are now, if it moved them.
    pub moved: Option<Namespace>,
    /// The threads of a device in user space.
    pub threads: Vec<i32>,
    /// Puts settings of the machine back when it is dropped.
    pub settings: Option<Box<dyn Any + Send + Sync>>,
    /// What a reset does beside taking the interfaces down and up.
    pub reset: Option<Reset>,
}

/// Makes a device forget what it remembers of the frames that came.
pub type Reset = Box<dyn Fn() -> Result<()> + Send + Sync>;

/// Reads what a device counted: entered by `dut0`, entered by `dut1`.
pub type ReadCounters = Box<dyn Fn() -> Result<[Counters; 2]> + Send + Sync>;

/// What a device counted in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Frames that came, broadcast and multicast aside.
    pub frames: u64,
    /// Bytes of those, FCS included.
    pub bytes: u64,
    /// Those of them that it sent on.
    pub forwarded: u64,
    /// Those of them that it sent on after the next one.
    pub reordered: u64,
    /// Those of them that it sent on twice.
    pub duplicated: u64,
    /// How they came.
    pub bursts: Bursts,
}

/// Lengths of bursts that are told apart.
pub const BURST_LENGTHS: usize = 20;

/// How frames came at a device that knows: a burst are frames that follow each other faster than twice its
/// rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bursts {
    /// Frames that its queue holds; 0 of a device that does not know how they came.
    pub queue: u64,
    /// Frames that came in bursts of each [length](Self::length).
    pub frames: [u64; BURST_LENGTHS],
}

impl Bursts {
    /// The least length of those at this place: 1, 2, 3, 4, 6, 8, 12 … 768.
    #[must_use]
    pub fn length(place: usize) -> u64 {
        match place {
            0 | 1 => 1,
            _ if place.is_multiple_of(2) => 1 << (place / 2).min(62),
            _ => 3 << (place / 2 - 1).min(60),
        }
    }
}

impl Counters {
    /// Frames that came and were not sent on, or not yet.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.frames.saturating_sub(self.forwarded)
    }
}

impl Running {
    /// The threads of its own that do its work, beside those that receive.
    #[must_use]
    pub fn threads(&self) -> &[i32] {
        &self.threads
    }

    /// What it counted: entered by `dut0`, entered by `dut1`. `None` where it does not count.
    #[must_use]
    pub fn counters(&self) -> Option<Result<[Counters; 2]>> {
        self.counters.as_ref().map(|read| read())
    }

    /// Makes it forget what it remembers of the frames that came, if it remembers any.
    ///
    /// # Errors
    /// [`Error`], when the kernel refuses that.
    pub fn reset(&self) -> Result<()> {
        self.reset.as_ref().map_or(Ok(()), |reset| reset())
    }

    /// Where it forwards, if that is not the device's namespace: the first of several that do.
    #[must_use]
    pub fn jail(&self) -> Option<&Namespace> {
        self.jails.first()
    }
}

impl Debug for Running {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Running").field("xdp_links", &self.links.len()).finish_non_exhaustive()
    }
}
