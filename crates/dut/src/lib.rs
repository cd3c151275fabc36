//! The devices under test: a specification like `calibrated:rate=300kpps` enters, a device that
//! forwards between `dut0` and `dut1` leaves.
//!
//! A new device in the kernel is one file here and one line in `DEVICES`; one that is a process has its file in [`program`].

mod access_list;
mod calibrated;
mod delayed;
mod fastpath;
mod firewall;
mod jail;
mod linux_bridge;
mod linux_router;
mod machine;
pub mod program;
mod queues;
mod routes;
mod routing;
mod sink;
mod spec;
mod tenants;
mod user_space;
mod vm;
mod workers;
mod xdp_router;
mod xdp_xconnect;

use std::fmt::Debug;
use std::mem::MaybeUninit;
use std::net::IpAddr;

use lab::{Addressing, Attachment, Error, Queues, Result, Running, Site, Workers};
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{MapHandle, OpenObject};

pub use calibrated::{Passed, Rules};
pub use spec::{DutSpec, SpecError};

use spec::Parameters;

/// What a device is, for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Description {
    /// What it is called in `--dut`.
    pub name: &'static str,
    /// What it does, in one line.
    pub summary: &'static str,
    /// What can be set in it.
    pub parameters: &'static [Parameter],
}

/// One parameter of a device, for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// What it is called.
    pub key: &'static str,
    /// The values it takes.
    pub values: &'static str,
    /// What it does, and what holds where it is not given.
    pub meaning: &'static str,
}

/// A device as `--dut` names it: how it is described and how its parameters are read.
struct Kind {
    description: Description,
    parse: fn(&Parameters) -> Result<Box<dyn Device>, SpecError>,
}

const DEVICES: [Kind; 11] = [
    linux_router::KIND,
    linux_bridge::KIND,
    xdp_router::KIND,
    xdp_xconnect::KIND,
    sink::KIND,
    calibrated::KIND,
    delayed::KIND,
    user_space::TESTPMD,
    user_space::VPP,
    fastpath::KIND,
    vm::KIND,
];

/// Every device that `--dut` knows.
#[must_use]
pub fn list() -> [Description; DEVICES.len()] {
    DEVICES.map(|kind| kind.description)
}

/// A device with its parameters, not yet running.
pub(crate) trait Device: Debug + Send + Sync {
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

    /// The sources whose packets it drops: at most one of each IP version.
    fn denied(&self) -> Vec<IpAddr> {
        Vec::new()
    }

    /// What it does to frames in user space, if it has a twin there; chance follows from `seed`.
    fn rules(&self, _seed: u64) -> Option<Rules> {
        None
    }

    /// Makes the interfaces at `site`, which are up and bare, into this device.
    fn start(&self, site: &Site) -> Result<Running>;
}

/// Opens the kernel program of the device called `name`, lets `set_up` change it, and loads it; what fails is named.
fn load<'o, B: SkelBuilder<'o>>(
    name: &str,
    builder: B,
    object: &'o mut MaybeUninit<OpenObject>,
    set_up: impl FnOnce(&mut B::Output) -> Result<()>,
) -> Result<<B::Output as OpenSkel<'o>>::Output> {
    let failed = |cause| Error::bpf(format!("cannot load the kernel program '{name}'"), cause);
    let mut open = builder.open(object).map_err(failed)?;
    set_up(&mut open)?;
    open.load().map_err(failed)
}

/// A handle on the counters of a device, if there can be one.
fn kept(handle: Result<MapHandle, libbpf_rs::Error>) -> Result<MapHandle> {
    handle.map_err(|cause| Error::bpf("cannot keep the device's counters", cause))
}

/// Frames carry an FCS that programs do not see.
const FCS: u64 = wire::size::FCS as u64;

/// The first `N` 64-bit words of entry `key` of a map, one array for each copy of it: one, or
/// one for each possible core.
fn words<const N: usize>(map: &MapHandle, key: u32) -> Result<Vec<[u64; N]>> {
    use libbpf_rs::{MapCore, MapFlags, MapType};
    let failed = |cause| Error::bpf("cannot read the device's counters", cause);
    let key = key.to_ne_bytes();
    let copies = match map.map_type() {
        MapType::PercpuArray => map.lookup_percpu(&key, MapFlags::ANY).map_err(failed)?,
        _ => map.lookup(&key, MapFlags::ANY).map_err(failed)?.map(|value| vec![value]),
    };
    let word = |value: &[u8], index: usize| {
        let bytes = value.get(index * 8..).and_then(|rest| rest.first_chunk());
        bytes.copied().map(u64::from_ne_bytes).unwrap_or_default()
    };
    Ok(copies
        .unwrap_or_default()
        .iter()
        .map(|value| std::array::from_fn(|index| word(value, index)))
        .collect())
}

/// The constants of a kernel program before it is loaded.
fn constants<T>(rodata: Option<&mut T>) -> Result<&mut T> {
    rodata.ok_or_else(|| Error::Unexpected("a kernel program was built without its constants".to_owned()))
}
