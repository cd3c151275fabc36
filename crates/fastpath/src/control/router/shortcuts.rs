//! Shortcuts: destinations of packets that workers forwarded enter; what it takes to forward the next ones without a worker
//! leaves, for those devices whose kernel can.
//!
//! A shortcut holds all that the tables say of a packet to a destination. So it may be wrong as soon as anything in them
//! changes: it is good for one [`Router::edition`].

use std::net::IpAddr;

use wire::{MacAddress, ethernet};

use super::listing::longest;
use super::{Family, Router};
use crate::dataplane::forwarding::{Interface, Role};
use crate::dataplane::node::Node;
use crate::fib::NextHop;

/// Bytes of both addresses of a frame.
const ADDRESSES: usize = 12;
/// Destinations that wait to be looked up at most; of further ones a worker tells again.
const WAITING: usize = 1024;

/// How packets that arrive at a device and go to an address are forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shortcut {
    /// The device that they arrive at.
    pub from: u16,
    /// To where they go.
    pub destination: IpAddr,
    /// The device that they leave by.
    pub to: u16,
    /// The destination of the frames that they arrive in.
    pub arrives: MacAddress,
    /// Destination and source of the frames that they leave in.
    pub leaves: [u8; ADDRESSES],
    /// Bytes that a packet may have, without link header.
    pub mtu: u16,
}

impl Router {
    /// Has packets of a device, and those to it, take shortcuts, or no longer. Workers tell of packets that might.
    pub fn set_shortcuts(&mut self, device: u16, on: bool) {
        let Some(device) = self.forwarding.devices.get_mut(usize::from(device)) else { return };
        if device.shortcuts != on {
            device.shortcuts = on;
            self.change();
        }
    }

    /// A number that is another one after each change of what packets are forwarded by.
    #[must_use]
    pub fn edition(&self) -> u64 {
        self.edition
    }

    /// Notes what a worker forwarded.
    pub(super) fn note_forwarded(&mut self, interface: u16, destination: IpAddr) {
        if self.forwarded.len() < WAITING {
            self.forwarded.push((interface, destination));
        }
    }

    /// The shortcuts of destinations that workers told of since the last call, as of this edition.
    pub fn take_shortcuts(&mut self) -> Vec<Shortcut> {
        let mut forwarded = std::mem::take(&mut self.forwarded);
        forwarded.sort_unstable();
        forwarded.dedup();
        forwarded
            .into_iter()
            .filter_map(|(interface, destination)| self.shortcut(interface, destination))
            .collect()
    }

    /// That of packets which arrive at an interface, if they may take one: nobody is to look at them, there or where they
    /// leave, and no flow goes another way.
    fn shortcut(&mut self, interface: u16, destination: IpAddr) -> Option<Shortcut> {
        let index = self.only_hop(destination)?;
        let adjacency = self.forwarding.adjacencies.get(index.index() as usize)?;
        let (arrives_at, leaves_by) = (self.plain(interface)?, self.plain(adjacency.interface)?);
        let is_rewritten = matches!(adjacency.next, Node::Ip4Rewrite | Node::Ip6Rewrite);
        if !is_rewritten
            || arrives_at.device == leaves_by.device
            || usize::from(adjacency.header_length) != ethernet::LENGTH
        {
            return None;
        }
        Some(Shortcut {
            from: arrives_at.device,
            destination,
            to: leaves_by.device,
            arrives: arrives_at.mac,
            leaves: *adjacency.header.first_chunk()?,
            mtu: adjacency.mtu,
        })
    }

    /// An interface whose packets the kernel can forward by itself.
    fn plain(&self, number: u16) -> Option<&Interface> {
        let interface = self.interface(number).ok()?;
        let device = self.forwarding.devices.get(usize::from(interface.device))?;
        let is_plain = interface.up && interface.vlan.is_none() && interface.role == Role::Router;
        (is_plain && device.shortcuts && interface.filters == Default::default()).then_some(interface)
    }

    /// The one next hop of all packets to an address.
    fn only_hop(&mut self, destination: IpAddr) -> Option<NextHop> {
        match destination {
            IpAddr::V4(address) => self.only_hop_to(address.to_bits()),
            IpAddr::V6(address) => self.only_hop_to(address.to_bits()),
        }
    }

    fn only_hop_to<A: Family>(&mut self, destination: A) -> Option<NextHop> {
        let fib = &A::table(self).fib;
        fib.get(longest(fib, destination)?)?.next_hop()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use wire::ipv4;

    use super::*;
    use crate::dataplane::counters::{Counters, Reason};
    use crate::dataplane::worker::{Receive, Worker};
    use crate::device::simulated::Wire;
    use crate::fib::Prefix;
    use crate::router::Hop;

    const OURS: [MacAddress; 2] = [MacAddress([2, 0, 0, 0, 0, 1]), MacAddress([2, 0, 0, 0, 0, 2])];
    const THEIRS: MacAddress = MacAddress([2, 0, 0, 0, 0, 9]);
    const HOST: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 1, 9));

    /// A router with two devices that can have shortcuts, and a host at the second.
    fn router() -> Router {
        let mut router = Router::new().unwrap();
        for (number, mac) in (0..).zip(OURS) {
            router.add_device(&format!("eth{number}"), mac, 1500).unwrap();
            router.add_address(number, [10, 0, number as u8, 1].into(), 24).unwrap();
            router.set_shortcuts(number, true);
        }
        router.set_neighbour(1, HOST, THEIRS).unwrap();
        router
    }

    fn shortcut(router: &mut Router, interface: u16, destination: IpAddr) -> Option<Shortcut> {
        router.note_forwarded(interface, destination);
        router.take_shortcuts().pop()
    }

    #[test]
    fn what_a_worker_forwarded_may_take_a_shortcut_from_then_on() {
        let mut router = router();
        let (wires, queues): (Vec<_>, Vec<_>) = (0..2).map(|_| Wire::device(4)).unzip();
        let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
        for (number, queues) in (0..).zip(queues) {
            inputs.extend(queues.inputs.into_iter().map(|input| Receive::new(number, input)));
            outputs.extend(queues.outputs);
        }
        let mut worker = Worker::new(inputs, outputs, router.attach(), Arc::new(Counters::default()));
        let header = ipv4::Header {
            tos: 0,
            total_length: 20,
            identification: 0,
            ttl: 64,
            protocol: ipv4::UDP,
            source: [10, 0, 0, 9].into(),
            destination: [10, 0, 1, 9].into(),
        };
        let arrives = ethernet::Header { destination: OURS[0], source: THEIRS, ethertype: ethernet::IPV4 };
        wires[0].put([&arrives.emit()[..], &header.emit()].concat());
        while worker.turn() > 0 {}
        let sent = wires[1].take().unwrap();
        router.poll();
        let leaves = *sent.first_chunk().unwrap();
        let expected = Shortcut { from: 0, destination: HOST, to: 1, arrives: OURS[0], leaves, mtu: 1500 };
        assert_eq!(router.take_shortcuts(), [expected]);
        assert_eq!(router.take_shortcuts(), []);
        // Nobody wants to know of devices that have none.
        router.set_shortcuts(0, false);
        wires[0].put([&arrives.emit()[..], &header.emit()].concat());
        while worker.turn() > 0 {}
        assert_eq!(router.poll(), 0);
    }

    #[test]
    fn what_somebody_has_to_look_at_takes_none() {
        let has_one = |change: &dyn Fn(&mut Router)| {
            let mut router = router();
            assert!(shortcut(&mut router, 0, HOST).is_some());
            let edition = router.edition();
            change(&mut router);
            assert_ne!(router.edition(), edition, "those that there are are no longer good");
            shortcut(&mut router, 0, HOST).is_some()
        };
        let host = || Prefix::new(0x0a00_0109_u32, 32).unwrap();
        let neighbours = [8, 9].map(|last| Hop::Neighbour(1, [10, 0, 1, last].into()));
        assert!(has_one(&|router| router.set_neighbour(1, HOST, OURS[0]).unwrap()));
        assert!(has_one(&|router| router.add_route(host(), &neighbours[1..]).unwrap()));
        assert!(!has_one(&|router| router.add_route(host(), &neighbours).unwrap()), "flows go two ways");
        assert!(!has_one(&|router| router.add_route(host(), &[Hop::Drop(Reason::Ip4Blackhole)]).unwrap()));
        assert!(!has_one(&|router| assert!(router.remove_neighbour(1, HOST).unwrap())), "it is to be asked");
        for number in 0..2 {
            assert!(!has_one(&|router| router.set_shortcuts(number, false)));
            assert!(!has_one(&|router| router.set_interface(number, |it| it.up = false).unwrap()));
            assert!(!has_one(&|router| router
                .set_interface(number, |it| it.role = Role::Bridge(0))
                .unwrap()));
        }
        let mut router = router();
        assert_eq!(shortcut(&mut router, 1, HOST), None, "back to where it came from");
        assert_eq!(shortcut(&mut router, 0, [10, 0, 1, 1].into()), None, "the router's own address");
        assert_eq!(shortcut(&mut router, 0, [10, 9, 9, 9].into()), None, "no route");
        let tagged = router.add_vlan(1, 7).unwrap();
        router.add_address(tagged, [10, 0, 7, 1].into(), 24).unwrap();
        router.set_neighbour(tagged, [10, 0, 7, 9].into(), THEIRS).unwrap();
        assert_eq!(shortcut(&mut router, 0, [10, 0, 7, 9].into()), None, "a tag is to be put in");
        assert_eq!(shortcut(&mut router, tagged, HOST), None, "a tag is to be taken out");
    }

    #[test]
    fn no_more_destinations_wait_than_there_is_room_for() {
        let mut router = router();
        (0..3 * WAITING).for_each(|_| router.note_forwarded(0, HOST));
        assert_eq!((router.forwarded.len(), router.take_shortcuts().len()), (WAITING, 1));
    }
}
