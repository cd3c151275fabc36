//! The Linux kernel as a router for IPv4 and IPv6.

use std::any::Any;
use std::net::IpAddr;

use lab::{Addressing, Queues, Result, Running, Site, pass};

use super::firewall::{self, Firewall};
use super::machine::{self, SETTINGS, Wanted};
use super::queues::{self, CORES, QUEUES};
use super::routes::{self, ROUTES};
use super::spec::Parameters;
use super::tenants::{self, JAILS};
use super::{Description, Device, Kind, Parameter, SpecError, jail, routing};

pub(super) const KIND: Kind = Kind {
    description: Description {
        name: "linux-router",
        summary: "the Linux kernel routing IPv4 and IPv6",
        parameters: &[
            GRO,
            JAIL,
            JAILS,
            QUEUES,
            CORES,
            ROUTES,
            firewall::FIREWALL,
            firewall::RULES,
            firewall::STATES,
            SETTINGS[0],
            SETTINGS[1],
            SETTINGS[2],
            SETTINGS[3],
        ],
    },
    parse,
};

/// The parameter that the kernel's own devices share.
pub(super) const GRO: Parameter = Parameter {
    key: "gro",
    values: "on or off",
    meaning: "whether the kernel merges received frames of one flow; on unless given",
};

const JAIL: Parameter = Parameter {
    key: "jail",
    values: "moved, on or off",
    meaning: "whether it forwards in a further namespace: one that its interfaces are moved into, or one behind its own, over two more veth pairs (on); off unless given",
};

/// Where it forwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Jail {
    /// Where its interfaces are.
    Off,
    /// In a namespace behind that.
    Behind,
    /// In a namespace that its interfaces are moved into.
    Moved,
    /// In so many namespaces with interfaces of their own.
    Several(u8),
}

#[derive(Debug)]
struct LinuxRouter {
    gro: bool,
    jail: Jail,
    queues: Queues,
    routes: Option<usize>,
    firewall: Option<Firewall>,
    settings: Wanted,
}

fn parse(parameters: &Parameters) -> Result<Box<dyn Device>, SpecError> {
    let jail = |text: &str| match text {
        "moved" => Some(Jail::Moved),
        "on" => Some(Jail::Behind),
        "off" => Some(Jail::Off),
        _ => None,
    };
    let gro = parameters.switch(GRO.key, true)?;
    let jail = parameters.get(JAIL.key, jail)?.unwrap_or(Jail::Off);
    let (firewall, settings) = (firewall::read(parameters)?, machine::read(parameters)?);
    let several = tenants::read(parameters, jail == Jail::Off && firewall.is_none())?;
    let jail = several.map_or(jail, Jail::Several);
    let is_open = matches!(jail, Jail::Off | Jail::Moved);
    let (queues, routes) = (queues::read(parameters)?, routes::read(parameters, is_open)?);
    // What is behind bridges has its rules there, which nothing here sets.
    if !is_open && firewall.is_some() {
        return Err(parameters.wrong_value(firewall::FIREWALL.key));
    }
    Ok(Box::new(LinuxRouter { gro, jail, queues, routes, firewall, settings }))
}

impl Device for LinuxRouter {
    fn addressing(&self) -> Addressing {
        Addressing::Device
    }

    fn gro(&self) -> bool {
        self.gro
    }

    fn queues(&self) -> Queues {
        self.queues.clone()
    }

    fn denied(&self) -> Vec<IpAddr> {
        self.firewall.map(|firewall| firewall.denied()).unwrap_or_default()
    }

    fn start(&self, site: &Site) -> Result<Running> {
        let settings = self.settings.set()?;
        let running = match self.jail {
            Jail::Off => self.furnish(site)?,
            Jail::Behind => Running { jails: vec![jail::start(site)?], ..self.receive(site)? },
            Jail::Several(count) => Running { jails: tenants::start(site, count)?, ..self.receive(site)? },
            Jail::Moved => {
                let (jail, interfaces) = jail::move_in(site)?;
                let inside = Site { namespace: &jail, interfaces: &interfaces, core: site.core };
                let running = self.furnish(&inside)?;
                Running { moved: Some(jail), ..running }
            }
        };
        let settings = settings.map(|changed| -> Box<dyn Any + Send + Sync> { Box::new(changed) });
        Ok(Running { settings, ..running })
    }
}

impl LinuxRouter {
    /// Makes the interfaces at `site` a router with its table and its firewall.
    fn furnish(&self, site: &Site) -> Result<Running> {
        routing::configure(site)?;
        self.routes.map_or(Ok(()), |count| routing::load(site, count))?;
        let running = self.firewall.map_or_else(|| Ok(Running::default()), |it| it.start(site))?;
        // A program that filters gives the interfaces NAPI, too.
        if running.links.is_empty() { self.receive(site) } else { Ok(running) }
    }

    /// Gives the interfaces at `site` NAPI without GRO, if it is to be without.
    fn receive(&self, site: &Site) -> Result<Running> {
        if self.gro { Ok(Running::default()) } else { pass::start(site) }
    }
}
