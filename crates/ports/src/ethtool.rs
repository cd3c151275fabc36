//! What a driver says of its interface by ethtool netlink (Linux 5.6 and later) and the family `netdev` (6.3 and
//! later): the interface's name enters; plain facts leave, `None` for what it does not tell.

use std::collections::BTreeSet;

use genetlink::ethtool::Ethtool;
use genetlink::{find, netdev, number};
use results::record::{Pause, Queues, Rings, XdpFeature};

// The numbers of linux/ethtool_netlink.h.
const RINGS_GET: u8 = 15;
const CHANNELS_GET: u8 = 17;
const PAUSE_GET: u8 = 21;
const FLAG_STATS: u32 = 4;

/// Asks about one interface.
pub(crate) struct Questions<'a> {
    ethtool: Ethtool,
    interface: &'a str,
}

impl<'a> Questions<'a> {
    /// Connects to the network namespace of the calling thread; `None` where the kernel has no such family.
    pub fn open(interface: &'a str) -> Option<Self> {
        Some(Self { ethtool: Ethtool::open().ok()?, interface })
    }

    /// The attributes of the answer; `None` where the driver does not tell.
    fn get(&self, command: u8, flags: u32) -> Option<Vec<u8>> {
        self.ethtool.get(command, self.interface, flags).ok()
    }

    /// Its speed in Mb/s and whether it is full duplex.
    pub fn speed(&self) -> (Option<u32>, Option<bool>) {
        self.ethtool.speed(self.interface)
    }

    /// The offloads that are on.
    pub fn offloads(&self) -> Option<BTreeSet<String>> {
        self.ethtool.active(self.interface).ok()
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
        frames_received_meanwhile: None,
    }
}

/// What the driver of the interface of this index can do with XDP at this moment; `None` before Linux 6.3.
pub(crate) fn xdp_features(index: u32) -> Option<BTreeSet<XdpFeature>> {
    netdev::xdp_features(index).map(parse_features)
}

fn parse_features(bits: u64) -> BTreeSet<XdpFeature> {
    let set = XdpFeature::ALL.into_iter().enumerate().filter(|(bit, _)| bits >> bit & 1 == 1);
    set.map(|(_, feature)| feature).collect()
}

#[cfg(test)]
mod tests {
    use genetlink::{attribute, nested};

    use super::*;

    fn word(kind: u16, value: u32) -> Vec<u8> {
        attribute(kind, &value.to_ne_bytes())
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
            frames_received_meanwhile: None,
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
}
