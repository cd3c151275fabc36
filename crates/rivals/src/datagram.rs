//! A UDP datagram: the size of its payload enters; the packets that carry it leave, which are
//! several where it does not fit the MTU (RFC 791, section 2.3). Pure.

use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;

use wire::{MacAddress, ethernet, ipv4, size, udp};

/// The MTU of the port that generators send by.
pub const MTU: usize = 1500;
/// The largest payload that one packet holds.
pub const UNFRAGMENTED: u16 = (MTU - ipv4::LENGTH - udp::LENGTH) as u16;
/// Bytes of payload in a fragment that is not the last: what fits, in units of 8 bytes.
const FRAGMENT: usize = (MTU - ipv4::LENGTH) / 8 * 8;
/// The largest payload that UDP over IPv4 has (RFC 768).
const MAX: u16 = u16::MAX - (ipv4::LENGTH + udp::LENGTH) as u16;
/// The port that datagrams come from and go to: discard (RFC 863).
pub const PORT: u16 = 9;
/// Where the flags and the offset of a fragment stand in the IPv4 header, and its checksum.
const FRAGMENT_FIELD: usize = 6;
const CHECKSUM_FIELD: usize = 10;
/// More fragments follow.
const MORE: u16 = 0x2000;

/// The size of a datagram's payload, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram(u16);

/// From where to where datagrams go.
#[derive(Clone, Copy, Debug)]
pub struct Way {
    /// The sender.
    pub source: (MacAddress, Ipv4Addr),
    /// The receiver.
    pub destination: (MacAddress, Ipv4Addr),
}

impl FromStr for Datagram {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let payload = text.parse().ok().filter(|payload| (1..=MAX).contains(payload));
        payload.map(Self).ok_or_else(|| format!("'{text}' is no size of a datagram: give 1 to {MAX} bytes"))
    }
}

impl fmt::Display for Datagram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl Datagram {
    /// Bytes of its payload.
    pub fn payload(self) -> u16 {
        self.0
    }

    /// The sizes of the frames that carry it, FCS included, as Ethernet pads them.
    pub fn frames(self) -> Vec<u16> {
        let frame = |(_, length): (usize, usize)| {
            size::MIN.max((ethernet::LENGTH + ipv4::LENGTH + length) as u16 + size::FCS)
        };
        self.fragments().into_iter().map(frame).collect()
    }

    /// The frames themselves, without FCS and padding. The UDP checksum is absent, as IPv4 allows.
    pub fn packets(self, way: &Way) -> Vec<Vec<u8>> {
        let length = udp::LENGTH as u16 + self.0;
        let header = udp::Header { source: PORT, destination: PORT, length, checksum: 0 };
        let mut datagram = header.emit().to_vec();
        datagram.resize(usize::from(length), 0);
        let fragments = self.fragments();
        let packet = |(offset, length): (usize, usize)| {
            let ethernet = ethernet::Header {
                destination: way.destination.0,
                source: way.source.0,
                ethertype: ethernet::IPV4,
            };
            let more = offset + length < datagram.len();
            let mut packet = ethernet.emit().to_vec();
            packet.extend(ip_header(way, offset, length, more));
            packet.extend(datagram.iter().skip(offset).take(length));
            packet
        };
        fragments.into_iter().map(packet).collect()
    }

    /// Bytes that IP carries.
    fn ip_payload(self) -> usize {
        udp::LENGTH + usize::from(self.0)
    }

    /// Where each packet's part begins, and how long it is.
    fn fragments(self) -> Vec<(usize, usize)> {
        let all = self.ip_payload();
        if self.0 <= UNFRAGMENTED {
            return vec![(0, all)];
        }
        (0..all).step_by(FRAGMENT).map(|offset| (offset, FRAGMENT.min(all - offset))).collect()
    }
}

/// The header of a packet that carries `length` bytes of the datagram from `offset` on.
fn ip_header(way: &Way, offset: usize, length: usize, more: bool) -> [u8; ipv4::LENGTH] {
    let header = ipv4::Header {
        tos: 0,
        total_length: (ipv4::LENGTH + length) as u16,
        identification: 0,
        ttl: 64,
        protocol: ipv4::UDP,
        source: way.source.1,
        destination: way.destination.1,
    };
    let mut bytes = header.emit();
    let field = (offset / 8) as u16 | if more { MORE } else { 0 };
    bytes[FRAGMENT_FIELD..][..2].copy_from_slice(&field.to_be_bytes());
    bytes[CHECKSUM_FIELD..][..2].fill(0);
    let checksum = wire::checksum::Sum::default().bytes(&bytes).checksum();
    bytes[CHECKSUM_FIELD..][..2].copy_from_slice(&checksum.to_be_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use etherparse::{Ethernet2Slice, Ipv4Slice};

    use super::*;

    const WAY: Way = Way {
        source: (MacAddress([2, 0, 0, 0, 0, 1]), Ipv4Addr::new(100, 65, 1, 2)),
        destination: (MacAddress([2, 0, 0, 0, 0, 2]), Ipv4Addr::new(100, 65, 1, 1)),
    };

    #[test]
    fn what_does_not_fit_the_mtu_leaves_in_fragments() {
        let frames = |payload| Datagram(payload).frames();
        assert_eq!(frames(16), [64], "padded");
        assert_eq!(frames(18), [64]);
        assert_eq!(frames(19), [65]);
        assert_eq!(frames(1472), [1518]);
        assert_eq!(frames(1473), [1518, 64]);
        assert_eq!(frames(1500), [1518, 66]);
        assert_eq!(frames(MAX).len(), 45);
    }

    #[test]
    fn fragments_put_together_are_the_datagram() {
        for payload in [1, 16, 1472, 1473, 1500, 9000, MAX] {
            let mut whole = Vec::new();
            let packets = Datagram(payload).packets(&WAY);
            for (number, packet) in packets.iter().enumerate() {
                assert!(packet.len() <= ethernet::LENGTH + MTU);
                let ethernet = Ethernet2Slice::from_slice_without_fcs(packet).unwrap();
                let ip = Ipv4Slice::from_slice(ethernet.payload().payload).unwrap();
                let header = ip.header();
                assert_eq!(header.header_checksum(), header.to_header().calc_header_checksum());
                assert_eq!(usize::from(header.fragments_offset().value()) * 8, whole.len());
                assert_eq!(header.more_fragments(), number + 1 < packets.len());
                whole.extend(ip.payload().payload);
            }
            let header = udp::Header::parse(&whole).unwrap();
            assert_eq!((header.length, header.length as usize), (payload + 8, whole.len()));
        }
    }

    #[test]
    fn sizes_are_those_that_udp_has() {
        assert_eq!("16".parse(), Ok(Datagram(16)));
        for text in ["0", "-1", "65508", "16b", ""] {
            assert!(text.parse::<Datagram>().unwrap_err().contains("1 to 65507"));
        }
    }
}
