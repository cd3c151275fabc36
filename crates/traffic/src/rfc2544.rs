//! What RFC 2544 sends: sizes and destination networks enter, a profile leaves.
//!
//! UDP from port 0xc020 to echo (7), as the test frames of RFC 2544's appendix C, between hosts of the
//! benchmarking networks: 198.18.0.0/16 behind port 0 and 198.19.0.0/16 behind port 1; over IPv6
//! those of RFC 5180 that all profiles here use.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr};

use crate::builtin::{FAR_V6, NEAR_V6, Prefix};
use crate::error::Error;
use crate::field::{Field, FieldError};
use crate::genome::Genome;
use crate::profile::Profile;
use crate::stream::{Ethernet, IpVersion, Ipv4, Ipv6, Network, Stream, Transport, Udp};

/// IPv4 hosts behind port 0.
pub const NEAR_V4: Prefix = Prefix { address: IpAddr::V4(Ipv4Addr::new(198, 18, 0, 0)), length: 16 };
/// IPv4 hosts behind port 1.
pub const FAR_V4: Prefix = Prefix { address: IpAddr::V4(Ipv4Addr::new(198, 19, 0, 0)), length: 16 };

/// The hosts' number in their network.
const HOST: u128 = 2;
const SOURCE_PORT: u128 = 0xc020;
const ECHO: u128 = 7;
/// RFC 4814: where source and destination ports are drawn from.
const SOURCE_PORTS: (u128, u128) = (1024, 65535);
const DESTINATION_PORTS: (u128, u128) = (1, 49151);
/// Draws after which ports repeat: with any genome a table that the engine holds.
const PORT_DRAWS: u64 = 4096;
const SEED: u64 = 4814;

/// The sizes of the frames of one test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FrameSizes {
    /// All frames have this size, FCS included.
    One(u16),
    /// A genome repeats, with this size for the letter `z`.
    Imix(Genome, u16),
}

/// How many networks frames go to, RFC 2544 section 12.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Networks {
    /// One.
    #[default]
    One,
    /// 256 in turn: /24 of IPv4, /72 of IPv6.
    Many,
}

/// What to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Test {
    /// Frame sizes.
    pub sizes: FrameSizes,
    /// Destination networks.
    pub networks: Networks,
    /// IP version.
    pub ip: IpVersion,
    /// Whether ports are pseudorandom (RFC 4814).
    pub random_ports: bool,
}

impl Test {
    /// Its profile, called `rfc2544`.
    ///
    /// # Errors
    /// When frames of these sizes are impossible.
    pub fn profile(&self) -> Result<Profile, Error> {
        let [near, far] = match self.ip {
            IpVersion::V4 => [NEAR_V4, FAR_V4],
            IpVersion::V6 => [NEAR_V6, FAR_V6],
        };
        let streams = [vec![self.stream(near, far)?], vec![self.stream(far, near)?]];
        let mut tunables = BTreeMap::from([
            ("size".to_owned(), self.sizes.to_string()),
            ("networks".to_owned(), self.networks.count().to_string()),
            ("ip".to_owned(), if self.ip == IpVersion::V6 { "6" } else { "4" }.to_owned()),
        ]);
        if self.random_ports {
            tunables.insert("ports".to_owned(), "pseudorandom".to_owned());
        }
        let description = "UDP to echo between the benchmarking networks, as RFC 2544 asks for";
        Ok(Profile::new("rfc2544", streams)?.with_description(description).with_tunables(tunables))
    }

    /// The smallest frame that holds its headers and the signature, FCS included.
    #[must_use]
    pub fn smallest(ip: IpVersion) -> u16 {
        let test = Self { sizes: FrameSizes::One(0), networks: Networks::One, ip, random_ports: false };
        test.stream(NEAR_V6, FAR_V6).map_or(wire::size::MIN, |stream| stream.smallest_size())
    }

    fn stream(&self, from: Prefix, to: Prefix) -> Result<Stream, Error> {
        let source = Field::fixed(first_host(from));
        let destination = self.networks.hosts(to)?;
        let (source_port, destination_port) = if self.random_ports {
            let draw = |(low, high), seed| -> Result<Field, FieldError> {
                Field::random(low, high, seed, Some(PORT_DRAWS))
            };
            (draw(SOURCE_PORTS, SEED)?, draw(DESTINATION_PORTS, SEED + 1)?)
        } else {
            (Field::fixed(SOURCE_PORT), Field::fixed(ECHO))
        };
        let size = match &self.sizes {
            FrameSizes::One(bytes) => Field::fixed((*bytes).into()),
            FrameSizes::Imix(genome, mtu) => {
                Field::list(genome.sizes(*mtu).into_iter().map(u128::from).collect())?
            }
        };
        Ok(Stream {
            name: "echo".to_owned(),
            weight: 1,
            size,
            ethernet: Ethernet::default(),
            vlan: Vec::new(),
            pppoe: None,
            network: match self.ip {
                IpVersion::V4 => Network::V4(Ipv4::new(source, destination)),
                IpVersion::V6 => Network::V6(Ipv6::new(source, destination)),
            },
            transport: Transport::Udp(Udp {
                source: source_port,
                destination: destination_port,
                checksum: true,
            }),
        })
    }
}

impl Networks {
    /// How many.
    #[must_use]
    pub fn count(self) -> u64 {
        match self {
            Self::One => 1,
            Self::Many => 256,
        }
    }

    /// A host in each network of `prefix` in turn.
    fn hosts(self, prefix: Prefix) -> Result<Field, FieldError> {
        let first = first_host(prefix);
        // The networks are the 256 that 8 more bits of prefix make.
        let bits = if prefix.address.is_ipv4() { 32 } else { 128 };
        let step = 1_u128 << (bits - u32::from(prefix.length) - 8);
        match self {
            Self::One => Ok(Field::fixed(first)),
            Self::Many => Field::increment(first, first + 255 * step, step),
        }
    }
}

fn first_host(prefix: Prefix) -> u128 {
    let network = match prefix.address {
        IpAddr::V4(address) => address.to_bits().into(),
        IpAddr::V6(address) => address.to_bits(),
    };
    network + HOST
}

impl fmt::Display for FrameSizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(bytes) => write!(f, "{bytes}"),
            Self::Imix(genome, _) => write!(f, "imix:{genome}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use wire::MacAddress;

    use super::*;
    use crate::{Directions, Endpoint, Endpoints};

    fn test(sizes: FrameSizes) -> Test {
        Test { sizes, networks: Networks::One, ip: IpVersion::V4, random_ports: false }
    }

    fn frames(test: &Test, directions: Directions) -> Vec<Vec<u8>> {
        let endpoint = Endpoint { source: MacAddress::default(), destination: MacAddress::default() };
        let table = test.profile().unwrap().table(&Endpoints([endpoint; 2]), directions);
        (0..table.rows.len()).map(|row| table.frame(row)).collect()
    }

    #[test]
    fn a_genome_is_sent_in_exactly_its_order_in_each_direction() {
        let imix = test(FrameSizes::Imix("aagbz".parse().unwrap(), 1400));
        let sizes: Vec<usize> =
            frames(&imix, Directions::Forward).iter().map(|frame| frame.len() + 4).collect();
        assert_eq!(sizes, [64, 64, 1518, 128, 1400]);
        let both: Vec<usize> = frames(&imix, Directions::Both).iter().map(|frame| frame.len() + 4).collect();
        assert_eq!(both, [64, 64, 64, 64, 1518, 1518, 128, 128, 1400, 1400]);
    }

    #[test]
    fn frames_go_from_one_benchmarking_network_to_the_other() {
        let frames = frames(&test(FrameSizes::One(64)), Directions::Both);
        assert_eq!(frames.len(), 2);
        assert_eq!(frames[0][26..34], [198, 18, 0, 2, 198, 19, 0, 2]);
        assert_eq!(frames[1][26..34], [198, 19, 0, 2, 198, 18, 0, 2]);
        assert_eq!(frames[0][34..38], [0xc0, 0x20, 0, 7]);
    }

    #[test]
    fn destinations_are_in_256_networks() {
        for ip in [IpVersion::V4, IpVersion::V6] {
            let many = Test { networks: Networks::Many, ip, ..test(FrameSizes::One(128)) };
            let frames = frames(&many, Directions::Forward);
            let network = |frame: &Vec<u8>| if ip == IpVersion::V4 { frame[32] } else { frame[46] };
            assert_eq!(frames.iter().map(network).collect::<Vec<_>>(), (0..=255).collect::<Vec<u8>>());
        }
    }

    #[test]
    fn ports_are_drawn_where_asked_for() {
        let drawn = Test { random_ports: true, ..test(FrameSizes::One(64)) };
        let frames = frames(&drawn, Directions::Forward);
        let ports: std::collections::HashSet<_> = frames.iter().map(|frame| frame[34..38].to_vec()).collect();
        assert!(ports.len() > 4000, "{}", ports.len());
        assert_eq!(drawn.profile().unwrap().tunables()["ports"], "pseudorandom");
    }

    #[test]
    fn the_smallest_frames_hold_the_signature() {
        assert_eq!((Test::smallest(IpVersion::V4), Test::smallest(IpVersion::V6)), (64, 84));
        let small = Test { ip: IpVersion::V6, ..test(FrameSizes::One(64)) };
        assert!(small.profile().unwrap_err().to_string().contains("the smallest that fits is 84"));
        assert_eq!(test(FrameSizes::Imix("ab".parse().unwrap(), 0)).sizes.to_string(), "imix:ab");
    }
}
