//! A device under test between two tester ports, on one machine: a configuration enters, the
//! two ports leave.
//!
//! ```text
//! tester namespace            device's namespace
//!   port0  ───── veth ─────  dut0
//!   port1  ───── veth ─────  dut1
//! ```
//!
//! The ports of a device that is a virtual machine are taps instead, which its program opens; its namespace stays empty.
//!
//! Receiving for `dut0` and `dut1` runs on kernel threads pinned to the device's core, so that
//! its work never lands on a core that generates. Everything is held by file descriptors.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use std::{slice, thread};

use libbpf_rs::Link as XdpLink;
use wire::MacAddress;

use crate::configuration;
use crate::device::{Addressing, Attachment, Counters, Device, Running, Site};
use crate::error::{Error, Result};
use crate::forgotten::Forgotten;
use crate::interface_counters::{self, InterfaceCounters};
use crate::namespace::Namespace;
use crate::napi::{self, NapiThread, ThreadFinder, Turn};
use crate::netlink::{Link, VethEnd};
use crate::offloads;
use crate::pass;
use crate::placement::{self, Placement, PlacementError};
use crate::plan::{SIDES, Side};
use crate::ports::{Port, describe};
use crate::settings;
use crate::tap;

/// Bytes of a frame that are not its packet: Ethernet header and FCS. VLAN tags come out of the
/// packet's share here, so the MTU is large enough with and without them.
pub(crate) const FRAME_OVERHEAD: usize = wire::ethernet::LENGTH + wire::size::FCS as usize;

/// How long the kernel may still report the multicast groups of new addresses. Afterwards a lab
/// is silent, and every frame in it is one that was sent on purpose.
const SETTLING: Duration = Duration::from_millis(50);

/// What Ethernet carries unless larger frames are asked for.
const DEFAULT_MTU: usize = 1500;

/// What a lab is to be.
#[derive(Clone, Debug)]
pub struct Config {
    /// The device under test.
    pub dut: Arc<dyn Device>,
    /// Which core does what.
    pub placement: Placement,
    /// The largest frame that will be sent, in bytes, FCS included: 64 to 9216.
    pub max_frame_size: usize,
}

/// A running lab. Dropping it removes everything, and so does the end of the process.
#[derive(Debug)]
pub struct Lab {
    // Fields are dropped in this order: programs first, then the namespaces with the links.
    running: Running,
    ports: [Port; 2],
    dut: Arc<dyn Device>,
    placement: Placement,
    threads: ThreadFinder,
    tester: Namespace,
    device: Namespace,
}

impl Lab {
    /// Builds a lab: namespaces, links, the device. Receiving is pinned as [`Lab::pin`] does.
    ///
    /// # Errors
    /// [`Error`], when the kernel refuses a step. Nothing is left behind then.
    pub fn start(config: &Config) -> Result<Self> {
        let asked = config.max_frame_size;
        let (least, most) = (wire::size::MIN.into(), wire::size::MAX.into());
        if asked < least || asked > most {
            return Err(Error::FrameSize { asked, least, most });
        }
        let online = placement::host()?.numbers();
        let queues = config.dut.queues();
        if let Some(core) = queues.cores.iter().copied().find(|core| !online.contains(core)) {
            return Err(PlacementError::NoSuchCore { core, online }.into());
        }
        let mtu = (asked - FRAME_OVERHEAD).max(DEFAULT_MTU) as u32;
        let threads = ThreadFinder::new();
        let tester = quiet_namespace("0")?;
        let device = quiet_namespace("1")?;
        let (port_links, mut running) = match config.dut.attachment() {
            Attachment::Veth => {
                connect(&tester, &device, mtu, queues.count)?;
                set_offloads(&tester, SIDES.map(|side| side.port), true)?;
                set_offloads(&device, SIDES.map(|side| side.interface), config.dut.gro())?;
                let port_links = bring_up(&tester, SIDES.map(|side| side.port))?;
                let interfaces = bring_up(&device, SIDES.map(|side| side.interface))?;
                let site = Site { namespace: &device, interfaces: &interfaces, core: config.placement.dut };
                (port_links, config.dut.start(&site)?)
            }
            Attachment::Tap => {
                tester
                    .netlink(|netlink| SIDES.iter().try_for_each(|side| tap::create(netlink, side, mtu)))?;
                (bring_up(&tester, SIDES.map(|side| side.port))?, Running::default())
            }
        };
        let device = running.moved.take().unwrap_or(device);
        address_ports(&tester, &port_links)?;

        let addressing = config.dut.addressing();
        let [zero, one] = tester.run(|| {
            let [zero, one] = &port_links;
            Ok([describe(zero, next_hop(addressing, 0)), describe(one, next_hop(addressing, 1))])
        })?;
        let lab = Self {
            running,
            ports: [zero, one],
            dut: Arc::clone(&config.dut),
            placement: config.placement.clone(),
            threads,
            tester,
            device,
        };
        lab.pin()?;
        thread::sleep(SETTLING);
        Ok(lab)
    }

    /// Whether the device's namespace has `dut0` and `dut1`: not where a program takes the frames of the ports.
    #[must_use]
    pub fn has_interfaces(&self) -> bool {
        self.dut.attachment() == Attachment::Veth
    }

    /// The tester's ports.
    #[must_use]
    pub fn ports(&self) -> &[Port; 2] {
        &self.ports
    }

    /// The IPv4 addresses of port 0 and of a router's interface there.
    #[must_use]
    pub fn first_link(&self) -> [IpAddr; 2] {
        let [side, _] = SIDES;
        [side.port_addresses[0], side.interface_addresses[0]]
    }

    /// The device under test.
    #[must_use]
    pub fn dut(&self) -> &Arc<dyn Device> {
        &self.dut
    }

    /// Which core does what.
    #[must_use]
    pub fn placement(&self) -> &Placement {
        &self.placement
    }

    /// Where the tester's ports are.
    #[must_use]
    pub fn tester_namespace(&self) -> &Namespace {
        &self.tester
    }

    /// Where the device is.
    #[must_use]
    pub fn dut_namespace(&self) -> &Namespace {
        &self.device
    }

    /// Puts receiving on its cores: the device's interfaces on the device's, the tester's ports
    /// on the receiving core where that is another one. To be called again after an XDP program
    /// was attached or detached, since the kernel may have replaced the threads then.
    ///
    /// # Errors
    /// [`Error`], when a thread cannot be found or pinned: the device would then run on the
    /// generator's core, and no figure would mean anything.
    pub fn pin(&self) -> Result<Vec<NapiThread>> {
        if !self.has_interfaces() {
            return Ok(Vec::new());
        }
        let mut pinned = pin_all(
            &self.device,
            SIDES.map(|s| s.interface),
            &self.threads,
            (self.dut.queues().cores(&self.placement.dut_workers), Turn::AtOnce),
        )?;
        if !self.placement.receives_on_dut_core() {
            let ports = SIDES.map(|side| side.port);
            let place = (slice::from_ref(&self.placement.receive), Turn::AtOnce);
            pinned.extend(pin_all(&self.tester, ports, &self.threads, place)?);
        }
        Ok(pinned)
    }

    /// Gives the tester's ports receiving threads of their own even where they share the device's
    /// core, so that the time of these can tell what receiving costs. For that measurement
    /// only: at full load the two compete for the core, and frames are lost between them.
    ///
    /// # Errors
    /// As [`Lab::pin`].
    pub fn receive_apart(&self) -> Result<Vec<NapiThread>> {
        let place = (slice::from_ref(&self.placement.receive), Turn::AfterOthers);
        pin_all(&self.tester, SIDES.map(|side| side.port), &self.threads, place)
    }

    /// Makes the kernel receive frames at port 1 one by one, as they come, for the rest of the lab's life:
    /// it may merge segments of TCP otherwise (GRO), which other frames then overtake. To be held as
    /// long as frames are received.
    ///
    /// # Errors
    /// [`Error`], when the kernel refuses a step.
    pub fn receive_unmerged(&self) -> Result<Unmerged> {
        let [_, side] = SIDES;
        let link = pass::attach(&self.tester, side.port_index)?;
        self.tester.run(|| offloads::set(side.port, &[offloads::GRO], false))?;
        Ok(Unmerged(link))
    }

    /// Resets the device as far as a lab can: takes its interfaces down and up again, and restores
    /// what the kernel forgot meanwhile, what was added to the device later too.
    ///
    /// # Errors
    /// [`Error`], when the kernel refuses a step; the device may not forward any more then.
    pub fn reset(&self) -> Result<()> {
        if !self.has_interfaces() {
            return Err(Error::NoInterfaces { device: self.dut.name() });
        }
        let names = SIDES.map(|side| side.interface);
        let forgotten = self.device.netlink(|netlink| {
            let forgotten = Forgotten::read(netlink)?;
            names.iter().try_for_each(|name| netlink.set_down(netlink.expect_link(name)?.index))?;
            Ok(forgotten)
        })?;
        self.running.reset()?;
        bring_up(&self.device, names)?;
        self.device.netlink(|netlink| forgotten.restore(netlink))?;
        self.pin().map(|_| ())
    }

    /// The threads that receive for the device, which do its work.
    ///
    /// # Errors
    /// [`Error`], when the namespace cannot be looked into.
    pub fn dut_threads(&self) -> Result<Vec<NapiThread>> {
        if !self.has_interfaces() {
            return Ok(Vec::new());
        }
        configuration::threads(&self.device, SIDES.map(|side| side.interface), &self.threads)
    }

    /// Every thread that does the device's work, by its id: those of [`Lab::dut_threads`], and of a
    /// device in user space its own.
    ///
    /// # Errors
    /// [`Error`], when the namespace cannot be looked into.
    pub fn dut_work(&self) -> Result<Vec<i32>> {
        let receiving = self.dut_threads()?;
        Ok(receiving.iter().map(|thread| thread.pid).chain(self.running.threads().iter().copied()).collect())
    }

    /// All threads that receive: those of [`Lab::dut_threads`], and those of the tester's ports
    /// where these receive on a core of their own.
    ///
    /// # Errors
    /// [`Error`], when a namespace cannot be looked into.
    pub fn threads(&self) -> Result<Vec<NapiThread>> {
        let mut threads = self.dut_threads()?;
        if !self.has_interfaces() {
            return Ok(threads);
        }
        threads.extend(configuration::threads(&self.tester, SIDES.map(|side| side.port), &self.threads)?);
        Ok(threads)
    }

    /// The device's configuration as the kernel tells it now.
    ///
    /// # Errors
    /// [`Error`], when the kernel does not tell.
    pub fn dut_configuration(&self) -> Result<BTreeMap<String, String>> {
        if !self.has_interfaces() {
            return Ok(BTreeMap::new());
        }
        let mut found = configuration::read(&self.device, SIDES.map(|side| side.interface), &self.threads)?;
        if let Some(jail) = self.running.jail() {
            let inside = jail.netlink(configuration::routing)?;
            found.extend(inside.into_iter().map(|(name, value)| (format!("jail {name}"), value)));
        }
        Ok(found)
    }

    /// What the kernel counted at the ports, and at the device's `dut0` and `dut1` where these are.
    ///
    /// # Errors
    /// [`Error`], when a namespace cannot be looked into.
    pub fn interface_counters(&self) -> Result<Vec<InterfaceCounters>> {
        let ports = self.tester.run(|| interface_counters::read(SIDES.map(|side| side.port)))?;
        if !self.has_interfaces() {
            return Ok(ports.map(InterfaceCounters::of_tap).into());
        }
        let device = self.device.run(|| interface_counters::read(SIDES.map(|side| side.interface)))?;
        Ok(ports.into_iter().chain(device).collect())
    }

    /// What the device counted: what entered by `dut0`, what entered by `dut1`. `None` where the
    /// device does not count.
    ///
    /// # Errors
    /// [`Error::Bpf`], when the counters cannot be read.
    pub fn dut_counters(&self) -> Result<Option<[Counters; 2]>> {
        self.running.counters().transpose()
    }
}

/// A namespace whose interfaces keep silent until they are used, whatever the machine's defaults
/// are, and whose addresses are ready at once.
///
/// # Errors
/// [`Error`], when the kernel refuses a step.
pub fn quiet_namespace(disable_ipv6: &str) -> Result<Namespace> {
    let settings = [
        ("ipv4/ip_forward", "0"),
        ("ipv4/conf/all/rp_filter", "0"),
        ("ipv4/conf/default/rp_filter", "0"),
        ("ipv4/conf/all/send_redirects", "0"),
        ("ipv4/conf/default/send_redirects", "0"),
        ("ipv6/conf/default/disable_ipv6", disable_ipv6),
        ("ipv6/conf/default/addr_gen_mode", "1"), // no link-local addresses
        ("ipv6/conf/default/accept_dad", "0"),
        ("ipv6/conf/default/dad_transmits", "0"),
        ("ipv6/conf/default/accept_ra", "0"),
        ("ipv6/conf/default/autoconf", "0"),
        ("ipv6/conf/default/router_solicitations", "0"),
        // Multicast groups are reported two or three times, this far apart (in ms).
        ("ipv6/conf/default/mldv1_unsolicited_report_interval", "1"),
        ("ipv6/conf/default/mldv2_unsolicited_report_interval", "1"),
    ];
    let namespace = Namespace::create()?;
    namespace.netlink(|netlink| {
        for (setting, value) in settings {
            settings::set(setting, value)?;
        }
        netlink.set_up(netlink.expect_link("lo")?.index)
    })?;
    Ok(namespace)
}

/// The two veth pairs, down; the device receives by so many queues at each.
fn connect(tester: &Namespace, device: &Namespace, mtu: u32, queues: u32) -> Result<()> {
    tester.netlink(|netlink| {
        for side in SIDES {
            let ours = VethEnd {
                name: side.port,
                index: side.port_index,
                mac: side.port_mac,
                mtu,
                receive_queues: 1,
            };
            let theirs = VethEnd {
                name: side.interface,
                index: side.interface_index,
                mac: side.interface_mac,
                mtu,
                receive_queues: queues,
            };
            netlink.add_veth(&ours, &theirs, device.fd())?;
        }
        Ok(())
    })
}

/// Port 1 of a lab while it receives frames one by one.
pub struct Unmerged(
    #[expect(dead_code, reason = "held for what the kernel does when it is dropped")] XdpLink,
);

/// Frames leave as they will be seen on the wire. `gro` gives a veth NAPI, with
/// which alone it takes redirected frames; so does an XDP program.
pub(crate) fn set_offloads(namespace: &Namespace, interfaces: [&str; 2], gro: bool) -> Result<()> {
    namespace.run(|| {
        for interface in interfaces {
            offloads::set(interface, &offloads::ON_LEAVING, false)?;
            offloads::set(interface, &[offloads::GRO], gro)?;
        }
        Ok(())
    })
}

/// Brings two interfaces of `namespace` up, which must be there.
///
/// # Errors
/// [`Error`], when the kernel refuses a step.
pub fn bring_up(namespace: &Namespace, [zero, one]: [&str; 2]) -> Result<[Link; 2]> {
    namespace.netlink(|netlink| {
        let up = |name| {
            let link = netlink.expect_link(name)?;
            netlink.set_up(link.index).map(|()| link)
        };
        Ok([up(zero)?, up(one)?])
    })
}

/// The tester's own addresses, by which it can ping a router.
fn address_ports(tester: &Namespace, links: &[Link; 2]) -> Result<()> {
    tester.netlink(|netlink| {
        for (link, side) in links.iter().zip(SIDES) {
            for (address, prefix) in side.port_addresses.into_iter().zip(side.prefixes) {
                netlink.add_address(link.index, address, prefix)?;
            }
        }
        Ok(())
    })
}

/// Where frames leaving port `port` are addressed to.
fn next_hop(addressing: Addressing, port: usize) -> MacAddress {
    let [this, other]: [Side; 2] = if port == 0 { SIDES } else { [SIDES[1], SIDES[0]] };
    match addressing {
        Addressing::Device => this.interface_mac,
        Addressing::OtherPort => other.port_mac,
    }
}

/// Pins the threads of each interface, queue by queue, to `cores` in turn.
pub(crate) fn pin_all(
    namespace: &Namespace,
    interfaces: [&str; 2],
    threads: &ThreadFinder,
    (cores, turn): (&[usize], Turn),
) -> Result<Vec<NapiThread>> {
    namespace.netlink(|netlink| {
        let mut pinned = Vec::new();
        for name in interfaces {
            napi::set_threaded(name)?;
            let found = threads.find(name, netlink.expect_link(name)?.index);
            if found.is_empty() {
                return Err(Error::Unexpected(format!("{name} has no thread that receives for it")));
            }
            for (pid, core) in found.into_iter().zip(cores.iter().cycle()) {
                napi::pin(pid, *core, turn)?;
                pinned.push(NapiThread { interface: name.to_owned(), pid, core: Some(*core) });
            }
        }
        Ok(pinned)
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::placement::{Wishes, host};

    /// A lab whose device does nothing.
    pub(crate) fn start() -> Lab {
        let placement = Placement::choose(&host().unwrap(), &Wishes::default()).unwrap();
        Lab::start(&Config { dut: Arc::new(crate::capabilities::Nothing), placement, max_frame_size: 1518 })
            .unwrap()
    }

    #[test]
    fn frames_go_to_the_device_or_through_it() {
        let next_hops = |addressing| [0, 1].map(|port| next_hop(addressing, port));
        let [zero, one] = SIDES;
        assert_eq!(next_hops(Addressing::Device), [zero.interface_mac, one.interface_mac]);
        assert_eq!(next_hops(Addressing::OtherPort), [one.port_mac, zero.port_mac]);
    }
}
