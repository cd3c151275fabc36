//! Sources that are dropped before the kernel's stack: how many enter; a program at both interfaces leaves, which looks
//! each packet's source up.

use std::mem::MaybeUninit;

use lab::{Error, Result, Running, Site};
use libbpf_rs::{MapCore, MapFlags, MapMut};

use super::{source_v4, source_v6};
use crate::load;

#[allow(clippy::all, clippy::pedantic, clippy::undocumented_unsafe_blocks, clippy::unwrap_used)]
mod program {
    include!(concat!(env!("OUT_DIR"), "/firewall.skel.rs"));
}

/// Drops packets from so many sources of each IP version.
pub(super) fn start(site: &Site, rules: usize) -> Result<Running> {
    site.namespace.run(|| {
        let mut object = MaybeUninit::uninit();
        let most = u32::try_from(rules).unwrap_or(u32::MAX);
        let failed = |cause| Error::bpf("cannot make room for the firewall's sources", cause);
        let loaded = load("firewall", program::FirewallSkelBuilder::default(), &mut object, |open| {
            open.maps.denied_v4.set_max_entries(most).map_err(failed)?;
            open.maps.denied_v6.set_max_entries(most).map_err(failed)
        })?;
        for at in 0..rules {
            deny(&loaded.maps.denied_v4, &source_v4(at).octets())?;
            deny(&loaded.maps.denied_v6, &source_v6(at).octets())?;
        }
        Ok(Running { links: site.attach(&loaded.progs.firewall)?, ..Running::default() })
    })
}

fn deny(map: &MapMut, source: &[u8]) -> Result<()> {
    let failed = |cause| Error::bpf("cannot give the firewall its sources", cause);
    map.update(source, &[1], MapFlags::ANY).map_err(failed)
}
