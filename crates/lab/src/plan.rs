//! Who has which address: nothing enters, the two links of every lab leave.
//!
//! The IPv4 side is the one of the Netgate 6100 review that Linerate reproduces; the IPv6 side
//! uses the benchmarking prefix 2001:2::/48 (RFC 5180, errata 1752). RFC 2544's own networks are
//! routed too.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use wire::MacAddress;

/// One link between the tester and the device under test, and the networks beyond the tester.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Side {
    /// The tester's end.
    pub port: &'static str,
    /// The device's end.
    pub interface: &'static str,
    /// Its MAC address.
    pub port_mac: MacAddress,
    /// The MAC address of the device's end.
    pub interface_mac: MacAddress,
    /// The interfaces' indexes, all different. The kernel reports a veth's carrier at once only
    /// if its index is not its peer's, as it happens to be in two fresh namespaces; else up to a
    /// second later, and IPv6 waits for that.
    pub port_index: u32,
    /// That of the device's end.
    pub interface_index: u32,
    /// The addresses of the tester's end, IPv4 and IPv6.
    pub port_addresses: [IpAddr; 2],
    /// Those of the device's end.
    pub interface_addresses: [IpAddr; 2],
    /// The lengths of their prefixes.
    pub prefixes: [u8; 2],
    /// What a router reaches through the tester's end: the review's network, that of RFC 2544
    /// (appendix C: half of 198.18.0.0/15), that of IPv6.
    pub networks: [(IpAddr, u8); 3],
}

/// The links of port 0 and port 1.
pub const SIDES: [Side; 2] =
    [side("port0", "dut0", 1, (16, 18), 0x16), side("port1", "dut1", 2, (48, 19), 0x48)];

const fn side(port: &'static str, interface: &'static str, link: u8, v4: (u8, u8), v6: u16) -> Side {
    Side {
        port,
        interface,
        port_mac: mac(link, 2),
        interface_mac: mac(link, 1),
        port_index: 10 + link as u32,
        interface_index: 20 + link as u32,
        port_addresses: [IpAddr::V4(Ipv4Addr::new(100, 65, link, 2)), benchmark(link as u16, 2)],
        interface_addresses: [IpAddr::V4(Ipv4Addr::new(100, 65, link, 1)), benchmark(link as u16, 1)],
        prefixes: [24, 64],
        networks: [
            (IpAddr::V4(Ipv4Addr::new(v4.0, 0, 0, 0)), 8),
            (IpAddr::V4(Ipv4Addr::new(198, v4.1, 0, 0)), 16),
            (benchmark(v6, 0), 64),
        ],
    }
}

/// A locally administered address that tells link and host, like the IP addresses do. Hosts 1 and 2
/// are the device's and the tester's ends.
#[must_use]
pub const fn mac(link: u8, host: u8) -> MacAddress {
    MacAddress([0x02, b'L', b'n', b'r', link, host])
}

const fn benchmark(network: u16, host: u16) -> IpAddr {
    IpAddr::V6(Ipv6Addr::new(0x2001, 2, 0, network, 0, 0, 0, host))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plan_is_the_one_of_the_review() {
        let [zero, one] = SIDES;
        assert_eq!(zero.port_addresses.map(|a| a.to_string()), ["100.65.1.2", "2001:2:0:1::2"]);
        assert_eq!(zero.interface_addresses.map(|a| a.to_string()), ["100.65.1.1", "2001:2:0:1::1"]);
        assert_eq!(one.port_addresses.map(|a| a.to_string()), ["100.65.2.2", "2001:2:0:2::2"]);
        let networks = |side: Side| side.networks.map(|(a, p)| format!("{a}/{p}"));
        assert_eq!(networks(zero), ["16.0.0.0/8", "198.18.0.0/16", "2001:2:0:16::/64"]);
        assert_eq!(networks(one), ["48.0.0.0/8", "198.19.0.0/16", "2001:2:0:48::/64"]);
        assert_eq!(one.interface_mac.to_string(), "02:4c:6e:72:02:01");
    }
}
