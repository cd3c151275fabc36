//! The Linux kernel as a router for IPv4 and IPv6.

use super::spec::Parameters;
use super::{Addressing, Description, Device, Kind, Parameter, Running, Site, SpecError, pass, routing};
use crate::error::Result;

pub(super) const KIND: Kind = Kind {
    description: Description {
        name: "linux-router",
        summary: "the Linux kernel routing IPv4 and IPv6",
        parameters: &[GRO],
    },
    parse,
};

/// The parameter that the kernel's own devices share.
pub(super) const GRO: Parameter = Parameter {
    key: "gro",
    values: "on or off",
    meaning: "whether the kernel merges received frames of one flow; on unless given",
};

#[derive(Debug)]
struct LinuxRouter {
    gro: bool,
}

fn parse(parameters: &Parameters) -> Result<Box<dyn Device>, SpecError> {
    Ok(Box::new(LinuxRouter { gro: parameters.switch("gro", true)? }))
}

impl Device for LinuxRouter {
    fn addressing(&self) -> Addressing {
        Addressing::Device
    }

    fn gro(&self) -> bool {
        self.gro
    }

    fn restore(&self, site: &Site) -> Result<()> {
        routing::restore(site)
    }

    fn start(&self, site: &Site) -> Result<Running> {
        routing::configure(site)?;
        if self.gro { Ok(Running::default()) } else { pass::start(site) }
    }
}
