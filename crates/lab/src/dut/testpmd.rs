//! DPDK's testpmd: it forwards between ports of DPDK, so interfaces of the lab are no place for it.
//! Who sends by DPDK starts it, with what is parsed here.

use super::spec::Parameters;
use super::{Addressing, Description, Device, Kind, Parameter, Running, Site, SpecError};
use crate::error::{Error, Result};

pub(super) const KIND: Kind = Kind {
    description: Description {
        name: "testpmd",
        summary: "DPDK's testpmd between two ports in shared memory (--engine dpdk)",
        parameters: &[Parameter {
            key: "mode",
            values: "io or macswap",
            meaning: "send frames on as they are, or with their addresses swapped (default io)",
        }],
    },
    parse,
};

#[derive(Debug)]
struct Testpmd;

fn parse(parameters: &Parameters) -> Result<Box<dyn Device>, SpecError> {
    parameters.get("mode", |mode| matches!(mode, "io" | "macswap").then_some(()))?;
    Ok(Box::new(Testpmd))
}

impl Device for Testpmd {
    fn addressing(&self) -> Addressing {
        Addressing::OtherPort
    }

    fn start(&self, _: &Site) -> Result<Running> {
        Err(Error::Engine { device: "testpmd", engine: "dpdk" })
    }
}
