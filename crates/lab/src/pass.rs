//! NAPI without GRO, for the kernel's own devices and the tester's ports: a program that passes every
//! frame on.

use std::mem::MaybeUninit;

use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{Link as XdpLink, ProgramMut};

use crate::device::{Running, Site};
use crate::error::{Error, Result};
use crate::namespace::Namespace;

#[allow(clippy::all, clippy::pedantic, clippy::undocumented_unsafe_blocks, clippy::unwrap_used)]
mod program {
    include!(concat!(env!("OUT_DIR"), "/pass.skel.rs"));
}

/// Gives the interfaces at `site` NAPI.
///
/// # Errors
/// [`Error`], when the program cannot be loaded or attached.
pub fn start(site: &Site) -> Result<Running> {
    let links = load(site.namespace, |program| site.attach(program))?;
    Ok(Running { links, ..Running::default() })
}

/// Attaches the program to the interface of this index in `namespace`.
pub(crate) fn attach(namespace: &Namespace, index: u32) -> Result<XdpLink> {
    load(namespace, |program| {
        let attached = program.attach_xdp(i32::try_from(index).unwrap_or_default());
        attached.map_err(|cause| Error::bpf(format!("cannot attach XDP to interface {index}"), cause))
    })
}

/// Loads the program inside `namespace`, where `attach` attaches it.
fn load<T: Send>(namespace: &Namespace, attach: impl FnOnce(&ProgramMut) -> Result<T> + Send) -> Result<T> {
    namespace.run(|| {
        let failed = |cause| Error::bpf("cannot load the kernel program 'pass'", cause);
        let mut object = MaybeUninit::uninit();
        let open = program::PassSkelBuilder::default().open(&mut object).map_err(failed)?;
        let loaded = open.load().map_err(failed)?;
        attach(&loaded.progs.pass)
    })
}
