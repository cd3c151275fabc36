//! A router in XDP: the kernel's routes and neighbours without the kernel's stack.

use std::mem::MaybeUninit;

use lab::{Addressing, Result, Running, Site};

use super::spec::Parameters;
use super::{Description, Device, Kind, SpecError, load, routing};

#[allow(clippy::all, clippy::pedantic, clippy::undocumented_unsafe_blocks, clippy::unwrap_used)]
mod program {
    include!(concat!(env!("OUT_DIR"), "/xdp_router.skel.rs"));
}

pub(super) const KIND: Kind = Kind {
    description: Description {
        name: "xdp-router",
        summary: "an XDP program routing IPv4 and IPv6 by the kernel's tables",
        parameters: &[],
    },
    parse,
};

#[derive(Debug)]
struct XdpRouter;

fn parse(_: &Parameters) -> Result<Box<dyn Device>, SpecError> {
    Ok(Box::new(XdpRouter))
}

impl Device for XdpRouter {
    fn addressing(&self) -> Addressing {
        Addressing::Device
    }

    fn start(&self, site: &Site) -> Result<Running> {
        routing::configure(site)?;
        site.namespace.run(|| {
            let mut object = MaybeUninit::uninit();
            let loaded =
                load("xdp-router", program::XdpRouterSkelBuilder::default(), &mut object, |_| Ok(()))?;
            Ok(Running { links: site.attach(&loaded.progs.xdp_router)?, ..Running::default() })
        })
    }
}
