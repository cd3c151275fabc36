//! A device in user space, or ports that the user names: the one or the other enters, two ports that an engine can
//! open leave, with a device that Linerate starts between them where that is asked for.

#[cfg(feature = "dpdk")]
mod card;
#[cfg_attr(not(feature = "dpdk"), path = "user_space/dpdk_absent.rs")]
pub mod dpdk;
mod link;
pub mod memif;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use ::memif::Socket;
use anyhow::Result;
use dut::program::{Dut, Paused, Site, testpmd, vpp};
use dut::{DutSpec, Passed};
use engine::Engine;
use engine::replay::Carrier;
use engine::user_space::MAX_FRAME;
use lab::placement::{PlacementError, Wishes};
use lab::{InterfaceCounters, NapiThread, Placement, Port};
use programs::is_installed;
use results::record::{self, NodeRuntimes};
use traffic::FrameTable;
use wire::MacAddress;
use wording::usage::misuse;

use crate::target::{EngineName, Named};
use link::{Link, Watch};

/// Two ports of user space, not yet open, and the device between them if it is ours.
pub struct UserSpace {
    engine: EngineName,
    ports: [Port; 2],
    link: Box<dyn Link>,
    dut: Option<Dut>,
    /// The cores that receive, where they are not those that send.
    receive_cores: Vec<usize>,
    /// The ports of the engine that was started last.
    watch: RefCell<Option<Watch>>,
    /// Where a device is started.
    site: Site,
    /// The core of such a device, or of its first worker.
    core: usize,
}

/// One memif between the tester's two ports. The device under test is held up meanwhile.
pub struct Cable<'a> {
    link: Box<dyn Link>,
    _paused: Paused,
    of: &'a UserSpace,
}

/// Bytes of a frame that an MTU does not count.
const OVERHEAD: usize = wire::size::ETHERNET as usize;

impl UserSpace {
    /// The ports that the user names; frames of up to `max_frame_size` bytes fit.
    pub fn open(
        engine: EngineName,
        named: &Named,
        placement: &Placement,
        max_frame_size: usize,
    ) -> Result<Self> {
        let link = to_named(engine, named.ports.clone(), main_core(placement), named.force)?;
        let site = site(placement, max_frame_size)?;
        Ok(Self::over(engine, link, None, named.next_hops, placement, site))
    }

    /// Starts a device; frames of up to `max_frame_size` bytes fit.
    pub fn start(
        engine: EngineName,
        dut: &DutSpec,
        placement: &Placement,
        max_frame_size: usize,
    ) -> Result<Self> {
        let site = site(placement, max_frame_size)?;
        if let Some(refusal) = engine_refusal(engine) {
            return Err(misuse(refusal));
        }
        let dut = Dut::start(dut, &site, [mac(0), mac(1)])?;
        let link = to_sockets(engine, &dut.sockets(), max_frame_size, main_core(placement))?;
        let next_hops = dut.next_hops();
        Ok(Self::over(engine, link, Some(dut), next_hops, placement, site))
    }

    fn over(
        engine: EngineName,
        link: Box<dyn Link>,
        dut: Option<Dut>,
        next_hops: Option<[MacAddress; 2]>,
        placement: &Placement,
        site: Site,
    ) -> Self {
        let ports = [0, 1].map(|number| port(number, &link.devices()[usize::from(number)], next_hops));
        let receive_cores = placement.receive_cores.clone();
        let core = placement.dut;
        Self { engine, ports, link, dut, receive_cores, watch: RefCell::default(), site, core }
    }

    /// The ports, as far as they are known before they are open.
    pub fn ports(&self) -> &[Port; 2] {
        &self.ports
    }

    /// The engine that sends and receives.
    pub fn engine(&self) -> EngineName {
        self.engine
    }

    /// The devices that are the ports.
    pub fn devices(&self) -> &[String; 2] {
        self.link.devices()
    }

    /// An idle engine that sends `table` between the ports, on `cores`.
    pub fn start_engine(
        &self,
        table: &FrameTable,
        cores: &[usize],
        stop: &Arc<AtomicBool>,
    ) -> Result<Box<dyn Engine>> {
        self.engine_over(&*self.link, table, cores, stop)
    }

    fn engine_over(
        &self,
        link: &dyn Link,
        table: &FrameTable,
        cores: &[usize],
        stop: &Arc<AtomicBool>,
    ) -> Result<Box<dyn Engine>> {
        let (engine, watch) = link.start_engine(table, [cores, &self.receive_cores], stop)?;
        *self.watch.borrow_mut() = Some(watch);
        Ok(engine)
    }

    /// What was counted at the two ports of the engine that runs, and at the started device if it counts.
    pub fn interface_counters(&self) -> Result<Vec<InterfaceCounters>> {
        let Some(ports) = self.watch.borrow().as_ref().map(|watch| watch()).transpose()?.flatten() else {
            return Ok(Vec::new());
        };
        let device = self.dut.as_ref().map(Dut::counters).transpose()?;
        Ok(ports.into_iter().chain(device.into_iter().flatten()).collect())
    }

    /// Connects the tester's two ports with each other in the place of the device, as long as the result lives;
    /// `None` where the device is not ours.
    pub fn cable(&self) -> Result<Option<Cable<'_>>> {
        let Some(dut) = &self.dut else { return Ok(None) };
        let paused = dut.pause();
        let link: Box<dyn Link> = match self.engine {
            EngineName::Memif => Box::new(memif::Ends::of_a_cable()?),
            _ => Box::new(dpdk::Ports::of_a_cable(self.site.max_frame_size, self.core)?),
        };
        Ok(Some(Cable { link, _paused: paused, of: self }))
    }

    /// Whether the device is ours.
    pub fn has_own_dut(&self) -> bool {
        self.dut.is_some()
    }

    /// The threads of the device that was started here.
    pub fn dut_threads(&self) -> Vec<NapiThread> {
        self.dut.as_ref().map(Dut::threads).unwrap_or_default()
    }

    /// What the nodes of the device that was started here have done since, if it is a graph of them.
    pub fn nodes(&self) -> Result<NodeRuntimes> {
        self.dut.as_ref().map_or_else(|| Ok(NodeRuntimes::new()), Dut::nodes)
    }

    /// What the device that was started here counted, if it counts: entered at port 0, entered at port 1.
    pub fn counted(&self) -> Option<[Passed; 2]> {
        self.dut.as_ref()?.counted()
    }

    /// What the tester's ceiling depends on, in words: its ports, but not what they are called.
    pub fn kind_of_ports(&self) -> String {
        match self.dut {
            Some(_) => format!("both ends of a memif, frames of up to {} bytes", self.site.max_frame_size),
            None => self.devices().join(" and "),
        }
    }

    /// The ports for frames as they are, of up to `longest` bytes without FCS.
    pub fn carrier(&self, longest: usize) -> Result<Box<dyn Carrier>> {
        self.link.carrier(longest)
    }

    /// What the device is called.
    pub fn dut_name(&self) -> &str {
        self.dut.as_ref().map_or("ports", Dut::name)
    }

    /// The device, for the record.
    pub fn describe_dut(&self) -> record::Dut {
        let text = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
        };
        record::Dut {
            name: self.dut_name().to_owned(),
            parameters: self.dut.as_ref().map(|dut| dut.parameters().clone()).unwrap_or_default(),
            configuration: match &self.dut {
                Some(dut) => dut.configuration().clone(),
                None => text(&[("port 0", &self.devices()[0]), ("port 1", &self.devices()[1])]),
            },
            core: self.dut.as_ref().map(|_| self.core),
            cores: several(&self.site.cores),
            ..record::Dut::default()
        }
    }
}

impl Cable<'_> {
    /// As [`UserSpace::start_engine`]. It is to be dropped before the cable.
    pub fn start_engine(
        &self,
        table: &FrameTable,
        cores: &[usize],
        stop: &Arc<AtomicBool>,
    ) -> Result<Box<dyn Engine>> {
        self.of.engine_over(&*self.link, table, cores, stop)
    }
}

/// A core that neither the tester nor a device that is started here needs.
fn spare(placement: &Placement) -> Result<Option<usize>> {
    let Placement { generate, receive_cores, dut_workers, .. } = placement;
    let online = lab::placement::online().map_err(lab::Error::from)?;
    let is_free =
        |core: &usize| ![generate, receive_cores, dut_workers].iter().any(|taken| taken.contains(core));
    Ok(online.into_iter().find(is_free))
}

/// Where a device is started.
fn site(placement: &Placement, max_frame_size: usize) -> Result<Site> {
    Ok(Site {
        cores: placement.dut_workers.clone(),
        shared: placement.shares_dut_cores(),
        spare: spare(placement)?,
        // As many of each port as the engine opens.
        queues: placement.generate.len().max(placement.receive_cores.len()),
        max_frame_size,
    })
}

/// The core for what an engine does beside sending and receiving.
fn main_core(placement: &Placement) -> usize {
    placement.generate.first().copied().unwrap_or_default()
}

/// The address of the tester's port `number`.
fn mac(number: u8) -> MacAddress {
    MacAddress([2, 0, 0, 0, number, 1])
}

/// What is known of the port that `device` names. Its own address is ours to choose, since ports receive
/// what is addressed to anyone. Frames go to the device at `next_hops`, or to the other port: what is no
/// router looks at no addresses, or swaps them.
fn port(number: u8, device: &str, next_hops: Option<[MacAddress; 2]>) -> Port {
    let (name, driver) = match device.split_once("memif:") {
        Some(("", _)) => (format!("memif{number}"), Some("memif".to_owned())),
        _ => {
            let name = device.split(',').next().unwrap_or_default();
            let driver = name.trim_end_matches(|last: char| last.is_ascii_digit());
            (name.to_owned(), (!name.contains(':')).then(|| driver.to_owned()))
        }
    };
    Port {
        name,
        ifindex: 0,
        mac: mac(number),
        mtu: (MAX_FRAME - OVERHEAD) as u32,
        speed_bps: None,
        driver,
        next_hop_mac: next_hops.map_or(mac(1 - number), |hops| hops[usize::from(number)]),
    }
}

/// What keeps `engine` from being used.
fn engine_refusal(engine: EngineName) -> Option<String> {
    #[cfg(not(feature = "dpdk"))]
    if engine == EngineName::Dpdk {
        return Some(dpdk::ABSENT.to_owned());
    }
    let _ = engine;
    None
}

/// What keeps a load test by `engine` with further `options` from being run, through the device `dut` or between ports of
/// the user's.
pub fn refusal(engine: EngineName, dut: Option<&DutSpec>, options: &[String]) -> Option<String> {
    if let Some(refusal) = engine_refusal(engine) {
        return Some(refusal);
    }
    let dut = dut?;
    match dut.name() {
        // The lab has its own word on devices that are none of it.
        _ if !engine.is_in_user_space() => too_few_cores(dut, options),
        testpmd::NAME if !is_installed(testpmd::EXECUTABLE) => {
            Some(format!("{} is not installed; install it (Debian's package dpdk-dev)", testpmd::EXECUTABLE))
        }
        vpp::NAME => vpp::refusal().or_else(|| too_few_cores(dut, options)),
        _ => too_few_cores(dut, options),
    }
}

/// Why the workers of `dut` find no place on this machine beside a tester on the cores that `options` name, or on one.
fn too_few_cores(dut: &DutSpec, options: &[String]) -> Option<String> {
    let named = options.windows(2).find(|pair| pair[0] == "--cores").map(|pair| pair[1].split(','));
    let generate = named.map(|cores| cores.filter_map(|core| core.parse().ok()).collect::<Vec<_>>());
    let (dut_workers, host) = (lab::Device::workers(dut), lab::placement::host().ok()?);
    let wishes = Wishes { generate: generate.clone(), dut_workers: dut_workers.clone(), ..Wishes::default() };
    let refused = match Placement::choose(&host, &wishes).err()? {
        // Cores that the bench names for the tester on a larger host.
        PlacementError::NoSuchCore { .. } if dut_workers.cores.is_empty() => {
            PlacementError::TooFewForDevice {
                needed: dut_workers.count.max(1) + dut_workers.beside,
                tester: generate.map_or(1, |cores| cores.len()),
                cores: host.cores.len(),
            }
        }
        other => other,
    };
    Some(format!("{dut}: {refused}"))
}

/// The cores of a device that has several.
pub fn several(cores: &[usize]) -> Vec<usize> {
    if cores.len() > 1 { cores.to_vec() } else { Vec::new() }
}

/// The other ends of a device that listens at `sockets`, for frames of up to `longest` bytes; `core` is for
/// what DPDK does beside.
///
/// # Errors
/// When the engine is unavailable.
fn to_sockets(
    engine: EngineName,
    sockets: &[Socket; 2],
    longest: usize,
    core: usize,
) -> Result<Box<dyn Link>> {
    match engine {
        EngineName::Memif => Ok(Box::new(memif::Ends::to(sockets))),
        _ => Ok(Box::new(dpdk::Ports::to(sockets, longest, core)?)),
    }
}

/// The two ports that a user names, who said `force` so many times.
///
/// # Errors
/// When they are none, or this machine needs one of them itself.
fn to_named(engine: EngineName, devices: [String; 2], core: usize, force: u8) -> Result<Box<dyn Link>> {
    match engine {
        EngineName::Memif => Ok(Box::new(memif::Ends::named(devices)?)),
        _ => Ok(Box::new(dpdk::Ports::named(devices, core, force)?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_workers_than_cores_are_refused_with_the_remedy() {
        let refused = |engine, dut: &str| refusal(engine, Some(&dut.parse().unwrap()), &[]);
        for engine in [EngineName::Auto, EngineName::Memif] {
            assert_eq!(refused(engine, "fastpath"), None);
            let said = refused(engine, "fastpath:workers=64").unwrap();
            assert!(
                said.starts_with("fastpath:workers=64: the device needs 64 cores beside the 1"),
                "{said}"
            );
            assert!(said.contains("Ask for fewer workers or take a host with more cores"), "{said}");
        }
        let (beyond, dut) =
            (["--cores".to_owned(), "0,1,4095".to_owned()], "fastpath:workers=3".parse().unwrap());
        let said = refusal(EngineName::Memif, Some(&dut), &beyond).unwrap();
        assert!(said.contains("needs 3 cores beside the 3 that the tester"), "{said}");
        let all: Vec<String> = lab::placement::online().unwrap().iter().map(ToString::to_string).collect();
        let (cores, dut) = (["--cores".to_owned(), all.join(",")], "fastpath:workers=2".parse().unwrap());
        let said = refusal(EngineName::Memif, Some(&dut), &cores).unwrap();
        assert!(said.contains(&format!("beside the {} that the tester", all.len())), "{said}");
    }

    #[test]
    fn a_port_is_named_after_its_device() {
        let hops = [MacAddress([6; 6]), MacAddress([7; 6])];
        assert_eq!(port(1, "0000:01:00.0", Some(hops)).next_hop_mac, hops[1]);
        let port = super::port(1, "net_memif12,role=client", None);
        assert_eq!((port.name.as_str(), port.driver.as_deref()), ("net_memif12", Some("net_memif")));
        assert_ne!(port.mac, port.next_hop_mac);
        let port = super::port(0, "memif:socket=/run/a", None);
        assert_eq!((port.name.as_str(), port.driver.as_deref()), ("memif0", Some("memif")));
    }
}
