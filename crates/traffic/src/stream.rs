//! A stream: the headers of its frames, how they vary, their size and weight.
//!
//! Plain data enters; what leaves is whether such frames are possible, and how often they repeat.

use wire::{esp, ethernet, gre, icmp, ipv4, ipv6, pppoe, signature, size, tcp, udp, vlan};

use crate::field::Field;
use crate::table::FrameTable;

/// The most streams of a profile: a signature has 8 bits for them.
pub const MAX_STREAMS: usize = 256;

/// The streams of both directions: port 0 → port 1, and the reverse.
pub type BothWays = [Vec<Stream>; 2];

/// Which Internet protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IpVersion {
    /// IPv4.
    #[default]
    V4,
    /// IPv6.
    V6,
}

/// One frame template, its varying fields, and its share of the load.
///
/// Values that do not fit their header field are cut to its bits when a frame is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stream {
    /// What people call it.
    pub name: String,
    /// Its share of the frames, against the other streams' weights.
    pub weight: u64,
    /// The frame size in bytes, FCS included.
    pub size: Field,
    /// Ethernet addresses.
    pub ethernet: Ethernet,
    /// VLAN tags, outer first; two at most.
    pub vlan: Vec<Vlan>,
    /// The session of PPPoE that it is in, if it is in one.
    pub pppoe: Option<Field>,
    /// Layer 3.
    pub network: Network,
    /// Layer 4.
    pub transport: Transport,
}

/// Ethernet addresses. `None`: the port's own, and that of the device's port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ethernet {
    /// Source address.
    pub source: Option<Field>,
    /// Destination address.
    pub destination: Option<Field>,
}

/// A VLAN tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vlan {
    /// The VLAN.
    pub id: Field,
    /// The priority code point.
    pub priority: Field,
}

/// Layer 3.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Network {
    /// IPv4.
    V4(Ipv4),
    /// IPv6.
    V6(Ipv6),
}

/// The varying part of an IPv4 header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ipv4 {
    /// Source address.
    pub source: Field,
    /// Destination address.
    pub destination: Field,
    /// Type of service.
    pub tos: Field,
    /// Time to live.
    pub ttl: Field,
    /// Identification.
    pub identification: Field,
}

/// The varying part of an IPv6 header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ipv6 {
    /// Source address.
    pub source: Field,
    /// Destination address.
    pub destination: Field,
    /// Traffic class.
    pub traffic_class: Field,
    /// Hop limit.
    pub hop_limit: Field,
    /// Flow label.
    pub flow_label: Field,
}

/// Layer 4.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transport {
    /// UDP.
    Udp(Udp),
    /// TCP.
    Tcp(Box<Tcp>),
    /// ICMP echo request, of the version that layer 3 has.
    Icmp(Icmp),
    /// A tunnel by GRE, with UDP over IPv4 in it.
    Gre(Gre),
    /// IPsec's ESP, whose payload nobody on the way can read.
    Esp(Esp),
}

/// The varying part of a UDP header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Udp {
    /// Source port.
    pub source: Field,
    /// Destination port.
    pub destination: Field,
    /// Whether it carries a checksum; over IPv6 it must.
    pub checksum: bool,
}

/// The varying part of a TCP header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tcp {
    /// Source port.
    pub source: Field,
    /// Destination port.
    pub destination: Field,
    /// Sequence number.
    pub sequence: Field,
    /// Acknowledgment number.
    pub acknowledgment: Field,
    /// Window.
    pub window: Field,
    /// The bits of [`tcp::FLAGS`].
    pub flags: u8,
}

/// The varying part of an ICMP echo request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Icmp {
    /// Identifier.
    pub identifier: Field,
    /// Sequence number.
    pub sequence: Field,
}

/// The varying part of a GRE tunnel: the addresses of the IPv4 packet in it. That is UDP from port 1025 to port 12 without
/// a checksum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gre {
    /// Source address.
    pub source: Field,
    /// Destination address.
    pub destination: Field,
}

/// The varying part of an ESP header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Esp {
    /// The security association's number.
    pub spi: Field,
    /// Sequence number.
    pub sequence: Field,
}

/// Why no frame of a stream is possible.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StreamError {
    /// Headers and signature do not fit.
    #[error(
        "frames of {size} bytes do not hold {headers} and the signature: the smallest that fits is {smallest}"
    )]
    TooSmall {
        /// The size asked for.
        size: u128,
        /// The headers, in words.
        headers: String,
        /// The smallest size that fits.
        smallest: u16,
    },
    /// Larger than we make frames.
    #[error("frames of {0} bytes are too large: the largest is {max}", max = size::MAX)]
    TooLarge(u128),
    /// More tags than a header has room for.
    #[error("{0} VLAN tags are too many: at most two")]
    Tags(usize),
    /// More headers than an engine copies.
    #[error("{headers} are {length} bytes of headers: at most {max} are possible", max = FrameTable::MAX_HEADER)]
    LongHeaders {
        /// The headers, in words.
        headers: String,
        /// Their bytes.
        length: usize,
    },
    /// UDP over IPv6 without a checksum.
    #[error("UDP over IPv6 must carry a checksum (RFC 8200, section 8.1): leave out `checksum = false`")]
    NoChecksum,
    /// A stream that never sends.
    #[error("a weight of 0 sends nothing: write 1 or more, or remove the stream")]
    NoWeight,
    /// An engine copies headers of one length into all frames of a profile, and this
    /// stream's frames are shorter than that.
    #[error(
        "frames of {size} bytes are shorter than the {headers} bytes of header in stream '{other}': make them {smallest} or more"
    )]
    ShorterThanHeaders {
        /// The smallest size of this stream.
        size: u128,
        /// The longest headers of the profile.
        headers: usize,
        /// The stream that has them.
        other: String,
        /// The smallest size that fits.
        smallest: usize,
    },
}

impl Stream {
    /// Bytes of all headers, Ethernet to layer 4.
    #[must_use]
    pub fn header_length(&self) -> usize {
        self.link_length() + self.network.length() + self.transport.length()
    }

    /// Bytes of the headers before layer 3.
    #[must_use]
    pub fn link_length(&self) -> usize {
        let session = self.pppoe.as_ref().map_or(0, |_| pppoe::LENGTH);
        ethernet::LENGTH + self.vlan.len() * vlan::LENGTH + session
    }

    /// The smallest frame size, FCS included, that holds the headers and the signature.
    #[must_use]
    pub fn smallest_size(&self) -> u16 {
        let bytes = self.header_length() + signature::LENGTH + usize::from(size::FCS);
        size::MIN.max(bytes as u16)
    }

    /// The headers in words, like `1 VLAN tag, IPv6 and UDP`.
    #[must_use]
    pub fn describe_headers(&self) -> String {
        let tags = match self.vlan.len() {
            0 => String::new(),
            1 => "1 VLAN tag, ".to_owned(),
            tags => format!("{tags} VLAN tags, "),
        };
        let transport = match self.transport {
            Transport::Udp(_) => "UDP",
            Transport::Tcp(_) => "TCP",
            Transport::Icmp(_) => "ICMP",
            Transport::Gre(_) => "GRE with IPv4 and UDP in it",
            Transport::Esp(_) => "ESP",
        };
        let network = match self.network {
            Network::V4(_) => "IPv4",
            Network::V6(_) => "IPv6",
        };
        let session = self.pppoe.as_ref().map_or("", |_| "PPPoE, ");
        format!("{tags}{session}{network} and {transport}")
    }

    /// Whether its frames are possible.
    ///
    /// # Errors
    /// The first reason why they are not.
    pub fn check(&self) -> Result<(), StreamError> {
        if self.weight == 0 {
            return Err(StreamError::NoWeight);
        }
        if self.vlan.len() > 2 {
            return Err(StreamError::Tags(self.vlan.len()));
        }
        if let (Network::V6(_), Transport::Udp(Udp { checksum: false, .. })) =
            (&self.network, &self.transport)
        {
            return Err(StreamError::NoChecksum);
        }
        let (headers, length) = (self.describe_headers(), self.header_length());
        if length > FrameTable::MAX_HEADER {
            return Err(StreamError::LongHeaders { headers, length });
        }
        let smallest = self.smallest_size();
        if self.size.min() < u128::from(smallest) {
            return Err(StreamError::TooSmall { size: self.size.min(), headers, smallest });
        }
        if self.size.max() > u128::from(size::MAX) {
            return Err(StreamError::TooLarge(self.size.max()));
        }
        Ok(())
    }

    /// Frames of this stream after which they repeat exactly; `u64::MAX` for never, or for more.
    #[must_use]
    pub fn period(&self) -> u64 {
        self.fields().into_iter().map(Field::period).fold(1, saturating_lcm)
    }

    /// About how many different frames it makes: of an endless sequence, how many can be drawn.
    #[must_use]
    pub fn variety(&self) -> u64 {
        let (endless, finite): (Vec<_>, Vec<_>) =
            self.fields().into_iter().partition(|field| field.is_endless());
        let finite = finite.into_iter().map(Field::period).fold(1, saturating_lcm);
        endless.into_iter().map(Field::variety).fold(finite, u64::saturating_mul)
    }

    /// The stream of the other direction: sources and destinations of Ethernet and IP (in a tunnel, too) change
    /// places, ports stay, as in TRex's profiles.
    #[must_use]
    pub fn reversed(mut self) -> Self {
        std::mem::swap(&mut self.ethernet.source, &mut self.ethernet.destination);
        match &mut self.network {
            Network::V4(ip) => std::mem::swap(&mut ip.source, &mut ip.destination),
            Network::V6(ip) => std::mem::swap(&mut ip.source, &mut ip.destination),
        }
        if let Transport::Gre(inner) = &mut self.transport {
            std::mem::swap(&mut inner.source, &mut inner.destination);
        }
        self
    }

    /// Every field that can vary.
    fn fields(&self) -> Vec<&Field> {
        let mut fields = vec![&self.size];
        fields.extend(&self.ethernet.source);
        fields.extend(&self.ethernet.destination);
        fields.extend(self.vlan.iter().flat_map(|tag| [&tag.id, &tag.priority]));
        fields.extend(&self.pppoe);
        match &self.network {
            Network::V4(ip) => {
                fields.extend([&ip.source, &ip.destination, &ip.tos, &ip.ttl, &ip.identification])
            }
            Network::V6(ip) => {
                fields.extend([
                    &ip.source,
                    &ip.destination,
                    &ip.traffic_class,
                    &ip.hop_limit,
                    &ip.flow_label,
                ]);
            }
        }
        match &self.transport {
            Transport::Udp(udp) => fields.extend([&udp.source, &udp.destination]),
            Transport::Tcp(tcp) => {
                fields.extend([
                    &tcp.source,
                    &tcp.destination,
                    &tcp.sequence,
                    &tcp.acknowledgment,
                    &tcp.window,
                ]);
            }
            Transport::Icmp(icmp) => fields.extend([&icmp.identifier, &icmp.sequence]),
            Transport::Gre(gre) => fields.extend([&gre.source, &gre.destination]),
            Transport::Esp(esp) => fields.extend([&esp.spi, &esp.sequence]),
        }
        fields
    }
}

impl Network {
    /// Bytes of the header.
    #[must_use]
    pub fn length(&self) -> usize {
        match self {
            Self::V4(_) => ipv4::LENGTH,
            Self::V6(_) => ipv6::LENGTH,
        }
    }
}

impl Transport {
    /// Bytes of the header.
    #[must_use]
    pub fn length(&self) -> usize {
        match self {
            Self::Udp(_) => udp::LENGTH,
            Self::Tcp(_) => tcp::LENGTH,
            Self::Icmp(_) => icmp::LENGTH,
            Self::Gre(_) => gre::LENGTH + ipv4::LENGTH + udp::LENGTH,
            Self::Esp(_) => esp::LENGTH,
        }
    }
}

impl Ipv4 {
    /// From `source` to `destination`, the rest as TRex's profiles (scapy's defaults) have it.
    #[must_use]
    pub fn new(source: Field, destination: Field) -> Self {
        Self {
            source,
            destination,
            tos: Field::fixed(0),
            ttl: Field::fixed(64),
            identification: Field::fixed(1),
        }
    }
}

impl Ipv6 {
    /// From `source` to `destination`, the rest as TRex's profiles (scapy's defaults) have it.
    #[must_use]
    pub fn new(source: Field, destination: Field) -> Self {
        Self {
            source,
            destination,
            traffic_class: Field::fixed(0),
            hop_limit: Field::fixed(64),
            flow_label: Field::fixed(0),
        }
    }
}

/// The greatest common divisor; that of 0 and `b` is `b`.
pub(crate) fn gcd(a: u64, b: u64) -> u64 {
    let (mut a, mut b) = (a, b);
    while a != 0 {
        (a, b) = (b % a, a);
    }
    b
}

/// The least common multiple, or `u64::MAX` when it is more, or when either is already that.
pub(crate) fn saturating_lcm(a: u64, b: u64) -> u64 {
    if a == u64::MAX || b == u64::MAX {
        return u64::MAX;
    }
    (a / gcd(a, b).max(1)).saturating_mul(b)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// One UDP flow over IPv4 in frames of `size`.
    pub(crate) fn udp(size: u128) -> Stream {
        Stream {
            name: "udp".to_owned(),
            weight: 1,
            size: Field::fixed(size),
            ethernet: Ethernet::default(),
            vlan: Vec::new(),
            pppoe: None,
            network: Network::V4(Ipv4::new(Field::fixed(1), Field::fixed(2))),
            transport: Transport::Udp(Udp {
                source: Field::fixed(3),
                destination: Field::fixed(4),
                checksum: true,
            }),
        }
    }

    #[test]
    fn the_smallest_size_holds_headers_and_signature() {
        let tag = Vlan { id: Field::fixed(1), priority: Field::fixed(0) };
        let v6 = || Network::V6(Ipv6::new(Field::fixed(1), Field::fixed(2)));
        let icmp = || Transport::Icmp(Icmp { identifier: Field::fixed(0), sequence: Field::fixed(0) });
        assert_eq!(udp(64).smallest_size(), 64);
        assert_eq!(Stream { network: v6(), ..udp(64) }.smallest_size(), 84);
        assert_eq!(Stream { vlan: vec![tag.clone()], ..udp(64) }.smallest_size(), 68);
        assert_eq!(Stream { vlan: vec![tag.clone(), tag], network: v6(), ..udp(64) }.smallest_size(), 92);
        assert_eq!(Stream { transport: icmp(), ..udp(64) }.smallest_size(), 64);
        assert_eq!(Stream { pppoe: Some(Field::fixed(1)), ..udp(64) }.smallest_size(), 72);
        let esp = || Transport::Esp(Esp { spi: Field::fixed(1), sequence: Field::fixed(1) });
        assert_eq!(Stream { transport: esp(), ..udp(64) }.smallest_size(), 64);
        assert_eq!(Stream { transport: gre(), ..udp(64) }.smallest_size(), 88);
    }

    fn gre() -> Transport {
        Transport::Gre(Gre { source: Field::fixed(1), destination: Field::fixed(2) })
    }

    #[test]
    fn impossible_streams_are_refused() {
        let tag = Vlan { id: Field::fixed(1), priority: Field::fixed(0) };
        let v6 = Network::V6(Ipv6::new(Field::fixed(1), Field::fixed(2)));
        let unchecked =
            Transport::Udp(Udp { source: Field::fixed(3), destination: Field::fixed(4), checksum: false });
        assert_eq!(udp(64).check(), Ok(()));
        assert_eq!(udp(9216).check(), Ok(()));
        assert!(matches!(udp(63).check(), Err(StreamError::TooSmall { size: 63, smallest: 64, .. })));
        assert_eq!(udp(9217).check(), Err(StreamError::TooLarge(9217)));
        assert_eq!(Stream { weight: 0, ..udp(64) }.check(), Err(StreamError::NoWeight));
        assert_eq!(Stream { vlan: vec![tag; 3], ..udp(90) }.check(), Err(StreamError::Tags(3)));
        assert_eq!(
            Stream { network: v6, transport: unchecked, ..udp(90) }.check(),
            Err(StreamError::NoChecksum)
        );
        let tags = vec![Vlan { id: Field::fixed(1), priority: Field::fixed(0) }; 2];
        let v6 = Network::V6(Ipv6::new(Field::fixed(1), Field::fixed(2)));
        let deep = Stream { vlan: tags, network: v6, transport: gre(), ..udp(200) };
        assert_eq!(deep.check(), Ok(()));
        let deeper = Stream { pppoe: Some(Field::fixed(1)), ..deep };
        assert!(matches!(deeper.check(), Err(StreamError::LongHeaders { length: 102, .. })));
    }

    #[test]
    fn the_period_is_that_of_all_fields_together() {
        let step = |count| Field::increment(1, count, 1).unwrap();
        let random = Field::random(0, 9, 0, None).unwrap();
        let network = |source, destination| Network::V4(Ipv4::new(source, destination));
        let stream = Stream { network: network(step(4), step(6)), ..udp(64) };
        assert_eq!((stream.period(), stream.variety()), (12, 12));
        let stream = Stream { network: network(step(4), random), ..udp(64) };
        assert_eq!((stream.period(), stream.variety()), (u64::MAX, 40));
    }

    proptest! {
        #[test]
        fn the_least_common_multiple_is_one(a in 1u64..100_000, b in 1u64..100_000) {
            let multiple = saturating_lcm(a, b);
            prop_assert!(multiple.is_multiple_of(a) && multiple.is_multiple_of(b));
            prop_assert_eq!(multiple * gcd(a, b), a * b);
            prop_assert_eq!(saturating_lcm(a, u64::MAX), u64::MAX);
            prop_assert_eq!(saturating_lcm(u64::MAX - 1, u64::MAX - 2), u64::MAX);
        }
    }
}
