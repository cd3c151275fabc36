//! The kernel as ARP and neighbour discovery: a gateway's address enters, its MAC address leaves.

use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::socket::{setsockopt, sockopt};
use wire::MacAddress;

use crate::error::{Error, Needs, PortsError, Result};
use crate::netlink::{Link, Netlink};

/// RFC 863: a datagram to this port is thrown away by who receives it.
const DISCARD: u16 = 9;
/// ARP asks three times, one second apart.
const PATIENCE: Duration = Duration::from_secs(3);
const PAUSE: Duration = Duration::from_millis(20);

/// The MAC address of `gateway` on `link`.
pub(crate) fn resolve(netlink: &Netlink, link: &Link, gateway: IpAddr) -> Result<MacAddress> {
    let unresolved =
        |diagnosis: String| PortsError::Unresolved { gateway, name: link.name.clone(), diagnosis };
    if let Some(mac) = known(netlink, link, gateway)? {
        return Ok(mac);
    }
    let socket = bound_socket(&link.name, gateway)?;
    // Sending makes the kernel ask; the datagram itself waits for the answer.
    if let Err(cause) = socket.send_to(&[0], destination(gateway, link.index)) {
        return Err(unresolved(format!(
            "the kernel cannot send to it ({cause}). Give '{}' an address in the gateway's subnet",
            link.name
        ))
        .into());
    }
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        if let Some(mac) = known(netlink, link, gateway)? {
            return Ok(mac);
        }
        thread::sleep(PAUSE);
    }
    let asked = if gateway.is_ipv4() { "ARP" } else { "neighbour discovery" };
    Err(unresolved(format!(
        "{asked} got none within {} s. Check that '{}' has an address in the gateway's subnet, that the \
         device has this one, and that nothing between them (VLAN, filter) separates them",
        PATIENCE.as_secs(),
        link.name
    ))
    .into())
}

fn known(netlink: &Netlink, link: &Link, gateway: IpAddr) -> Result<Option<MacAddress>> {
    let mut neighbours = netlink.neighbours()?.into_iter();
    let found =
        neighbours.find(|entry| entry.interface == link.index && entry.address == gateway && entry.valid);
    Ok(found.map(|entry| entry.mac))
}

/// A UDP socket that sends by this interface only, whatever the routes say.
fn bound_socket(interface: &str, towards: IpAddr) -> Result<UdpSocket> {
    let any: IpAddr =
        if towards.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let failed = |cause: std::io::Error| {
        Error::kernel(
            format!("cannot open a socket on '{interface}'"),
            cause,
            Needs::NetRaw,
            "Check that the interface has an address of this family",
        )
    };
    let socket = UdpSocket::bind((any, 0)).map_err(failed)?;
    setsockopt(&socket, sockopt::BindToDevice, &OsString::from(interface))
        .map_err(|errno| failed(errno.into()))?;
    Ok(socket)
}

/// Link-local addresses mean something on one interface only.
fn destination(gateway: IpAddr, interface: u32) -> SocketAddr {
    match gateway {
        IpAddr::V6(v6) if v6.is_unicast_link_local() => SocketAddrV6::new(v6, DISCARD, 0, interface).into(),
        other => (other, DISCARD).into(),
    }
}
