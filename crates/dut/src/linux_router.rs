//! The Linux kernel as a router for IPv4 and IPv6.

use lab::{Addressing, Queues, Result, Running, Site, pass};

use super::queues::{self, CORES, QUEUES};
use super::routes::{self, ROUTES};
use super::spec::Parameters;
use super::{Description, Device, Kind, Parameter, SpecError, jail, routing};

pub(super) const KIND: Kind = Kind {
    description: Description {
        name: "linux-router",
        summary: "the Linux kernel routing IPv4 and IPv6",
        parameters: &[GRO, JAIL, QUEUES, CORES, ROUTES],
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
    values: "on or off",
    meaning: "whether it forwards in a namespace behind its own, over two more veth pairs; off unless given",
};

#[derive(Debug)]
struct LinuxRouter {
    gro: bool,
    jail: bool,
    queues: Queues,
    routes: Option<usize>,
}

fn parse(parameters: &Parameters) -> Result<Box<dyn Device>, SpecError> {
    let (gro, jail) = (parameters.switch("gro", true)?, parameters.switch("jail", false)?);
    let (queues, routes) = (queues::read(parameters)?, routes::read(parameters, !jail)?);
    Ok(Box::new(LinuxRouter { gro, jail, queues, routes }))
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

    fn start(&self, site: &Site) -> Result<Running> {
        let jail = if self.jail { Some(jail::start(site)?) } else { None };
        if jail.is_none() {
            routing::configure(site)?;
        }
        self.routes.map_or(Ok(()), |count| routing::load(site, count))?;
        let running = if self.gro { Running::default() } else { pass::start(site)? };
        Ok(Running { jail, ..running })
    }
}
