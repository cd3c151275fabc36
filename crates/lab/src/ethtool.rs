//! Offloads: an interface and the names that `ethtool -k` shows enter; whether they are on
//! leaves, or they are switched.

use std::collections::BTreeSet;
use std::io;

use genetlink::{Answers, Family, attribute, attributes, find, nested};

use crate::error::{Error, Needs, Result};

/// Generic receive offload: the kernel merges received frames of one flow.
pub(crate) const GRO: &str = "rx-gro";

/// Checksums are left to the device. On a veth, which has no wire, they are never filled in.
pub(crate) const TX_CHECKSUM: &str = "tx-checksum-ip-generic";

/// All that lets a frame leave otherwise than it will be seen on the wire: without its checksum,
/// several in one, or with its VLAN tag beside it, where an XDP program does not see it.
pub(crate) const ON_LEAVING: [&str; 6] = [
    TX_CHECKSUM,
    "tx-checksum-sctp",
    "tx-generic-segmentation",
    "tx-tcp-segmentation",
    "tx-vlan-hw-insert",
    "tx-vlan-stag-hw-insert",
];

// The numbers of linux/ethtool_netlink.h.
const FEATURES_GET: u8 = 11;
const FEATURES_SET: u8 = 12;
const FEATURES_HEADER: u16 = 1;
const FEATURES_WANTED: u16 = 3;
const FEATURES_ACTIVE: u16 = 4;
const HEADER_DEV_NAME: u16 = 2;
const BITSET_BITS: u16 = 3;
const BITS_BIT: u16 = 1;
const BIT_NAME: u16 = 2;
const BIT_VALUE: u16 = 3;

/// Makes requests in the network namespace it was opened in.
pub(crate) struct Ethtool(Family);

impl Ethtool {
    /// Connects to the network namespace of the calling thread.
    pub fn open() -> Result<Self> {
        Family::open("ethtool").map(Self).map_err(|cause| {
            Error::kernel("cannot use ethtool netlink", cause, Needs::NetAdmin, "It needs Linux 5.6 or later")
        })
    }

    /// Switches `features` of `interface` on or off.
    pub fn set(&self, interface: &str, features: &[&str], on: bool) -> Result<()> {
        let request = [header(interface), wanted(features, on)].concat();
        self.0.request(FEATURES_SET, Answers::One, &request).map(drop).map_err(|cause| {
            let what = format!("cannot switch {} of {interface}", features.join(", "));
            Error::kernel(
                what,
                cause,
                Needs::NetAdmin,
                "Its driver may not have all of these: 'ethtool -k' shows",
            )
        })
    }

    /// The features of `interface` that are on.
    pub fn active(&self, interface: &str) -> Result<BTreeSet<String>> {
        let answers = self.0.request(FEATURES_GET, Answers::One, &header(interface));
        let answers =
            answers.and_then(|answers| answers.into_iter().next().ok_or(io::ErrorKind::InvalidData.into()));
        let answer = answers.map_err(|cause| {
            let what = format!("cannot read the features of {interface}");
            Error::kernel(what, cause, Needs::NetAdmin, "'linerate doctor' shows what this kernel lacks")
        })?;
        Ok(names(&answer).unwrap_or_default())
    }
}

fn header(interface: &str) -> Vec<u8> {
    nested(FEATURES_HEADER, &[attribute(HEADER_DEV_NAME, &text(interface))])
}

/// A bit set that names the bits to change; those that carry a value are switched on.
fn wanted(features: &[&str], on: bool) -> Vec<u8> {
    let bit = |name: &&str| {
        let mut bit = vec![attribute(BIT_NAME, &text(name))];
        bit.extend(on.then(|| attribute(BIT_VALUE, &[])));
        nested(BITS_BIT, &bit)
    };
    let bits: Vec<_> = features.iter().map(bit).collect();
    nested(FEATURES_WANTED, &[nested(BITSET_BITS, &bits)])
}

/// The names in the set of active features.
fn names(answer: &[u8]) -> Option<BTreeSet<String>> {
    let bits = find(find(answer, FEATURES_ACTIVE)?, BITSET_BITS)?;
    let name = |(_, bit)| {
        find(bit, BIT_NAME).map(|name| String::from_utf8_lossy(name).trim_end_matches('\0').to_owned())
    };
    Some(attributes(bits).filter_map(name).collect())
}

fn text(name: &str) -> Vec<u8> {
    [name.as_bytes(), b"\0"].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_active_features() {
        let bit = |name: &str| nested(BITS_BIT, &[attribute(1, &[0; 4]), attribute(BIT_NAME, &text(name))]);
        let set =
            |names: &[&str]| nested(BITSET_BITS, &names.iter().map(|name| bit(name)).collect::<Vec<_>>());
        let answer = [
            header("veth0"),
            nested(FEATURES_WANTED, &[set(&["rx-lro"])]),
            nested(FEATURES_ACTIVE, &[attribute(1, &[]), set(&["rx-gro", "tx-nocache-copy"])]),
        ];
        let found = names(&answer.concat()).unwrap();
        assert_eq!(found.iter().map(String::as_str).collect::<Vec<_>>(), ["rx-gro", "tx-nocache-copy"]);
        assert_eq!(names(&[]), None);
    }

    #[test]
    fn an_interface_that_is_not_there_is_an_error() {
        let ethtool = Ethtool::open().unwrap();
        let refused = ethtool.active("no-such-if").unwrap_err().to_string();
        assert!(refused.starts_with("cannot read the features of no-such-if: No such device"), "{refused}");
        assert!(ethtool.active("a-name-longer-than-sixteen-bytes").is_err());
    }
}
