//! Ports of DPDK among the devices of the running router: the configuration enters; DPDK, started where one
//! of them needs it, and their control ends leave.

use std::sync::Arc;
use std::time::Instant;

use ::dpdk::Dpdk;
use anyhow::{Context, Result, bail};
use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;
use nix::sched::{sched_getaffinity, sched_getcpu};
use nix::unistd::Pid;

use super::LOOK;
use crate::control::config::{Attachment, Config, Device, Interface};
use crate::control::show::hardware::{Link, Lost};
use crate::device::Queues;
use crate::device::dpdk::{self, Control, Wanted};

/// The ports that are to be, by the name of their interface, and what drives them.
pub(super) struct Ports(Option<(Arc<Dpdk>, ByInterface)>);

/// The name of an interface, and its port.
type ByInterface = Vec<(String, Wanted)>;

impl Ports {
    /// Starts DPDK if the configuration has ports of it.
    ///
    /// # Errors
    /// When DPDK does not start, or the kernel has no interface of a port's name.
    pub fn start(config: &Config) -> Result<Self> {
        let wanted: ByInterface = config
            .interfaces
            .iter()
            .filter_map(|interface| Some((interface.name.clone(), wanted(interface, config)?)))
            .collect();
        if wanted.is_empty() {
            return Ok(Self(None));
        }
        let all: Vec<Wanted> = wanted.iter().map(|(_, wanted)| wanted.clone()).collect();
        let mut interfaces = all.iter().filter_map(|wanted| wanted.port.interface());
        if let Some(interface) = interfaces.find(|interface| flags(interface).is_none()) {
            bail!("the kernel has no interface '{interface}' here: `ip link` lists those that it has");
        }
        Ok(Self(Some((dpdk::start(core(&config.workers.cores), &all)?, wanted))))
    }

    /// Opens the port of the interface `name`.
    ///
    /// # Errors
    /// When there is no such device, or it refuses a setting.
    pub fn open(&self, name: &str) -> Result<(End, Queues)> {
        let known = self.0.as_ref().and_then(|(dpdk, all)| {
            let (_, wanted) = all.iter().find(|(of, _)| of == name)?;
            Some((dpdk, wanted))
        });
        let (dpdk, wanted) = known.with_context(|| format!("{name} is no port of DPDK"))?;
        let interface = wanted.port.interface().map(str::to_owned);
        let (control, queues) = wanted.open(dpdk)?;
        let mut end =
            End { control, interface, most_mtu: wanted.most_mtu(), link: Link::Up, looked: Instant::now() };
        end.link = end.link();
        Ok((end, queues))
    }
}

/// What the port of an interface is to be, if it has one.
fn wanted(interface: &Interface, config: &Config) -> Option<Wanted> {
    let Attachment::Device(Device::Port(port)) = &interface.attachment else { return None };
    let (mtu, workers) = (config.longest_mtu(interface), config.workers.cores.len());
    Some(Wanted { port: port.clone(), mtu, workers })
}

/// The core for what DPDK does beside moving frames: one that no worker has, else the one that this thread is
/// on.
fn core(workers: &[usize]) -> usize {
    let usable = sched_getaffinity(Pid::from_raw(0)).unwrap_or_default();
    let is_free = |core: &usize| usable.is_set(*core).unwrap_or(false) && !workers.contains(core);
    let free = (0..nix::sched::CpuSet::count()).find(is_free);
    free.or_else(|| sched_getcpu().ok()).unwrap_or_default()
}

/// The control end of a port.
pub(super) struct End {
    control: Control,
    /// The interface of the kernel that it is, if it is one.
    interface: Option<String>,
    most_mtu: u16,
    /// As it was when it was looked at.
    link: Link,
    looked: Instant,
}

impl End {
    /// Looks after the link now and then, and says what became of it.
    pub fn poll(&mut self) -> Option<String> {
        if self.looked.elapsed() < LOOK {
            return None;
        }
        self.looked = Instant::now();
        let link = self.link();
        let has_changed = link != self.link;
        self.link = link;
        has_changed.then(|| self.link.to_string())
    }

    /// The frames that it lost; `None` when its driver does not say.
    pub fn lost(&self) -> Option<Lost> {
        self.control.lost().ok()
    }

    /// The largest MTU that its buffers have room for.
    pub fn most_mtu(&self) -> u16 {
        self.most_mtu
    }

    /// Whether there is somebody at its other end. The kernel knows more of its interfaces than the drivers
    /// for them do.
    pub fn link(&self) -> Link {
        let down = Link::Down;
        let Some(interface) = &self.interface else {
            return match self.control.is_up() {
                Some(false) => down("no peer is connected".into()),
                _ => Link::Up,
            };
        };
        match flags(interface) {
            None => down(format!("the kernel has lost the interface {interface}: restart the router")),
            Some(flags) if !flags.contains(InterfaceFlags::IFF_UP) => {
                down(format!("set it up: ip link set dev {interface} up"))
            }
            Some(flags) if !flags.contains(InterfaceFlags::IFF_RUNNING) => {
                down("no peer is connected".into())
            }
            Some(_) => Link::Up,
        }
    }
}

/// What the kernel says of an interface; `None` if there is none of this name.
fn flags(interface: &str) -> Option<InterfaceFlags> {
    let mut all = getifaddrs().ok()?;
    all.find(|entry| entry.interface_name == interface).map(|entry| entry.flags)
}
