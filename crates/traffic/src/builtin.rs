//! The built-in profiles: names and tunables enter, what TRex's bundled profiles send leaves, and a mix of sizes more.
//!
//! Byte for byte that is what TRex v3.08's `bench.py`, `imix.py` and `udp_1pkt_simple.py` send (`bimodal` is our own),
//! but for these, in which they could not or should not be followed:
//!
//! - The last 18 bytes of each payload are our signature.
//! - `udp_1pkt_simple` has a payload of 10 bytes in TRex, padded to 60; ours is the signature,
//!   which fills the frame to the same 60 bytes, so its IP and UDP lengths are 46 and 26.
//! - `udp_1pkt_simple` in the reverse direction swaps the addresses, as TRex's `_bdir` does.
//! - `imix` writes new addresses under an old UDP checksum in TRex; ours is right.
//! - The three streams of a mix begin at once and are interleaved by weight; TRex starts
//!   them 0.1 µs apart.
//! - `bench --vm random` and `--vm size` draw from a seeded sequence.
//! - `bench --vm size` draws up to `--size`, where that is given; TRex ignores it.
//!
//! `--ip 6` gives the same hosts in RFC 5180's benchmarking prefix, with a hop limit of 64 and the
//! UDP checksum that IPv6 demands; `--vlan` puts tags before the IP header.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use wire::size;

use crate::error::Error;
use crate::field::{Field, FieldError};
use crate::profile::Profile;
use crate::stream::{BothWays, Ethernet, IpVersion, Ipv4, Ipv6, Network, Stream, Transport, Udp, Vlan};
use crate::tunable::{Size, Tunables, Vm};

/// A network that a device under test must route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    /// Its first address.
    pub address: IpAddr,
    /// Bits of network.
    pub length: u8,
}

/// IPv4 hosts behind port 0, as in TRex's profiles.
pub const NEAR_V4: Prefix = Prefix { address: IpAddr::V4(Ipv4Addr::new(16, 0, 0, 0)), length: 8 };
/// IPv4 hosts behind port 1.
pub const FAR_V4: Prefix = Prefix { address: IpAddr::V4(Ipv4Addr::new(48, 0, 0, 0)), length: 8 };
/// IPv6 hosts behind port 0: 2001:2:0:16::/64, of RFC 5180's 2001:2::/48.
pub const NEAR_V6: Prefix =
    Prefix { address: IpAddr::V6(Ipv6Addr::new(0x2001, 2, 0, 0x16, 0, 0, 0, 0)), length: 64 };
/// IPv6 hosts behind port 1: 2001:2:0:48::/64.
pub const FAR_V6: Prefix =
    Prefix { address: IpAddr::V6(Ipv6Addr::new(0x2001, 2, 0, 0x48, 0, 0, 0, 0)), length: 64 };

/// A built-in profile.
#[derive(Clone, Copy, Debug)]
pub struct Builtin {
    /// Its name.
    pub name: &'static str,
    /// What it sends, in a line.
    pub description: &'static str,
    /// The names of the [`TUNABLES`] it has.
    pub tunables: &'static [&'static str],
    make: fn(&Tunables, &mut Vec<String>) -> Result<BothWays, Error>,
}

/// The built-in profiles.
pub const BUILTINS: [Builtin; 4] = [
    Builtin {
        name: "bench",
        description: "UDP 1025 > 12 from 16.0.0.4-254 to 48.0.0.4-254, of any size and variation (TRex's bench.py)",
        tunables: &["size", "vm", "ip", "vlan"],
        make: bench,
    },
    Builtin {
        name: "imix",
        description: "UDP 53 > 53, 254 pairs of hosts, frames of 64, 594 and 1518 bytes 7:4:1, the simple IMIX (TRex's imix.py)",
        tunables: &["ip", "vlan"],
        make: imix,
    },
    Builtin {
        name: "bimodal",
        description: "as imix, but 44 % of frames of 64 bytes, 19 % of 594 and 37 % of 1518, as on the Internet since about 2004",
        tunables: &["ip", "vlan"],
        make: bimodal,
    },
    Builtin {
        name: "udp_1pkt_simple",
        description: "one flow of the smallest UDP frames, 16.0.0.1:1025 > 48.0.0.1:12 (TRex's udp_1pkt_simple.py)",
        tunables: &["ip", "vlan"],
        make: udp_1pkt_simple,
    },
];

/// A tunable of built-in profiles.
#[derive(Clone, Copy, Debug)]
pub struct Tunable {
    /// Its name.
    pub name: &'static str,
    /// The values it takes.
    pub values: &'static str,
    /// What it does, in a line.
    pub description: &'static str,
}

/// The tunables of built-in profiles.
pub const TUNABLES: [Tunable; 4] = [
    Tunable {
        name: "size",
        values: "64…9216, imix",
        description: "frame size with FCS, default 64 or the least that fits; imix is 68, 590 and 1514 bytes 28:16:4",
    },
    Tunable {
        name: "vm",
        values: "none, var1, var2, random, tuple, size, cached",
        description: "what varies: nothing (default), the source, source and destination, …",
    },
    Tunable {
        name: "ip",
        values: "4, 6",
        description: "IP version, default 4; 6 uses 2001:2:0:16::/64 and 2001:2:0:48::/64",
    },
    Tunable {
        name: "vlan",
        values: "1…4094, or two with a comma",
        description: "VLAN tags, outer first, default none",
    },
];

/// The seed of what is drawn.
const SEED: u64 = 1;

/// The built-in profiles and their tunables, as text for people.
#[must_use]
pub fn listing() -> String {
    let mut text = String::new();
    for builtin in &BUILTINS {
        text += &format!("{}\n    {}\n", builtin.name, builtin.description);
        for tunable in TUNABLES.iter().filter(|tunable| builtin.tunables.contains(&tunable.name)) {
            // Records keep TRex's word.
            let flag = if tunable.name == "vm" { "flows" } else { tunable.name };
            text += &format!("    --{flag:<6} {}: {}\n", tunable.values, tunable.description);
        }
    }
    text
}

impl Profile {
    /// The built-in profile `name` with `tunables`.
    ///
    /// # Errors
    /// When there is no such profile, it has no such tunable, or the frames would be impossible.
    pub fn builtin(name: &str, tunables: &Tunables) -> Result<Self, Error> {
        let builtin =
            BUILTINS.iter().find(|builtin| builtin.name == name).ok_or_else(|| Error::UnknownProfile {
                name: name.to_owned(),
                known: BUILTINS.map(|builtin| builtin.name).join(", "),
            })?;
        let mut applied = apply(builtin, tunables)?;
        let mut notes = Vec::new();
        let streams = (builtin.make)(tunables, &mut notes)?;
        // The default size depends on the headers, and two streams have the same ones.
        if let (Some(size), None, [first, ..]) = (applied.get_mut("size"), tunables.size, &*streams[0]) {
            *size = first.size.max().to_string();
        }
        Ok(Self::new(name, streams)?
            .with_description(builtin.description)
            .with_tunables(applied)
            .with_notes(notes))
    }
}

/// The tunables of `builtin` with their defaults.
fn apply(builtin: &Builtin, tunables: &Tunables) -> Result<BTreeMap<String, String>, Error> {
    let given = [
        ("size", tunables.size.map(|size| size.to_string())),
        ("vm", tunables.vm.map(|vm| vm.to_string())),
        ("ip", tunables.ip.map(|ip| ip.to_string())),
        ("vlan", tunables.vlan.as_ref().map(ToString::to_string)),
    ];
    let defaults = [("size", "64"), ("vm", "none"), ("ip", "4")];
    let own = defaults.into_iter().filter(|(name, _)| builtin.tunables.contains(name));
    let mut applied: BTreeMap<_, _> = own.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    for (tunable, value) in given {
        let Some(value) = value else { continue };
        if !builtin.tunables.contains(&tunable) {
            let known = builtin.tunables.join(", ");
            return Err(Error::UnknownTunable { profile: builtin.name, tunable, known });
        }
        applied.insert(tunable.to_owned(), value);
    }
    Ok(applied)
}

/// One end of a direction: its network, as a number.
#[derive(Clone, Copy)]
struct Side(u128);

impl Side {
    /// Host number `host`, always.
    fn host(self, host: u128) -> Field {
        Field::fixed(self.0 + host)
    }

    /// Host numbers `first` to `last` in turn.
    fn hosts(self, first: u128, last: u128) -> Result<Field, FieldError> {
        Field::increment(self.0 + first, self.0 + last, 1)
    }
}

/// Makes the streams of both directions with `make`, from the networks of each.
fn both_directions(
    tunables: &Tunables,
    mut make: impl FnMut(Side, Side) -> Result<Vec<Stream>, Error>,
) -> Result<BothWays, Error> {
    let [(source, destination), (back_source, back_destination)] = sides(tunables.ip.unwrap_or_default());
    Ok([make(source, destination)?, make(back_source, back_destination)?])
}

/// The networks of both directions as (source, destination).
fn sides(ip: IpVersion) -> [(Side, Side); 2] {
    let number = |prefix: Prefix| match prefix.address {
        IpAddr::V4(address) => Side(address.to_bits().into()),
        IpAddr::V6(address) => Side(address.to_bits()),
    };
    let (near, far) = match ip {
        IpVersion::V4 => (number(NEAR_V4), number(FAR_V4)),
        IpVersion::V6 => (number(NEAR_V6), number(FAR_V6)),
    };
    [(near, far), (far, near)]
}

/// A UDP stream with the tags and the IP version that `tunables` ask for.
fn udp(tunables: &Tunables, (source, destination): (Field, Field), udp: Udp) -> Stream {
    let tags = tunables.vlan.iter().flat_map(|tags| tags.ids());
    let ip = tunables.ip.unwrap_or_default();
    Stream {
        name: "udp".to_owned(),
        weight: 1,
        size: Field::fixed(size::MIN.into()),
        ethernet: Ethernet::default(),
        vlan: tags.map(|id| Vlan { id: Field::fixed((*id).into()), priority: Field::fixed(0) }).collect(),
        pppoe: None,
        network: match ip {
            IpVersion::V4 => Network::V4(Ipv4::new(source, destination)),
            IpVersion::V6 => Network::V6(Ipv6::new(source, destination)),
        },
        transport: Transport::Udp(Udp { checksum: udp.checksum || ip == IpVersion::V6, ..udp }),
    }
}

/// One stream like `template` for each size of a mix, with its weight. Sizes that cannot hold
/// the headers are raised, and `notes` says so.
fn mix(template: &Stream, sizes: [(u16, u64); 3], notes: &mut Vec<String>) -> Vec<Stream> {
    let smallest = template.smallest_size();
    let stream = |(size, weight): (u16, u64)| {
        let note = format!(
            "frames of {size} bytes do not hold {} and the signature: raised to {smallest}",
            template.describe_headers()
        );
        if size < smallest && !notes.contains(&note) {
            notes.push(note);
        }
        let size = size.max(smallest);
        Stream { name: format!("{size} bytes"), weight, size: Field::fixed(size.into()), ..template.clone() }
    };
    sizes.into_iter().map(stream).collect()
}

/// `bench.py`. Its UDP checksum is zero: none, over IPv4.
fn bench(tunables: &Tunables, notes: &mut Vec<String>) -> Result<BothWays, Error> {
    // Frame sizes with FCS; bench.py takes the size of a stream so.
    const MIX: [(u16, u64); 3] = [(68, 28), (590, 16), (1514, 4)];
    let vm = tunables.vm.unwrap_or_default();
    if vm == Vm::Size && tunables.size == Some(Size::Imix) {
        return Err(Error::Conflict(
            "flows of the kind size draw each frame's size up to the one given: give a number of bytes, not imix",
        ));
    }
    both_directions(tunables, |source, destination| {
        let (hosts, ports) = bench_flows(vm, source, destination)?;
        let template =
            udp(tunables, hosts, Udp { source: ports, destination: Field::fixed(12), checksum: false });
        let fixed = |size: u16| Stream { size: Field::fixed(size.into()), ..template.clone() };
        Ok(match (vm, tunables.size) {
            (Vm::Size, size) => {
                let largest = if let Some(Size::Bytes(bytes)) = size { bytes } else { size::MAX };
                let smallest = template.smallest_size().min(largest);
                vec![Stream { size: Field::random(smallest.into(), largest.into(), SEED, None)?, ..template }]
            }
            (_, None) => vec![fixed(template.smallest_size())],
            (_, Some(Size::Bytes(bytes))) => vec![fixed(bytes)],
            (_, Some(Size::Imix)) => mix(&template, MIX, notes),
        })
    })
}

/// The hosts and source ports of `bench.py`: numbers 4 to 254 of each network.
fn bench_flows(vm: Vm, source: Side, destination: Side) -> Result<((Field, Field), Field), Error> {
    const FIRST: u128 = 4;
    const LAST: u128 = 254;
    /// Frames that `--vm cached` makes once and repeats.
    const CACHE: u128 = 255;
    let one_port = Field::fixed(1025);
    let steps = source.hosts(FIRST, LAST)?;
    let far = destination.host(FIRST);
    Ok(match vm {
        Vm::None | Vm::Size => ((source.host(FIRST), far), one_port),
        Vm::Var1 => ((steps, far), one_port),
        Vm::Var2 => ((steps, destination.hosts(FIRST, LAST)?), one_port),
        Vm::Random => ((Field::random(source.0 + FIRST, source.0 + LAST, SEED, None)?, far), one_port),
        Vm::Tuple => {
            let ports = Field::increment(1234, 65500, 1)?.after(&steps)?;
            ((steps, far), ports)
        }
        Vm::Cached => {
            let cache = (0..CACHE).map(|frame| source.0 + FIRST + frame % (LAST - FIRST + 1)).collect();
            ((Field::list(cache)?, far), one_port)
        }
    })
}

/// `imix.py`: hosts 1 to 254 of each network in pairs, scapy's default ports.
fn imix(tunables: &Tunables, notes: &mut Vec<String>) -> Result<BothWays, Error> {
    // Frame sizes with FCS; imix.py gives 60, 590 and 1514 without.
    const MIX: [(u16, u64); 3] = [(64, 28), (594, 16), (1518, 4)];
    mix_of_hosts(tunables, MIX, notes)
}

/// The sizes that *Tuning FreeBSD for routing* tells of the Internet in 2006: 44 % of packets had less than 100 bytes, and
/// 37 % more than 1,400. What lies between is not told; here it has 576 bytes, as in the simple IMIX.
fn bimodal(tunables: &Tunables, notes: &mut Vec<String>) -> Result<BothWays, Error> {
    mix_of_hosts(tunables, [(64, 44), (594, 19), (1518, 37)], notes)
}

/// Frames of these sizes and weights between hosts 1 to 254 of each network in pairs.
fn mix_of_hosts(
    tunables: &Tunables,
    sizes: [(u16, u64); 3],
    notes: &mut Vec<String>,
) -> Result<BothWays, Error> {
    both_directions(tunables, |source, destination| {
        let hosts = (source.hosts(1, 254)?, destination.hosts(1, 254)?);
        let ports = Udp { source: Field::fixed(53), destination: Field::fixed(53), checksum: true };
        Ok(mix(&udp(tunables, hosts, ports), sizes, notes))
    })
}

/// `udp_1pkt_simple.py`, in the smallest frames that hold it.
fn udp_1pkt_simple(tunables: &Tunables, notes: &mut Vec<String>) -> Result<BothWays, Error> {
    both_directions(tunables, |source, destination| {
        let ports = Udp { source: Field::fixed(1025), destination: Field::fixed(12), checksum: true };
        let template = udp(tunables, (source.host(1), destination.host(1)), ports);
        let size = Field::fixed(template.smallest_size().into());
        let note = format!(
            "frames have {} bytes, the fewest that hold {} and the signature",
            template.smallest_size(),
            template.describe_headers()
        );
        if template.smallest_size() > size::MIN && notes.is_empty() {
            notes.push(note);
        }
        Ok(vec![Stream { size, ..template }])
    })
}
