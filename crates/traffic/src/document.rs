//! Profiles that people write: TOML text enters, a [`Profile`] leaves, or the line and the reason
//! why it is none. `docs/profiles.md` describes the format; `profiles/*.toml` are examples.

use toml::de::DeTable;
use wire::{Rate, ipv6, size, tcp, vlan};

use crate::error::Error;
use crate::profile::{FILL, Profile, check};
use crate::program::{Kind, Programs};
use crate::reader::{Node, Section, Source};
use crate::repetition::Repetition;
use crate::stream::{
    Esp, Ethernet, Gre, Icmp, Ipv4, Ipv6, MAX_STREAMS, Network, Stream, StreamError, Tcp, Transport, Udp,
    Vlan,
};
use crate::timing::{self, Timing};

/// The largest weight.
const MAX_WEIGHT: u128 = 1_000_000_000;
/// The largest rate of one stream, in frames a second.
const MAX_PPS: f64 = 1e9;
/// Weight of a stream for each frame a second of its rate.
const WEIGHT_PER_PPS: f64 = 1000.0;

const U8: Kind = Kind::Number(0, u8::MAX as u128);
const U16: Kind = Kind::Number(0, u16::MAX as u128);
const U32: Kind = Kind::Number(0, u32::MAX as u128);

/// How much of the load a stream takes, and where that is said.
#[derive(Clone, Copy)]
enum Share<'a> {
    /// `weight`, or nothing.
    Weight(u64),
    /// `rate`.
    Rate(Rate, Node<'a>),
}

impl Profile {
    /// Reads a profile from TOML `text`; `origin` names it in messages, usually a file.
    ///
    /// # Errors
    /// When the text is not TOML or no profile: the line and the reason.
    pub fn from_toml(origin: &str, text: &str) -> Result<Self, Error> {
        let source = Source { origin, text };
        let table = DeTable::parse(text)
            .map_err(|error| source.error(error.span().map_or(0, |span| span.start), error.message()))?;
        let mut root = Section::root(source, table.get_ref());
        let name = match root.get("name") {
            Some(node) => node.text()?,
            None => stem(origin),
        };
        let description = root.get("description").map_or(Ok(""), |node| node.text())?;
        let fill = root.get("fill").map_or(Ok(FILL.into()), |node| node.number(0, 255))?;
        let Together { streams, base_pps, repetition } = read_streams(&mut root)?;
        root.finish()?;
        let reverse = streams.iter().cloned().map(Stream::reversed).collect();
        Ok(Self::new(name, [streams, reverse])?
            .with_description(description)
            .with_fill(fill as u8)
            .with_repetition(repetition)
            .with_source(text.to_owned(), base_pps))
    }
}

/// The file name of `origin` without directory and `.toml`.
fn stem(origin: &str) -> &str {
    let file = origin.rsplit('/').next().unwrap_or(origin);
    file.strip_suffix(".toml").unwrap_or(file)
}

/// All streams, the rate that they add up to if they state rates, and how they leave if they have bursts.
struct Together {
    streams: Vec<Stream>,
    base_pps: Option<f64>,
    repetition: Option<Repetition>,
}

/// All streams, checked together.
fn read_streams(root: &mut Section<'_>) -> Result<Together, Error> {
    let node = root.get("stream").ok_or_else(|| root.error("a profile needs streams: write [[stream]]"))?;
    let nodes = node.items()?;
    if nodes.is_empty() || nodes.len() > MAX_STREAMS {
        return Err(node.error(Error::Streams(nodes.len())));
    }
    let mut streams = Vec::with_capacity(nodes.len());
    let mut places = Vec::with_capacity(nodes.len());
    let (mut rates, mut timings) = (Vec::new(), Vec::new());
    for (index, node) in nodes.iter().enumerate() {
        let (mut stream, share, size, timing) = read_stream(*node, index)?;
        if let Share::Rate(rate, node) = share {
            let rate = rate_to_pps(rate, stream.size.mean(), node)?;
            stream.weight = (rate * WEIGHT_PER_PPS).round() as u64;
            rates.push(rate);
        }
        if !rates.is_empty() && rates.len() != index + 1 {
            return Err(
                node.error("streams have rates or weights, not some of each: give every stream a rate")
            );
        }
        if timing.is_given && rates.is_empty() {
            return Err(node
                .error("a stream with bursts needs a rate, and so do all others: write rate = \"100kpps\""));
        }
        streams.push(stream);
        timings.push(timing);
        places.push((*node, size));
    }
    check_together(root, &streams, &places)?;
    let names: Vec<&str> = streams.iter().map(|stream| stream.name.as_str()).collect();
    let repetition = timing::repetition(&timings, &names, &rates)?;
    let pps = repetition.as_ref().map_or_else(|| rates.iter().sum(), Repetition::mean_pps);
    if let Some(repetition) = &repetition {
        let frames = repetition.frames(streams.len());
        streams.iter_mut().zip(frames).for_each(|(stream, frames)| stream.weight = frames);
    }
    Ok(Together { streams, base_pps: (!rates.is_empty()).then_some(pps), repetition })
}

/// Whether the frames of all `streams` are possible; else which is not, at its place.
fn check_together(
    root: &Section<'_>,
    streams: &[Stream],
    places: &[(Node<'_>, Option<Node<'_>>)],
) -> Result<(), Error> {
    let all: Vec<&Stream> = streams.iter().collect();
    check(&all).map_err(|(stream, error)| {
        let index = streams.iter().position(|own| std::ptr::eq(own, stream)).unwrap_or(0);
        let about_size = !matches!(error, StreamError::NoChecksum);
        match places.get(index) {
            Some((_, Some(size))) if about_size => size.error(error),
            Some((node, _)) => node.error(error),
            None => root.error(error),
        }
    })
}

/// A stream's rate in frames a second; frames have `size` bytes on average.
fn rate_to_pps(rate: Rate, size: f64, node: Node<'_>) -> Result<f64, Error> {
    let pps = match rate {
        Rate::Percent(_) | Rate::Max => None,
        _ => rate.to_pps(size, 0.0),
    };
    let pps = pps.ok_or_else(|| node.error("a stream's rate is in pps or bps: percent and max belong to the load, which scales all streams together"))?;
    if (1.0 / WEIGHT_PER_PPS..=MAX_PPS).contains(&pps) {
        Ok(pps)
    } else {
        Err(node.error(format!("a rate of {pps} pps is out of range: it can be 0.001pps to 1gpps")))
    }
}

/// A stream, its share, where its size is said, and when it sends.
type Read<'a> = (Stream, Share<'a>, Option<Node<'a>>, Timing<'a>);

fn read_stream<'a>(node: Node<'a>, index: usize) -> Result<Read<'a>, Error> {
    let mut section = node.section("a stream")?;
    let name = section
        .get("name")
        .map_or_else(|| Ok(format!("stream {index}")), |name| name.text().map(str::to_owned))?;
    let share = read_share(&mut section)?;
    let timing = Timing::read(&mut section, node)?;
    let mut programs = Programs::default();
    let size = section.get("size");
    programs.read(&mut section, "", "size", Kind::Number(size::MIN.into(), size::MAX.into()))?;
    read_ethernet(&mut section, &mut programs)?;
    let tags = read_vlan(&mut section, &mut programs)?;
    let has_session = section.get("pppoe").is_some();
    programs.read(&mut section, "", "pppoe", U16)?;
    let network = read_network(&mut section, &mut programs)?;
    let transport = read_transport(&mut section, &mut programs)?;
    section.finish()?;
    programs.link()?;

    let ethernet = Ethernet {
        source: programs.take("ethernet.source"),
        destination: programs.take("ethernet.destination"),
    };
    let vlan = (0..tags).map(|tag| build_vlan(tag, &mut programs)).collect();
    let stream = Stream {
        name,
        weight: match share {
            Share::Weight(weight) => weight,
            Share::Rate(..) => 1,
        },
        size: programs.take_or("size", size::MIN.into()),
        ethernet,
        vlan,
        pppoe: has_session.then(|| programs.take_or("pppoe", 1)),
        network: build_network(network, &mut programs),
        transport: build_transport(transport, &mut programs),
    };
    Ok((stream, share, size, timing))
}

fn read_share<'a>(section: &mut Section<'a>) -> Result<Share<'a>, Error> {
    let (weight, rate) = (section.get("weight"), section.get("rate"));
    match (weight, rate) {
        (Some(_), Some(rate)) => Err(rate.error("rate and weight exclude each other: keep one")),
        (None, Some(node)) => Ok(Share::Rate(node.text()?.parse().map_err(|error| node.error(error))?, node)),
        (Some(node), None) => Ok(Share::Weight(node.number(1, MAX_WEIGHT)? as u64)),
        (None, None) => Ok(Share::Weight(1)),
    }
}

fn read_ethernet<'a>(section: &mut Section<'a>, programs: &mut Programs<'a>) -> Result<(), Error> {
    let Some(mut ethernet) = section.section("ethernet")? else { return Ok(()) };
    programs.read(&mut ethernet, "ethernet", "source", Kind::Mac)?;
    programs.read(&mut ethernet, "ethernet", "destination", Kind::Mac)?;
    ethernet.finish()
}

/// The names of tags in links: the outer, or only, and the inner.
const TAGS: [&str; 2] = ["vlan", "inner-vlan"];

/// `vlan = 100`, `vlan = [100, { id = 200, priority = 3 }]`: how many tags there are.
fn read_vlan<'a>(section: &mut Section<'a>, programs: &mut Programs<'a>) -> Result<usize, Error> {
    let Some(node) = section.get("vlan") else { return Ok(0) };
    let tags = node.items().unwrap_or_else(|_| vec![node]);
    if tags.is_empty() || tags.len() > TAGS.len() {
        return Err(node.error(format!("{} VLAN tags: write one, or two for QinQ (outer first)", tags.len())));
    }
    for (path, tag) in TAGS.iter().zip(&tags) {
        if tag.is_table() {
            let mut table = tag.section("a VLAN tag")?;
            programs.read(&mut table, path, "id", Kind::Number(0, vlan::MAX_ID.into()))?;
            programs.read(&mut table, path, "priority", Kind::Number(0, 7))?;
            table.finish()?;
        } else {
            programs.read_node(format!("{path}.id"), *tag, Kind::Number(0, vlan::MAX_ID.into()))?;
        }
    }
    Ok(tags.len())
}

fn build_vlan(tag: usize, programs: &mut Programs<'_>) -> Vlan {
    let path = TAGS.get(tag).copied().unwrap_or_default();
    Vlan {
        id: programs.take_or(&format!("{path}.id"), 0),
        priority: programs.take_or(&format!("{path}.priority"), 0),
    }
}

/// Reads the fields of layer 3 and says which it is.
fn read_network<'a>(section: &mut Section<'a>, programs: &mut Programs<'a>) -> Result<&'static str, Error> {
    let (version, node) = section.one_of(&["ipv4", "ipv6"])?;
    let mut table = node.section(version)?;
    let fields: [(&'static str, Kind); 5] = if version == "ipv4" {
        [
            ("source", Kind::Ipv4),
            ("destination", Kind::Ipv4),
            ("tos", U8),
            ("ttl", U8),
            ("identification", U16),
        ]
    } else {
        let flow_label = Kind::Number(0, ipv6::MAX_FLOW_LABEL.into());
        [
            ("source", Kind::Ipv6),
            ("destination", Kind::Ipv6),
            ("traffic-class", U8),
            ("hop-limit", U8),
            ("flow-label", flow_label),
        ]
    };
    for (key, kind) in fields {
        programs.read(&mut table, version, key, kind)?;
    }
    for key in ["source", "destination"] {
        if table.get(key).is_none() {
            return Err(table.error(format!(
                "{version} needs a {key}: write one address, or several as a field program"
            )));
        }
    }
    table.finish()?;
    Ok(version)
}

fn build_network(version: &str, programs: &mut Programs<'_>) -> Network {
    let source = programs.take_or(&format!("{version}.source"), 0);
    let destination = programs.take_or(&format!("{version}.destination"), 0);
    if version == "ipv4" {
        let default = Ipv4::new(source, destination);
        Network::V4(Ipv4 {
            tos: programs.take("ipv4.tos").unwrap_or(default.tos),
            ttl: programs.take("ipv4.ttl").unwrap_or(default.ttl),
            identification: programs.take("ipv4.identification").unwrap_or(default.identification),
            ..default
        })
    } else {
        let default = Ipv6::new(source, destination);
        Network::V6(Ipv6 {
            traffic_class: programs.take("ipv6.traffic-class").unwrap_or(default.traffic_class),
            hop_limit: programs.take("ipv6.hop-limit").unwrap_or(default.hop_limit),
            flow_label: programs.take("ipv6.flow-label").unwrap_or(default.flow_label),
            ..default
        })
    }
}

/// Which layer 4, with what cannot vary.
enum Protocol {
    Udp { checksum: bool },
    Tcp { flags: u8 },
    Icmp,
    Gre,
    Esp,
}

/// Reads the fields of layer 4 and says which it is.
fn read_transport<'a>(section: &mut Section<'a>, programs: &mut Programs<'a>) -> Result<Protocol, Error> {
    let (name, node) = section.one_of(&["udp", "tcp", "icmp", "gre", "esp"])?;
    let mut table = node.section(name)?;
    let (fields, protocol): (&[(&'static str, Kind)], _) = match name {
        "udp" => {
            let checksum = table.get("checksum").map_or(Ok(true), |node| node.boolean())?;
            (&[("source", U16), ("destination", U16)], Protocol::Udp { checksum })
        }
        "tcp" => {
            let flags = table.get("flags").map_or(Ok(ACK), read_flags)?;
            (
                &[
                    ("source", U16),
                    ("destination", U16),
                    ("sequence", U32),
                    ("acknowledgment", U32),
                    ("window", U16),
                ],
                Protocol::Tcp { flags },
            )
        }
        "gre" => (&[("source", Kind::Ipv4), ("destination", Kind::Ipv4)], Protocol::Gre),
        "esp" => (&[("spi", U32), ("sequence", U32)], Protocol::Esp),
        _ => (&[("identifier", U16), ("sequence", U16)], Protocol::Icmp),
    };
    for (key, kind) in fields {
        programs.read(&mut table, name, key, *kind)?;
    }
    table.finish()?;
    Ok(protocol)
}

/// 10.0.0.1, where a tunnel's packets come from unless they say otherwise.
const FIRST_INSIDE: u128 = 0x0a00_0001;

/// What a TCP segment in the middle of a connection says.
const ACK: u8 = 0x10;

/// `flags = ["syn", "ack"]`
fn read_flags(node: Node<'_>) -> Result<u8, Error> {
    node.items()?.into_iter().try_fold(0, |flags, item| {
        let name = item.text()?;
        let known = || tcp::FLAGS.map(|(name, _)| name).join(", ");
        match tcp::FLAGS.iter().find(|(own, _)| *own == name) {
            Some((_, bit)) => Ok(flags | bit),
            None => Err(item.error(format!("unknown TCP flag '{name}': known are {}", known()))),
        }
    })
}

fn build_transport(protocol: Protocol, programs: &mut Programs<'_>) -> Transport {
    match protocol {
        Protocol::Udp { checksum } => Transport::Udp(Udp {
            source: programs.take_or("udp.source", 1025),
            destination: programs.take_or("udp.destination", 12),
            checksum,
        }),
        Protocol::Tcp { flags } => Transport::Tcp(Box::new(Tcp {
            source: programs.take_or("tcp.source", 1025),
            destination: programs.take_or("tcp.destination", 80),
            sequence: programs.take_or("tcp.sequence", 0),
            acknowledgment: programs.take_or("tcp.acknowledgment", 0),
            window: programs.take_or("tcp.window", 65535),
            flags,
        })),
        Protocol::Icmp => Transport::Icmp(Icmp {
            identifier: programs.take_or("icmp.identifier", 1),
            sequence: programs.take_or("icmp.sequence", 1),
        }),
        Protocol::Gre => Transport::Gre(Gre {
            source: programs.take_or("gre.source", FIRST_INSIDE),
            destination: programs.take_or("gre.destination", FIRST_INSIDE + 1),
        }),
        Protocol::Esp => Transport::Esp(Esp {
            spi: programs.take_or("esp.spi", 256),
            sequence: programs.take_or("esp.sequence", 1),
        }),
    }
}
