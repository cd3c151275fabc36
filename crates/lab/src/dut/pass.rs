//! NAPI without GRO for the kernel's own devices: a program that passes every frame on.

use std::mem::MaybeUninit;

use libbpf_rs::skel::{OpenSkel, SkelBuilder};

use super::{Running, Site};
use crate::error::{Error, Result};

#[allow(clippy::all, clippy::pedantic, clippy::undocumented_unsafe_blocks, clippy::unwrap_used)]
mod program {
    include!(concat!(env!("OUT_DIR"), "/pass.skel.rs"));
}

pub(super) fn start(site: &Site) -> Result<Running> {
    site.namespace.run(|| {
        let failed = |cause| Error::bpf("cannot load the kernel program 'pass'", cause);
        let mut object = MaybeUninit::uninit();
        let open = program::PassSkelBuilder::default().open(&mut object).map_err(failed)?;
        let loaded = open.load().map_err(failed)?;
        Ok(Running { links: site.attach(&loaded.progs.pass)?, ..Running::default() })
    })
}
