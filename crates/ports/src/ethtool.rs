//! What a driver says of its interface by ethtool netlink (Linux 5.6 and later), the family `netdev` (6.3 and
//! later) and, for its name, an ioctl: the interface's name enters; plain facts leave, `None` for what it does
//! not tell.

use std::collections::BTreeSet;
use std::io;

use genetlink::{Answers, Family, attribute, attributes, find, nested, number};
use nix::libc;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
use results::record::{Pause, Queues, Rings, XdpFeature};

use crate::link::text;

// The numbers of linux/ethtool_netlink.h.
const LINKMODES_GET: u8 = 4;
const FEATURES_GET: u8 = 11;
const RINGS_GET: u8 = 15;
const CHANNELS_GET: u8 = 17;
const PAUSE_GET: u8 = 21;
/// The attribute with the interface is the first of every request.
const HEADER: u16 = 1;
const HEADER_DEV_NAME: u16 = 2;
const HEADER_FLAGS: u16 = 3;
const FLAG_STATS: u32 = 4;
const FEATURES_ACTIVE: u16 = 4;
const BITSET_BITS: u16 = 3;
const BIT_NAME: u16 = 2;
/// Half and full duplex as drivers tell them; others mean that it is not known.
const DUPLEX: [u64; 2] = [0, 1];

// The numbers of linux/netdev.h.
const DEV_GET: u8 = 1;
const DEV_IFINDEX: u16 = 1;
const DEV_XDP_FEATURES: u16 = 3;

/// Asks about one interface.
pub(crate) struct Ethtool<'a> {
    family: Family,
    interface: &'a str,
}

impl<'a> Ethtool<'a> {
    /// Connects to the network namespace of the calling thread; `None` where the kernel has no such family.
    pub fn open(interface: &'a str) -> Option<Self> {
        Some(Self { family: Family::open("ethtool").ok()?, interface })
    }

    /// The attributes of the answer; `None` where the driver does not tell.
    fn get(&self, command: u8, flags: u32) -> Option<Vec<u8>> {
        let name = attribute(HEADER_DEV_NAME, &[self.interface.as_bytes(), b"\0"].concat());
        let header = nested(HEADER, &[name, attribute(HEADER_FLAGS, &flags.to_ne_bytes())]);
        self.family.request(command, Answers::One, &header).ok()?.into_iter().next()
    }

    /// Its speed in Mb/s and whether it is full duplex.
    pub fn speed(&self) -> (Option<u32>, Option<bool>) {
        self.get(LINKMODES_GET, 0).map(|answer| parse_speed(&answer)).unwrap_or_default()
    }

    /// The offloads that are on.
    pub fn offloads(&self) -> Option<BTreeSet<String>> {
        parse_offloads(&self.get(FEATURES_GET, 0)?)
    }

    /// Its rings.
    pub fn rings(&self) -> Option<Rings> {
        self.get(RINGS_GET, 0).map(|answer| parse_rings(&answer))
    }

    /// Its queues.
    pub fn queues(&self) -> Option<Queues> {
        self.get(CHANNELS_GET, 0).map(|answer| parse_queues(&answer))
    }

    /// Its pause frames, with their counters where the kernel has these (5.10 and later).
    pub fn pause(&self) -> Option<Pause> {
        let answer = self.get(PAUSE_GET, FLAG_STATS).or_else(|| self.get(PAUSE_GET, 0))?;
        Some(parse_pause(&answer))
    }
}

fn value(answer: &[u8], kind: u16) -> Option<u64> {
    find(answer, kind).and_then(number)
}

fn count(answer: &[u8], kind: u16) -> u32 {
    value(answer, kind).and_then(|number| u32::try_from(number).ok()).unwrap_or_default()
}

fn parse_speed(answer: &[u8]) -> (Option<u32>, Option<bool>) {
    let speed = value(answer, 5).and_then(|speed| u32::try_from(speed).ok());
    // All ones where the driver does not know.
    let speed = speed.filter(|speed| (1..u32::MAX).contains(speed));
    let duplex = value(answer, 6).filter(|duplex| DUPLEX.contains(duplex));
    (speed, duplex.map(|duplex| duplex == 1))
}

fn parse_offloads(answer: &[u8]) -> Option<BTreeSet<String>> {
    let bits = find(find(answer, FEATURES_ACTIVE)?, BITSET_BITS)?;
    Some(attributes(bits).filter_map(|(_, bit)| find(bit, BIT_NAME).map(text)).collect())
}

fn parse_rings(answer: &[u8]) -> Rings {
    let count = |kind| count(answer, kind);
    Rings { receive: count(6), transmit: count(9), receive_max: count(2), transmit_max: count(5) }
}

fn parse_queues(answer: &[u8]) -> Queues {
    let count = |kind| count(answer, kind);
    Queues {
        receive: count(6),
        transmit: count(7),
        combined: count(9),
        receive_max: count(2),
        transmit_max: count(3),
        combined_max: count(5),
    }
}

fn parse_pause(answer: &[u8]) -> Pause {
    let is_on = |kind| value(answer, kind) == Some(1);
    let counted = |kind| find(answer, 5).and_then(|stats| value(stats, kind));
    Pause {
        negotiated: is_on(2),
        obeyed: is_on(3),
        sent: is_on(4),
        frames_received: counted(3),
        frames_sent: counted(2),
    }
}

/// What the driver of the interface of this index can do with XDP at this moment; `None` before Linux 6.3.
pub(crate) fn xdp_features(index: u32) -> Option<BTreeSet<XdpFeature>> {
    let family = Family::open("netdev").ok()?;
    let request = attribute(DEV_IFINDEX, &index.to_ne_bytes());
    let answer = family.request(DEV_GET, Answers::One, &request).ok()?.into_iter().next()?;
    Some(parse_features(value(&answer, DEV_XDP_FEATURES)?))
}

fn parse_features(bits: u64) -> BTreeSet<XdpFeature> {
    let set = XdpFeature::ALL.into_iter().enumerate().filter(|(bit, _)| bits >> bit & 1 == 1);
    set.map(|(_, feature)| feature).collect()
}

/// What a driver calls itself; `None` for what it leaves empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Driver {
    pub name: Option<String>,
    pub version: Option<String>,
    pub firmware: Option<String>,
    pub bus: Option<String>,
}

/// `struct ethtool_drvinfo`: the command, five texts, and numbers that are not used here.
#[repr(C)]
struct DriverInfo {
    command: u32,
    texts: [[u8; 32]; 5],
    rest: [u8; 32],
}

/// Asks the driver what it is.
pub(crate) fn driver(interface: &str) -> io::Result<Driver> {
    const GDRVINFO: u32 = 3;
    let socket = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
    let mut info = DriverInfo { command: GDRVINFO, texts: [[0; 32]; 5], rest: [0; 32] };
    let mut name = [0; libc::IFNAMSIZ];
    for (to, from) in name[..libc::IFNAMSIZ - 1].iter_mut().zip(interface.bytes()) {
        *to = from.cast_signed();
    }
    let data = libc::__c_anonymous_ifr_ifru { ifru_data: (&raw mut info).cast() };
    let mut request = libc::ifreq { ifr_name: name, ifr_ifru: data };
    let descriptor = std::os::fd::AsRawFd::as_raw_fd(&socket);
    // SAFETY: the request names an interface by a text that ends in zero and points to a structure of the
    // layout and size that this command fills in; both live until the call returns.
    let result = unsafe { libc::ioctl(descriptor, libc::SIOCETHTOOL as _, &raw mut request) };
    nix::errno::Errno::result(result)?;
    let text = |at: usize| {
        let bytes: &[u8] = &info.texts[at];
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        let text = String::from_utf8_lossy(&bytes[..end]).into_owned();
        (!text.is_empty() && text != "N/A").then_some(text)
    };
    Ok(Driver { name: text(0), version: text(1), firmware: text(2), bus: text(3) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(kind: u16, value: u32) -> Vec<u8> {
        attribute(kind, &value.to_ne_bytes())
    }

    #[test]
    fn a_speed_is_one_that_the_driver_knows() {
        let answer = |speed: u32, duplex: u8| [word(5, speed), attribute(6, &[duplex])].concat();
        assert_eq!(parse_speed(&answer(1000, 1)), (Some(1000), Some(true)));
        assert_eq!(parse_speed(&answer(100, 0)), (Some(100), Some(false)));
        assert_eq!(parse_speed(&answer(u32::MAX, 255)), (None, None));
        assert_eq!(parse_speed(&[]), (None, None));
    }

    #[test]
    fn offloads_that_are_on_are_named() {
        let bit =
            |name: &str| nested(1, &[word(1, 0), attribute(BIT_NAME, &[name.as_bytes(), b"\0"].concat())]);
        let set = nested(FEATURES_ACTIVE, &[nested(BITSET_BITS, &[bit("rx-gro"), bit("rx-lro")])]);
        assert_eq!(parse_offloads(&set), Some(["rx-gro".to_owned(), "rx-lro".to_owned()].into()));
        assert_eq!(parse_offloads(&[]), None);
    }

    #[test]
    fn rings_queues_and_pause_frames_are_read() {
        let rings = [word(2, 4096), word(5, 2048), word(6, 256), word(9, 512)].concat();
        let expected = Rings { receive: 256, transmit: 512, receive_max: 4096, transmit_max: 2048 };
        assert_eq!(parse_rings(&rings), expected);
        let queues = [word(5, 8), word(9, 2)].concat();
        assert_eq!(parse_queues(&queues), Queues { combined: 2, combined_max: 8, ..Queues::default() });
        let stats = nested(5, &[attribute(2, &7_u64.to_ne_bytes()), attribute(3, &9_u64.to_ne_bytes())]);
        let pause = [attribute(2, &[1]), attribute(3, &[1]), attribute(4, &[0]), stats].concat();
        let expected = Pause {
            negotiated: true,
            obeyed: true,
            sent: false,
            frames_received: Some(9),
            frames_sent: Some(7),
        };
        assert_eq!(parse_pause(&pause), expected);
        assert_eq!(parse_pause(&[]), Pause::default());
    }

    #[test]
    fn features_are_bits() {
        assert_eq!(parse_features(0b111), XdpFeature::ALL[..3].iter().copied().collect());
        assert_eq!(parse_features(u64::MAX).len(), XdpFeature::ALL.len());
        assert!(parse_features(0).is_empty());
    }

    #[test]
    fn an_interface_without_a_driver_has_none() {
        assert!(driver("no-such").is_err());
        assert_eq!(driver("lo").ok().and_then(|driver| driver.name), None);
    }
}
