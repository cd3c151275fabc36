//! What the main thread owns: requests and configurations enter, replies leave, and the router changes.

mod answers;
mod captures;
mod routes;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, anyhow};

use super::access_lists::AccessLists;
use super::devices::Opened;
use super::facts::{self, Moment};
use super::kernel::{Kernel, mtu_of_tap};
use super::memory;
use super::shortcuts::Shortcuts;
use crate::control::capture::Capturing;
use crate::control::config::{self, Attachment, Change, Config, difference};
use crate::control::kernel::Tap;
use crate::control::log::Limit;
use crate::control::protocol::{Answer, Reply, Request, Set};
use crate::control::router::{NeighbourCounts, Router};
use crate::control::snapshot::Snapshot;
use crate::control::threads::Workers;
use crate::dataplane::counters::Counters;
use crate::dataplane::forwarding::Role;
use crate::subnet::Subnet;

/// Of every worker what it had counted when counting began.
struct Baseline {
    since: Moment,
    counted: Vec<Snapshot>,
}

/// The router, and what it is to be.
pub(super) struct State {
    router: Router,
    kernel: Kernel,
    access_lists: AccessLists,
    config: Config,
    /// The numbers of interfaces, by name.
    numbers: HashMap<String, u16>,
    /// The file that it began with.
    file: PathBuf,
    devices: Vec<Opened>,
    shortcuts: Shortcuts,
    counters: Vec<Arc<Counters>>,
    /// The core and thread of each worker.
    placed: Vec<(usize, i32)>,
    start: Moment,
    /// The second since then of the router's last tick.
    ticked: u64,
    /// What had happened to neighbours by then.
    neighbours: NeighbourCounts,
    /// How often that is said.
    limit: Limit,
    runtime: Baseline,
    interfaces: Baseline,
    errors: Baseline,
    /// The packet capture that goes on.
    capturing: Option<Capturing>,
}

impl Baseline {
    fn new() -> Self {
        Self { since: Moment::now(), counted: Vec::new() }
    }

    /// What a worker has counted since, and what all have.
    fn of_each(&self, counters: &[Arc<Counters>]) -> Vec<Snapshot> {
        let none = Snapshot::default();
        let before = self.counted.iter().chain(std::iter::repeat(&none));
        counters.iter().zip(before).map(|(counters, before)| Snapshot::of(counters).since(before)).collect()
    }

    fn of_all(&self, counters: &[Arc<Counters>]) -> Snapshot {
        self.of_each(counters).iter().fold(Snapshot::of(&Counters::default()), |sum, one| sum.and(one))
    }

    fn begin(&mut self, counters: &[Arc<Counters>]) {
        *self = Self {
            since: Moment::now(),
            counted: counters.iter().map(|counters| Snapshot::of(counters)).collect(),
        };
    }
}

impl State {
    /// The router that `config` describes, which stands in `file`; without workers.
    pub fn new(config: Config, file: &Path) -> Result<Self> {
        let mut state = Self {
            router: Router::new()?,
            kernel: Kernel::default(),
            access_lists: AccessLists::default(),
            numbers: HashMap::new(),
            file: super::absolute(file),
            devices: Vec::new(),
            shortcuts: Shortcuts::default(),
            counters: Vec::new(),
            placed: Vec::new(),
            start: Moment::now(),
            ticked: 0,
            neighbours: NeighbourCounts::default(),
            limit: Limit::new(Instant::now()),
            runtime: Baseline::new(),
            interfaces: Baseline::new(),
            errors: Baseline::new(),
            capturing: None,
            config: Config {
                interfaces: config.interfaces.iter().map(bare).collect(),
                routes: Default::default(),
                neighbours: Default::default(),
                bridges: Vec::new(),
                access_lists: Default::default(),
                ..config.clone()
            },
        };
        state.router.set_states(config.states);
        for interface in &config.interfaces {
            let number = match &interface.attachment {
                Attachment::Device(_) => {
                    state.router.add_device(&interface.name, interface.mac, interface.mtu)?
                }
                Attachment::Vlan { parent, id } => {
                    let parent = state.number(parent)?;
                    state.router.add_vlan(parent, *id)?
                }
            };
            state.numbers.insert(interface.name.clone(), number);
            let (mac, mtu) = (interface.mac, interface.mtu);
            state.router.set_interface(number, |new| {
                new.mac = mac;
                new.mtu = mtu;
            })?;
            if interface.tap {
                state.kernel.join(&mut state.router, number, interface)?;
            }
        }
        let changes = difference(&state.config, &config).map_err(all)?;
        state.make_all(changes)?;
        Ok(state)
    }

    /// What is known when workers are there.
    ///
    /// # Errors
    /// When the kernel does not let its routes or frames be followed.
    pub fn started(&mut self, devices: Vec<Opened>, shortcuts: Shortcuts, workers: &Workers) -> Result<()> {
        (self.devices, self.shortcuts) = (devices, shortcuts);
        self.limit_frames();
        self.counters = workers.running.iter().map(|worker| Arc::clone(&worker.counters)).collect();
        self.placed = facts::placed(workers);
        for baseline in [&mut self.runtime, &mut self.interfaces, &mut self.errors] {
            baseline.since = Moment::now();
        }
        self.kernel.start(self.router.injectors().first(), self.config.routes_from_kernel)
    }

    pub fn config(&self) -> &Config {
        &self.config
    }

    pub fn router(&mut self) -> &mut Router {
        &mut self.router
    }

    /// Takes up what workers, devices and the kernel tell; what became of them is said by `log`. Says whether
    /// there is more of it.
    pub fn tick(&mut self, log: &dyn Fn(&str)) -> Result<bool> {
        self.router.poll();
        let now = self.start.time.elapsed();
        if now.as_secs() != self.ticked {
            self.ticked = now.as_secs();
            self.router.tick(now);
            self.warn(log);
        }
        self.devices.iter_mut().filter_map(Opened::poll).for_each(|said| log(&said));
        self.write_captured(log);
        let more = self.kernel.poll(&mut self.router, log)?;
        self.follow_shortcuts(log);
        Ok(more)
    }

    /// Has packets take the shortcuts of now.
    fn follow_shortcuts(&mut self, log: &dyn Fn(&str)) {
        if let Err(error) = self.shortcuts.follow(&mut self.router, &self.devices)
            && let Some(said) = self.limit.say(format!("shortcuts: {error:#}"), Instant::now())
        {
            log(&said);
        }
    }

    /// Says what happened to neighbours that somebody should look after.
    fn warn(&mut self, log: &dyn Fn(&str)) {
        let counts = self.router.neighbour_counts();
        let before = std::mem::replace(&mut self.neighbours, counts);
        for (now, before, what) in [
            (counts.without_route, before.without_route, "were not learned: the table of routes is full"),
            (counts.evicted, before.evicted, "were forgotten: there are too many at their interface"),
            (counts.refused, before.refused, "were not learned: there are too many at their interface"),
            (counts.moved, before.moved, "have another MAC address than before"),
        ] {
            let said = (now > before).then(|| format!("{} neighbours {what}", now - before));
            if let Some(said) = said.and_then(|said| self.limit.say(said, Instant::now())) {
                log(&said);
            }
        }
    }

    /// Has no device take frames that are longer than its interfaces let pass.
    fn limit_frames(&self) {
        let interfaces = &self.router.forwarding().interfaces;
        for (number, device) in self.devices.iter().enumerate() {
            let of_device = interfaces.iter().filter(|interface| usize::from(interface.device) == number);
            device.limit_frames(of_device.map(|interface| interface.mtu).max().unwrap_or(0));
        }
    }

    /// Does what is asked.
    pub fn answer(&mut self, request: Request) -> Reply {
        let answer = match request {
            Request::Show(show) => self.show(&show),
            Request::Clear(clear) => Ok(self.clear(clear)),
            Request::Trace(count) => {
                self.router.traces().add(count);
                Ok(Answer::Done(format!("the next {count} packets are traced: see show trace")))
            }
            Request::Pcap(pcap) => self.pcap(pcap).map(Answer::Done),
            Request::Set(set) => self.set(&set).map(Answer::Done),
            Request::Reload { file } => self.reload(file.as_deref()).map(Answer::Done),
        };
        // Who asks for a change finds it made.
        let answer = answer.and_then(|answer| {
            self.shortcuts.follow(&mut self.router, &self.devices)?;
            Ok(answer)
        });
        answer.map_or_else(|error| Reply::Error(format!("{error:#}")), Reply::Answer)
    }

    /// Becomes what `file`, or the one that it began with, says; says what changed.
    pub fn reload(&mut self, file: Option<&Path>) -> Result<String> {
        let file = file.unwrap_or(&self.file);
        let new = super::configuration(file)?;
        let changes = difference(&self.config, &new).map_err(all)?;
        let said = format!("{}: {} changes made", file.display(), self.count(&changes));
        self.make_all(changes)?;
        self.config.routes_file = new.routes_file;
        memory::give_back();
        Ok(said)
    }

    fn set(&mut self, set: &Set) -> Result<String> {
        let changes = config::changes_of(&self.config, set).map_err(|problem| anyhow!(problem))?;
        let said = format!("{} changes made", self.count(&changes));
        self.make_all(changes)?;
        Ok(said)
    }

    /// How many changes these are, each changed route counted.
    fn count(&self, changes: &[Change]) -> usize {
        let count = |change: &Change| match change {
            Change::Routes(routes) => self.config.routes.changes(routes).count(),
            _ => 1,
        };
        changes.iter().map(count).sum()
    }

    /// The number of an interface.
    fn number(&self, name: &str) -> Result<u16> {
        self.numbers.get(name).copied().with_context(|| format!("there is no interface '{name}'"))
    }

    /// The tap of an interface, if it has one.
    fn tap(&self, name: &str) -> Result<Option<&Tap>> {
        Ok(self.kernel.tap(self.number(name)?))
    }

    fn make_all(&mut self, changes: Vec<Change>) -> Result<()> {
        changes.iter().try_for_each(|change| self.check(change))?;
        self.shortcuts.pause()?;
        let count = changes.len();
        let before = (count > 1).then(|| self.config.clone());
        for (at, change) in changes.into_iter().enumerate() {
            let undo = Undo::of(&change);
            let Err(error) = self.make(change) else { continue };
            undo.into_iter().for_each(|undo| self.unmake(&undo));
            let undone = before.as_ref().map_or(Ok(()), |before| self.go_back(before));
            return Err(error.context(match undone {
                Ok(()) => format!(
                    "nothing was changed, as one of {count} changes cannot be made: mend it, and try again"
                ),
                Err(why) => format!(
                    "{at} of {count} changes were made, the next one cannot be, and not all could be undone \
                     ({why:#}): mend it, and reload"
                ),
            }));
        }
        Ok(())
    }

    /// Becomes what it was before.
    fn go_back(&mut self, before: &Config) -> Result<()> {
        let changes = difference(&self.config, before).map_err(all)?;
        changes.into_iter().try_for_each(|change| self.make(change))
    }

    /// Undoes in the router a change that the kernel refused.
    fn unmake(&mut self, undo: &Undo) {
        let (Undo::Interface(name) | Undo::Address(name, _) | Undo::NoAddress(name, _)) = undo;
        let Ok(number) = self.number(name) else { return };
        // What cannot be undone is not as it was: the router has it as it was before or not at all.
        let _ = match undo {
            Undo::Interface(_) => {
                let found = self.config.interfaces.iter().find(|interface| interface.name == *name);
                let Some((up, mtu, mac)) = found.map(|found| (found.up, found.mtu, found.mac)) else {
                    return;
                };
                self.router.set_interface(number, |interface| {
                    (interface.up, interface.mtu, interface.mac) = (up, mtu, mac);
                })
            }
            Undo::Address(_, address) => self.router.remove_address(number, address.address),
            Undo::NoAddress(_, address) => self.router.add_address(number, address.address, address.length),
        };
    }

    /// Whether the device of an interface can do what a change asks of it.
    fn check(&self, change: &Change) -> Result<()> {
        let Change::Mtu(name, mtu) = change else { return Ok(()) };
        let forwarding = self.router.forwarding();
        let interface = forwarding.interfaces.get(usize::from(self.number(name)?));
        let device = interface.and_then(|interface| self.devices.get(usize::from(interface.device)));
        match device.map(Opened::most_mtu) {
            Some(most) if *mtu > most => Err(anyhow!(
                "{name} has buffers for packets of up to {most} bytes while the router runs, not of {mtu}: \
                 restart it for longer ones"
            )),
            _ => Ok(()),
        }
    }

    /// Makes a change: in the router, in what the kernel sees of it, and in what is known of it.
    fn make(&mut self, change: Change) -> Result<()> {
        match change {
            Change::Up(name, up) => {
                self.router.set_interface(self.number(&name)?, |interface| interface.up = up)?;
                self.tap(&name)?.map_or(Ok(()), |tap| tap.set_carrier(up))?;
                self.interface(&name)?.up = up;
            }
            Change::Mtu(name, mtu) => {
                self.router.set_interface(self.number(&name)?, |interface| interface.mtu = mtu)?;
                self.tap(&name)?.map_or(Ok(()), |tap| tap.set_mtu(mtu_of_tap(mtu)))?;
                self.interface(&name)?.mtu = mtu;
                self.limit_frames();
            }
            Change::Mac(name, mac) => {
                self.router.set_interface(self.number(&name)?, |interface| interface.mac = mac)?;
                self.tap(&name)?.map_or(Ok(()), |tap| tap.set_mac(mac))?;
                self.interface(&name)?.mac = mac;
            }
            Change::Role(name, role) => {
                let new = match &role {
                    config::Role::Router => Role::Router,
                    config::Role::CrossConnect(other) => Role::CrossConnect(self.number(other)?),
                    config::Role::Bridge(number) => Role::Bridge(*number),
                };
                self.router.set_interface(self.number(&name)?, |interface| interface.role = new)?;
                self.interface(&name)?.role = role;
            }
            Change::Bridge(number, bridge) => {
                self.router.set_bridge(number, bridge.settings);
                let bridges = &mut self.config.bridges;
                bridges.resize(bridges.len().max(usize::from(number) + 1), bridge.clone());
                bridges[usize::from(number)] = bridge;
            }
            Change::Timeouts(timeouts) => {
                self.router.set_timeouts(timeouts);
                self.config.states.timeouts = timeouts;
            }
            Change::AccessList(name, rules) => {
                self.access_lists.set(&mut self.router, &name, rules.clone())?;
                self.config.access_lists.insert(name, rules);
            }
            Change::NoAccessList(name) => {
                self.access_lists.remove(&name);
                self.config.access_lists.remove(&name);
            }
            Change::Filters(name, filters) => {
                self.router.set_filters(self.number(&name)?, self.access_lists.filters(&filters)?)?;
                self.interface(&name)?.filters = filters;
            }
            Change::Address(name, address) => {
                self.router.add_address(self.number(&name)?, address.address, address.length)?;
                let tap = self.tap(&name)?;
                tap.map_or(Ok(()), |tap| tap.add_address(address.address, address.length))?;
                self.interface(&name)?.addresses.push(address);
            }
            Change::NoAddress(name, address) => {
                self.router.remove_address(self.number(&name)?, address.address)?;
                let tap = self.tap(&name)?;
                tap.map_or(Ok(()), |tap| tap.remove_address(address.address, address.length))?;
                self.interface(&name)?.addresses.retain(|other| *other != address);
            }
            Change::Neighbour(name, address, mac) => {
                self.router.set_neighbour(self.number(&name)?, address, mac)?;
                self.config.neighbours.insert((name, address), mac);
            }
            Change::NoNeighbour(name, address) => {
                self.router.remove_neighbour(self.number(&name)?, address)?;
                self.config.neighbours.remove(&(name, address));
            }
            Change::Route(prefix, route) => {
                self.set_route(prefix, &route)?;
                Arc::make_mut(&mut self.config.routes).insert(prefix, route);
            }
            Change::NoRoute(prefix) => {
                self.withdraw(prefix)?;
                Arc::make_mut(&mut self.config.routes).remove(prefix);
            }
            Change::Routes(routes) => self.set_routes(routes)?,
        }
        Ok(())
    }

    fn interface(&mut self, name: &str) -> Result<&mut config::Interface> {
        let found = self.config.interfaces.iter_mut().find(|interface| interface.name == name);
        found.with_context(|| format!("there is no interface '{name}'"))
    }
}

/// What is to be undone of a change that the router made before the kernel refused it.
enum Undo {
    /// An interface is as it was.
    Interface(String),
    /// It loses an address.
    Address(String, Subnet),
    /// It has one again.
    NoAddress(String, Subnet),
}

impl Undo {
    fn of(change: &Change) -> Option<Self> {
        match change {
            Change::Up(name, _) | Change::Mtu(name, _) | Change::Mac(name, _) => {
                Some(Self::Interface(name.clone()))
            }
            Change::Address(name, address) => Some(Self::Address(name.clone(), *address)),
            Change::NoAddress(name, address) => Some(Self::NoAddress(name.clone(), *address)),
            _ => None,
        }
    }
}

/// An interface as the router makes it.
fn bare(interface: &config::Interface) -> config::Interface {
    let (addresses, role, filters) = (Vec::new(), config::Role::Router, config::Filters::default());
    config::Interface { up: true, addresses, role, filters, ..interface.clone() }
}

/// All that cannot change, in one error.
fn all(fixed: Vec<config::Fixed>) -> anyhow::Error {
    let lines: Vec<String> = fixed.iter().map(ToString::to_string).collect();
    anyhow!(lines.join("\n"))
}
