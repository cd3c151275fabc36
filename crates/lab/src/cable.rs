//! A lab without a device: two tester ports with a cable between them. What a tester reaches here is
//! its own limit, and the time that frames take here is its own too.

use wire::MacAddress;

use crate::error::Result;
use crate::lab::{FRAME_OVERHEAD, bring_up, pin_all, quiet_namespace, set_offloads};
use crate::namespace::Namespace;
use crate::napi::{NapiThread, ThreadFinder, Turn};
use crate::netlink::VethEnd;
use crate::placement::Placement;
use crate::plan::SIDES;
use crate::ports::{Port, describe};

/// A running cable. Dropping it removes everything, and so does the end of the process.
#[derive(Debug)]
pub struct Cable {
    ports: [Port; 2],
    placement: Placement,
    threads: ThreadFinder,
    tester: Namespace,
}

impl Cable {
    /// Connects two ports for frames of up to `max_frame_size` bytes, FCS included.
    ///
    /// # Errors
    /// [`crate::Error`], when the kernel refuses a step. Nothing is left behind then.
    pub fn start(placement: &Placement, max_frame_size: usize) -> Result<Self> {
        let mtu = u32::try_from(max_frame_size.max(1518) - FRAME_OVERHEAD).unwrap_or(u32::MAX);
        let threads = ThreadFinder::new();
        let tester = quiet_namespace("1")?;
        let end = |side: crate::plan::Side, mac: MacAddress| VethEnd {
            name: side.port,
            index: side.port_index,
            mac,
            mtu,
            receive_queues: 1,
        };
        let [zero, one] = SIDES;
        tester.netlink(|netlink| {
            netlink.add_veth(&end(zero, zero.port_mac), &end(one, one.port_mac), tester.fd())
        })?;
        let names = SIDES.map(|side| side.port);
        set_offloads(&tester, names, true)?;
        let [link_zero, link_one] = bring_up(&tester, names)?;
        let ports =
            tester.run(|| Ok([describe(&link_zero, one.port_mac), describe(&link_one, zero.port_mac)]))?;
        let cable = Self { ports, placement: placement.clone(), threads, tester };
        cable.pin()?;
        Ok(cable)
    }

    /// The tester's ports.
    #[must_use]
    pub fn ports(&self) -> &[Port; 2] {
        &self.ports
    }

    /// Where they are.
    #[must_use]
    pub fn namespace(&self) -> &Namespace {
        &self.tester
    }

    /// Puts receiving on its core. To be called again after an XDP program was attached.
    ///
    /// # Errors
    /// [`crate::Error`], when a thread cannot be found or pinned.
    pub fn pin(&self) -> Result<Vec<NapiThread>> {
        let place = (std::slice::from_ref(&self.placement.receive), Turn::AtOnce);
        pin_all(&self.tester, SIDES.map(|side| side.port), &self.threads, place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::{Wishes, host};

    #[test]
    fn the_ports_are_each_other_s_next_hops() {
        if !nix::unistd::geteuid().is_root() {
            eprintln!("skipped: network namespaces need root");
            return;
        }
        let placement = Placement::choose(&host().unwrap(), &Wishes::default()).unwrap();
        let cable = Cable::start(&placement, 1518).unwrap();
        let [zero, one] = cable.ports();
        assert_eq!((zero.next_hop_mac, one.next_hop_mac), (one.mac, zero.mac));
        assert_eq!(cable.pin().unwrap().len(), 2);
    }
}
