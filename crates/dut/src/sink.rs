//! A device that counts frames and drops them: what a generator alone can do.

use std::mem::MaybeUninit;

use lab::{Addressing, Counters, Result, Running, Site};
use libbpf_rs::MapHandle;

use super::spec::Parameters;
use super::{Description, Device, FCS, Kind, SpecError, constants, kept, load, words};

#[allow(clippy::all, clippy::pedantic, clippy::undocumented_unsafe_blocks, clippy::unwrap_used)]
mod program {
    include!(concat!(env!("OUT_DIR"), "/sink.skel.rs"));
}

pub(super) const KIND: Kind = Kind {
    description: Description {
        name: "sink",
        summary: "an XDP program that counts frames and drops them",
        parameters: &[],
    },
    parse,
};

#[derive(Debug)]
struct Sink;

fn parse(_: &Parameters) -> Result<Box<dyn Device>, SpecError> {
    Ok(Box::new(Sink))
}

impl Device for Sink {
    fn addressing(&self) -> Addressing {
        Addressing::Device
    }

    fn start(&self, site: &Site) -> Result<Running> {
        site.namespace.run(|| {
            let mut object = MaybeUninit::uninit();
            let loaded = load("sink", program::SinkSkelBuilder::default(), &mut object, |open| {
                constants(open.maps.rodata_data.as_deref_mut())?.interfaces = site.indexes();
                Ok(())
            })?;
            let directions = kept(MapHandle::try_from(&loaded.maps.directions))?;
            Ok(Running {
                links: site.attach(&loaded.progs.sink)?,
                counters: Some(Box::new(move || Ok([count(&directions, 0)?, count(&directions, 1)?]))),
                ..Running::default()
            })
        })
    }
}

/// The sum of what each core counted in one direction.
fn count(directions: &MapHandle, direction: u32) -> Result<Counters> {
    let cores = words::<2>(directions, direction)?;
    let [frames, bytes] =
        cores.iter().fold([0; 2], |[frames, bytes], core| [frames + core[0], bytes + core[1]]);
    Ok(Counters { frames, bytes: bytes + FCS * frames, ..Counters::default() })
}
