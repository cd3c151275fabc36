//! Frame tables for people: rows enter; flows, counts and lines of text leave.
//!
//! What is shown is read back from the rows' bytes, so it is what will be sent.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::IpAddr;
use std::ops::Range;

use wire::{esp, ethernet, human, icmp, ipv4, ipv6, pppoe, tcp, udp, vlan};

use crate::stream::MAX_STREAMS;
use crate::table::FrameTable;

/// Addresses, protocol and ports of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Flow {
    /// Source address.
    pub source: IpAddr,
    /// Destination address.
    pub destination: IpAddr,
    /// The number of layer 4, as in IPv4's protocol field.
    pub protocol: u8,
    /// Source and destination port, where there are ports.
    pub ports: Option<(u16, u16)>,
}

/// What stands before layer 4.
struct Layers<'a> {
    tags: Vec<u16>,
    /// The session of PPPoE.
    session: Option<u16>,
    source: IpAddr,
    destination: IpAddr,
    protocol: u8,
    /// Where both addresses stand in the header, and ports after them where there are ports.
    key: Range<usize>,
    /// Layer 4.
    transport: &'a [u8],
}

impl<'a> Layers<'a> {
    fn parse(header: &'a [u8]) -> Option<Self> {
        let mut ethertype = ethernet::Header::parse(header)?.ethertype;
        let mut rest = header.get(ethernet::LENGTH..)?;
        let mut tags = Vec::new();
        while matches!(ethertype, vlan::CUSTOMER | vlan::SERVICE) {
            let tag = vlan::Tag::parse(rest)?;
            tags.push(tag.id);
            ethertype = tag.ethertype;
            rest = rest.get(vlan::LENGTH..)?;
        }
        let session = if ethertype == pppoe::SESSION {
            let session = pppoe::Header::parse(rest)?;
            ethertype = match session.protocol {
                pppoe::IPV4 => ethernet::IPV4,
                pppoe::IPV6 => ethernet::IPV6,
                _ => return None,
            };
            rest = rest.get(pppoe::LENGTH..)?;
            Some(session.session)
        } else {
            None
        };
        let start = header.len() - rest.len();
        let (source, destination, protocol, addresses, length): (IpAddr, IpAddr, _, _, _) = match ethertype {
            ethernet::IPV4 => {
                let ip = ipv4::Header::parse(rest)?;
                (ip.source.into(), ip.destination.into(), ip.protocol, start + 12, ipv4::LENGTH)
            }
            ethernet::IPV6 => {
                let ip = ipv6::Header::parse(rest)?;
                (ip.source.into(), ip.destination.into(), ip.next_header, start + 8, ipv6::LENGTH)
            }
            _ => return None,
        };
        // Both versions end with the addresses, and both UDP and TCP begin with the ports.
        let ports = if matches!(protocol, ipv4::UDP | ipv4::TCP) { 4 } else { 0 };
        let key = addresses..start + length + ports;
        let transport = rest.get(length..)?;
        Some(Self { tags, session, source, destination, protocol, key, transport })
    }

    fn flow(&self) -> Flow {
        let ports = match self.protocol {
            ipv4::UDP => udp::Header::parse(self.transport).map(|udp| (udp.source, udp.destination)),
            ipv4::TCP => tcp::Header::parse(self.transport).map(|tcp| (tcp.source, tcp.destination)),
            _ => None,
        };
        Flow { source: self.source, destination: self.destination, protocol: self.protocol, ports }
    }

    /// The protocol's name, with what distinguishes its frames.
    fn protocol_name(&self) -> String {
        match self.protocol {
            ipv4::UDP => "udp".to_owned(),
            ipv4::TCP => match tcp::Header::parse(self.transport) {
                Some(tcp) => {
                    let flags = tcp::FLAGS.iter().filter(|(_, bit)| tcp.flags & bit != 0);
                    let names: Vec<&str> = flags.map(|(name, _)| *name).collect();
                    format!("tcp {}", names.join("+")).trim_end().to_owned()
                }
                None => "tcp".to_owned(),
            },
            ipv4::ICMP | ipv6::ICMP => match icmp::Header::parse(self.transport) {
                Some(icmp) => format!("echo {}/{}", icmp.identifier, icmp.sequence),
                None => "icmp".to_owned(),
            },
            ipv4::GRE => "gre".to_owned(),
            ipv4::ESP => match esp::Header::parse(self.transport) {
                Some(esp) => format!("esp {}/{}", esp.spi, esp.sequence),
                None => "esp".to_owned(),
            },
            other => format!("protocol {other}"),
        }
    }
}

impl Flow {
    /// Reads the flow of a frame from its `header`; `None` when it is not Ethernet with IP.
    #[must_use]
    pub fn parse(header: &[u8]) -> Option<Self> {
        Layers::parse(header).map(|layers| layers.flow())
    }

    /// The same as far as network cards look: not into PPPoE.
    #[must_use]
    pub fn seen_by_card(header: &[u8]) -> Option<Self> {
        Layers::parse(header).filter(|layers| layers.session.is_none()).map(|layers| layers.flow())
    }
}

impl fmt::Display for Flow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = |address: IpAddr, port: u16| std::net::SocketAddr::new(address, port);
        match self.ports {
            Some((source, destination)) => {
                write!(f, "{} > {}", end(self.source, source), end(self.destination, destination))
            }
            None => write!(f, "{} > {}", self.source, self.destination),
        }
    }
}

impl FrameTable {
    /// How many distinct flows the table sends in `direction` (0 or 1).
    #[must_use]
    pub fn flows(&self, direction: u8) -> u64 {
        let places = self.flow_places();
        let key = |row: &u32| {
            let index = *row as usize;
            let (protocol, place) = places.get(usize::from(self.rows.get(index)?.stream))?.as_ref()?;
            let header = self.headers.get(index * self.header_length..)?;
            Some((*protocol, header.get(place.clone())?))
        };
        let hash = |row: u32| {
            let mut hasher = DefaultHasher::new();
            key(&row).hash(&mut hasher);
            (hasher.finish(), row)
        };
        // Sorting row numbers takes a fifth of the memory of a set of flows, and hashes beside them spare it from reading
        // headers all over memory.
        let rows = (0..).zip(&self.rows).filter(|(_, row)| row.direction == direction);
        let mut rows: Vec<(u64, u32)> = rows.map(|(index, _)| hash(index)).collect();
        rows.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| key(&a.1).cmp(&key(&b.1))));
        rows.dedup_by(|a, b| a.0 == b.0 && key(&a.1) == key(&b.1));
        rows.len() as u64
    }

    /// For each stream its layer 4, and where its headers hold addresses and ports: the same
    /// place in all its frames.
    fn flow_places(&self) -> Vec<Option<(u8, Range<usize>)>> {
        let mut places = vec![None; MAX_STREAMS];
        for (index, row) in self.rows.iter().enumerate() {
            if let Some(place @ None) = places.get_mut(usize::from(row.stream)) {
                *place = self.layers(index).map(|layers| (layers.protocol, layers.key));
            }
        }
        places
    }

    /// The first `count` rows in words, one a line, and what the table leaves out.
    #[must_use]
    pub fn show(&self, count: usize) -> String {
        let mut text = String::new();
        for (index, row) in self.rows.iter().enumerate().take(count) {
            let layers = self.layers(index);
            let (flow, protocol, tags) = match &layers {
                Some(layers) => (layers.flow().to_string(), layers.protocol_name(), layers.tags.as_slice()),
                None => ("not IP".to_owned(), String::new(), [].as_slice()),
            };
            let mut tags: String = tags.iter().map(|id| format!(" vlan {id}")).collect();
            let session = layers.as_ref().and_then(|layers| layers.session);
            tags += &session.map_or(String::new(), |session| format!(" pppoe {session}"));
            let ports = if row.direction == 0 { "0 -> 1" } else { "1 -> 0" };
            let size = row.length + wire::size::FCS;
            text +=
                &format!("{index:>4}  {ports}  {flow}  {protocol}{tags}  {size} B  stream {}\n", row.stream);
        }
        if self.rows.len() > count {
            text += &format!("… {} rows in all\n", human::count(self.rows.len() as u64));
        }
        if let Some(note) = self.note() {
            text += &format!("{note}\n");
        }
        text
    }

    /// What a reader should know of a table that is not complete.
    #[must_use]
    pub fn note(&self) -> Option<String> {
        let rows = human::count(self.rows.len() as u64);
        match self.period {
            _ if self.is_complete() => None,
            u64::MAX => {
                Some(format!("the table is a sample of {rows} frames of a profile that does not repeat"))
            }
            period => {
                Some(format!("the table is a sample: the first {rows} of {} frames", human::count(period)))
            }
        }
    }

    fn layers(&self, index: usize) -> Option<Layers<'_>> {
        let start = index * self.header_length;
        Layers::parse(self.headers.get(start..start + self.header_length)?)
    }
}
