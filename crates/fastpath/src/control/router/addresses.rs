//! The router's own addresses: an address of an interface enters, the routes that follow from it leave. The
//! subnet leads to the hosts on it, the address itself to the router, and so does the subnet's broadcast;
//! its first address is nobody's (RFC 1812, 4.2.3.1 and 5.3.5).

use std::net::{IpAddr, Ipv4Addr};

use super::{Error, Hop, Router, Source};
use crate::dataplane::counters::Reason;
use crate::subnet::Subnet;

impl Router {
    /// Gives an interface an address, with `length` bits in common with all on its link.
    ///
    /// # Errors
    /// [`Error::NoInterface`]; [`Error::Address`] when no host may have it; [`Error::AddressTaken`];
    /// [`Error::Fib`] when there is no room.
    pub fn add_address(&mut self, interface: u16, address: IpAddr, length: u8) -> Result<(), Error> {
        self.interface(interface)?;
        let subnet = Subnet { address, length };
        if length > width(address) || !may_be_ours(&subnet) {
            return Err(Error::Address(address, length));
        }
        if self.forwarding.interfaces.iter().any(|interface| interface.has(address)) {
            return Err(Error::AddressTaken(address));
        }
        self.forwarding.interfaces[usize::from(interface)].addresses.push(subnet);
        self.change();
        for (prefix, length, hop) in routes(interface, &subnet) {
            self.set_route(Source::Connected, (prefix, length), hop)?;
        }
        for neighbour in self.neighbours_of(interface) {
            self.connect_neighbour(interface, neighbour)?;
        }
        Ok(())
    }

    /// Takes an address and the routes that followed from it away from an interface, and forgets the
    /// neighbours that were learned on its subnet.
    ///
    /// # Errors
    /// [`Error::NoInterface`]; [`Error::NoAddress`]; [`Error::Fib`] when there is no room.
    pub fn remove_address(&mut self, interface: u16, address: IpAddr) -> Result<(), Error> {
        let addresses = &self.interface(interface)?.addresses;
        let at = addresses.iter().position(|subnet| subnet.address == address);
        let at = at.ok_or(Error::NoAddress(address))?;
        let subnet = self.forwarding.interfaces[usize::from(interface)].addresses.remove(at);
        self.change();
        let left = self.own_routes();
        for (prefix, length, _) in routes(interface, &subnet) {
            // Another address may be on the same subnet.
            match left.iter().rfind(|(other, bits, _)| (*other, *bits) == (prefix, length)) {
                Some(&(.., hop)) => self.set_route(Source::Connected, (prefix, length), hop)?,
                None => _ = self.unset_route(Source::Connected, (prefix, length))?,
            }
        }
        for neighbour in self.neighbours_of(interface) {
            if self.interface(interface)?.subnet_of(neighbour).is_none() {
                self.disconnect_neighbour(interface, neighbour);
            }
        }
        Ok(())
    }

    /// The hop of packets that go by `gateway`, at the interface on whose subnet it is.
    ///
    /// # Errors
    /// [`Error::Gateway`] when it is on none.
    pub fn gateway(&self, gateway: IpAddr) -> Result<Hop, Error> {
        let subnets = self.forwarding.interfaces.iter().zip(0u16..);
        let subnets =
            subnets.filter_map(|(interface, number)| Some((interface.subnet_of(gateway)?.length, number)));
        let (_, number) = subnets.max().ok_or(Error::Gateway(gateway))?;
        Ok(Hop::Neighbour(number, gateway))
    }

    fn own_routes(&self) -> Vec<(IpAddr, u8, Hop)> {
        let interfaces = self.forwarding.interfaces.iter().zip(0u16..);
        let subnets =
            interfaces.flat_map(|(interface, number)| interface.addresses.iter().map(move |of| (number, of)));
        subnets.flat_map(|(number, subnet)| routes(number, subnet)).collect()
    }
}

/// Bits of an address.
pub(super) fn width(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// The routes that follow from an address: prefixes, their lengths and hops.
fn routes(interface: u16, subnet: &Subnet) -> Vec<(IpAddr, u8, Hop)> {
    let (address, width) = (subnet.address, width(subnet.address));
    let mut routes = Vec::new();
    if subnet.length < width && !is_link_local(address) {
        routes.push((subnet.network(), subnet.length, Hop::Glean(interface, address)));
    }
    if let Some(zero) = subnet.zero() {
        routes.push((zero, width, Hop::Drop(Reason::Ip4MartianDestination)));
    }
    if let Some(broadcast) = subnet.broadcast() {
        routes.push((broadcast, width, Hop::Local(interface, broadcast)));
    }
    routes.push((address, width, Hop::Local(interface, address)));
    routes
}

/// Whether addresses of this kind are on every link, so that none of these is a route.
pub(super) fn is_link_local(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(address) if address.is_unicast_link_local())
}

fn may_be_ours(subnet: &Subnet) -> bool {
    let address = subnet.address;
    let reserved = matches!(address, IpAddr::V4(address) if address.octets()[0] == 0 || address >= Ipv4Addr::new(240, 0, 0, 0));
    let nobodys = address.is_unspecified() || address.is_multicast() || address.is_loopback() || reserved;
    !nobodys && subnet.is_host(address)
}
