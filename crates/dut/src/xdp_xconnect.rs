//! A cross connect in XDP: what enters one interface leaves the other.

use std::mem::MaybeUninit;

use lab::{Addressing, Result, Running, Site};

use super::spec::Parameters;
use super::{Description, Device, Kind, SpecError, constants, load};

#[allow(clippy::all, clippy::pedantic, clippy::undocumented_unsafe_blocks, clippy::unwrap_used)]
mod program {
    include!(concat!(env!("OUT_DIR"), "/xdp_xconnect.skel.rs"));
}

pub(super) const KIND: Kind = Kind {
    description: Description {
        name: "xdp-xconnect",
        summary: "an XDP program that sends what enters one interface out of the other",
        parameters: &[],
    },
    parse,
};

#[derive(Debug)]
struct XdpXconnect;

fn parse(_: &Parameters) -> Result<Box<dyn Device>, SpecError> {
    Ok(Box::new(XdpXconnect))
}

impl Device for XdpXconnect {
    fn addressing(&self) -> Addressing {
        Addressing::OtherPort
    }

    fn start(&self, site: &Site) -> Result<Running> {
        site.namespace.run(|| {
            let mut object = MaybeUninit::uninit();
            let loaded =
                load("xdp-xconnect", program::XdpXconnectSkelBuilder::default(), &mut object, |open| {
                    constants(open.maps.rodata_data.as_deref_mut())?.interfaces = site.indexes();
                    Ok(())
                })?;
            Ok(Running { links: site.attach(&loaded.progs.xdp_xconnect)?, ..Running::default() })
        })
    }
}
