//! ICMPv6 (RFC 4443) and neighbour discovery (RFC 4861) on the bytes of packets, from the IPv6 header on:
//! packets and addresses enter, answers and errors leave, checked and with their checksums.

use std::net::Ipv6Addr;

use wire::{MacAddress, checksum, icmp, ipv6, neighbour};

use crate::dataplane::counters::Reason;

/// Bytes before the message: the IPv6 header alone.
const MESSAGE: usize = ipv6::LENGTH;

/// Bytes of a packet with a solicitation or an advertisement.
pub const NEIGHBOUR_LENGTH: usize = MESSAGE + neighbour::LENGTH + neighbour::OPTION_LENGTH;

/// The most bytes of an error's packet: those that every link carries (RFC 4443, 2.4 (c)).
pub const ERROR_MOST: usize = 1280;

/// Bytes of an error before the packet that it is about.
const ERROR_HEADER: usize = 8;

/// What discovery has, so that it was not routed (RFC 4861, 7.1).
const NEVER_ROUTED: u8 = 255;

/// Types of errors are below this one (RFC 4443, 2.1).
const FIRST_INFORMATION: u8 = 128;

/// The type of a redirection (RFC 4861, 4.5).
const REDIRECT: u8 = 137;

/// Headers that may stand between that of IPv6 and what it carries, and of which one says where the next
/// begins (RFC 8200, section 4).
const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const DESTINATION: u8 = 60;

/// The ICMPv6 message of a packet, if the packet carries one right behind its header, and its checksum
/// holds (RFC 4443, 2.3).
///
/// # Errors
/// [`Reason::Icmp6Truncated`], [`Reason::Icmp6Checksum`].
pub fn message<'a>(packet: &'a [u8], header: &ipv6::Header) -> Result<&'a [u8], Reason> {
    let end = MESSAGE + usize::from(header.payload_length);
    let message = packet.get(MESSAGE..end).filter(|message| message.len() >= icmp::LENGTH);
    let message = message.ok_or(Reason::Icmp6Truncated)?;
    if sum(header, message).fold() == u16::MAX { Ok(message) } else { Err(Reason::Icmp6Checksum) }
}

fn sum(header: &ipv6::Header, message: &[u8]) -> checksum::Sum {
    checksum::pseudo_ipv6(header.source, header.destination, ipv6::ICMP, message.len() as u16).bytes(message)
}

/// Makes a packet with an echo request to us, whose checksum holds, the answer to it (RFC 4443, 4.2).
pub fn answer_echo(packet: &mut [u8], hop_limit: u8) {
    let Some(bytes) = packet.first_chunk_mut::<{ MESSAGE + icmp::LENGTH }>() else { return };
    let (source, destination) = bytes[8..MESSAGE].split_at_mut(16);
    source.swap_with_slice(destination);
    bytes[7] = hop_limit;
    bytes[MESSAGE] = icmp::ECHO_REPLY_V6;
    // The type is one more in the high byte of a word, so the checksum is as much less (RFC 1624); that
    // the addresses have changed places does not change their sum.
    let sum = u16::from_be_bytes([bytes[MESSAGE + 2], bytes[MESSAGE + 3]]);
    let (sum, borrow) = sum.overflowing_sub(0x100);
    [bytes[MESSAGE + 2], bytes[MESSAGE + 3]] = (sum - u16::from(borrow)).to_be_bytes();
}

/// What a solicitation or an advertisement says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Discovery {
    /// Who sends it; unspecified where it has no address yet.
    pub source: Ipv6Addr,
    /// Whose link address it is about.
    pub target: Ipv6Addr,
    /// The link address of the source of a solicitation, of the target of an advertisement.
    pub mac: Option<MacAddress>,
    /// The flags of [`neighbour`].
    pub flags: u8,
}

impl Discovery {
    /// Reads a message of this kind, if it is valid in all that RFC 4861 demands (7.1.1 and 7.1.2).
    ///
    /// # Errors
    /// [`Reason::NeighbourInvalid`], and those of [`message`].
    pub fn read(packet: &[u8], kind: u8) -> Result<Self, Reason> {
        let header = ipv6::Header::parse(packet).ok_or(Reason::NeighbourInvalid)?;
        let message = message(packet, &header)?;
        let read = neighbour::Header::parse(message).ok_or(Reason::NeighbourInvalid)?;
        let solicits = kind == neighbour::SOLICITATION;
        let option = if solicits { neighbour::SOURCE_LINK_ADDRESS } else { neighbour::TARGET_LINK_ADDRESS };
        let options = message.get(neighbour::LENGTH..).unwrap_or_default();
        let mac = neighbour::link_address(option, options).map_err(|_| Reason::NeighbourInvalid)?;
        let (source, to) = (header.source, header.destination);
        let possible = if solicits {
            // Who has no address has none to tell of either, and asks the group of the one it wants.
            !source.is_unspecified() || (mac.is_none() && to == ipv6::solicited_node(to))
        } else {
            // A group has not asked.
            !source.is_unspecified() && (!to.is_multicast() || read.flags & neighbour::SOLICITED == 0)
        };
        let valid = possible
            && read.kind == kind
            && header.hop_limit == NEVER_ROUTED
            && !read.target.is_multicast()
            && mac.is_none_or(is_station);
        let discovery = Self { source, target: read.target, mac, flags: read.flags };
        if valid { Ok(discovery) } else { Err(Reason::NeighbourInvalid) }
    }
}

/// Whether one station alone may have this address.
fn is_station(mac: MacAddress) -> bool {
    mac.0[0] & 1 == 0 && mac.0 != [0; 6]
}

/// Writes the advertisement that answers a solicitation for one of our addresses to the first
/// [`NEIGHBOUR_LENGTH`] bytes of a packet (RFC 4861, 7.2.4), and says to whom it goes: to all, where the
/// one who asked has no address.
pub fn advertise(packet: &mut [u8], asked: &Discovery, ours: MacAddress) -> Ipv6Addr {
    let (destination, solicited) = match asked.source {
        Ipv6Addr::UNSPECIFIED => (ipv6::ALL_NODES, 0),
        source => (source, neighbour::SOLICITED),
    };
    let flags = neighbour::ROUTER | neighbour::OVERRIDE | solicited;
    let header =
        neighbour::Header { kind: neighbour::ADVERTISEMENT, checksum: 0, flags, target: asked.target };
    let option = neighbour::emit_link_address(neighbour::TARGET_LINK_ADDRESS, ours);
    write_discovery(packet, asked.target, destination, header, option);
    destination
}

/// Writes a solicitation for `target` from one of our addresses to the first [`NEIGHBOUR_LENGTH`] bytes of a
/// packet (RFC 4861, 7.2.2), and says to which group it goes.
pub fn solicit(packet: &mut [u8], target: Ipv6Addr, ours: (Ipv6Addr, MacAddress)) -> Ipv6Addr {
    let destination = ipv6::solicited_node(target);
    let header = neighbour::Header { kind: neighbour::SOLICITATION, checksum: 0, flags: 0, target };
    let option = neighbour::emit_link_address(neighbour::SOURCE_LINK_ADDRESS, ours.1);
    write_discovery(packet, ours.0, destination, header, option);
    destination
}

fn write_discovery(
    packet: &mut [u8],
    source: Ipv6Addr,
    destination: Ipv6Addr,
    header: neighbour::Header,
    option: [u8; neighbour::OPTION_LENGTH],
) {
    let Some(packet) = packet.first_chunk_mut::<NEIGHBOUR_LENGTH>() else { return };
    let (fields, link_address) = packet[MESSAGE..].split_at_mut(neighbour::LENGTH);
    fields.copy_from_slice(&header.emit());
    link_address.copy_from_slice(&option);
    seal(packet, source, destination, NEVER_ROUTED);
}

/// Puts the IPv6 header before the message of a packet, and the checksum into it, where zeros are.
fn seal(packet: &mut [u8], source: Ipv6Addr, destination: Ipv6Addr, hop_limit: u8) {
    let Some((before, message)) = packet.split_first_chunk_mut::<MESSAGE>() else { return };
    let header = ipv6::Header {
        traffic_class: 0,
        flow_label: 0,
        payload_length: message.len() as u16,
        next_header: ipv6::ICMP,
        hop_limit,
        source,
        destination,
    };
    *before = header.emit();
    let checksum = sum(&header, message).checksum();
    if let Some(place) = message.get_mut(icmp::CHECKSUM_OFFSET..).and_then(<[u8]>::first_chunk_mut) {
        *place = checksum.to_be_bytes();
    }
}

/// What an error says (RFC 4443, section 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Problem {
    kind: u8,
    code: u8,
    /// What stands between the checksum and the packet that it is about.
    value: u32,
}

impl Problem {
    const UNREACHABLE: u8 = 1;
    const TOO_BIG: u8 = 2;
    const TIME_EXCEEDED: u8 = 3;

    /// What the source of a packet is told that goes no further for `reason`, to a link of this MTU; `None`
    /// where it is told nothing.
    #[must_use]
    pub fn of(reason: Reason, mtu: u16) -> Option<Self> {
        let (kind, code, value) = match reason {
            Reason::Ip6NoRoute => (Self::UNREACHABLE, 0, 0),
            Reason::Ip6Prohibited => (Self::UNREACHABLE, 1, 0),
            Reason::Ip6BeyondScope => (Self::UNREACHABLE, 2, 0),
            Reason::Ip6Unreachable | Reason::Ip6NoAnswer => (Self::UNREACHABLE, 3, 0),
            Reason::Ip6TooBig => (Self::TOO_BIG, 0, u32::from(mtu)),
            Reason::Ip6Expired => (Self::TIME_EXCEEDED, 0, 0),
            _ => return None,
        };
        Some(Self { kind, code, value })
    }

    /// Whether it may be told about a packet of this header and what follows it: never about an error or a
    /// redirection, to who is no single host, or about a packet to a group, except that it was too big (RFC 4443,
    /// 2.4 (e)). `group` says that its frame was sent to one.
    #[must_use]
    pub fn may_be_told(self, header: &ipv6::Header, payload: &[u8], group: bool) -> bool {
        let group = group || header.destination.is_multicast();
        !header.source.is_unspecified()
            && !header.source.is_multicast()
            && (!group || self.kind == Self::TOO_BIG)
            && !is_error(header.next_header, payload)
    }

    /// How long the packet is that tells it about a packet of `length` bytes.
    #[must_use]
    pub fn length(length: usize) -> usize {
        (MESSAGE + ERROR_HEADER + length).min(ERROR_MOST)
    }

    /// Writes the packet that tells it to the source of the packet `about`, `to`, of which it holds as much as
    /// there is room for in `packet`.
    pub fn write(self, packet: &mut [u8], (source, to): (Ipv6Addr, Ipv6Addr), hop_limit: u8, about: &[u8]) {
        let parts = packet.split_first_chunk_mut::<{ MESSAGE + ERROR_HEADER }>();
        let Some((before, quoted)) = parts else { return };
        quoted.iter_mut().zip(about).for_each(|(place, byte)| *place = *byte);
        before[MESSAGE..MESSAGE + 4].copy_from_slice(&[self.kind, self.code, 0, 0]);
        before[MESSAGE + 4..].copy_from_slice(&self.value.to_be_bytes());
        seal(packet, source, to, hop_limit);
    }
}

/// Whether an ICMPv6 error or a redirection follows, behind any extension headers.
fn is_error(mut next: u8, mut rest: &[u8]) -> bool {
    while let [following, units, ..] = *rest {
        let length = match next {
            ipv6::ICMP => return following < FIRST_INFORMATION || following == REDIRECT,
            HOP_BY_HOP | ROUTING | DESTINATION => 8 * (1 + usize::from(units)),
            // Of a fragment that is not the first nobody knows.
            FRAGMENT if matches!(rest, [_, _, 0, low, ..] if low & !7 == 0) => 8,
            _ => return false,
        };
        next = following;
        rest = rest.get(length..).unwrap_or_default();
    }
    false
}
