//! What a driver says of its interface by ethtool netlink (Linux 5.6 and later) and, for its name, an ioctl: the
//! interface's name enters; what it does leaves, or is changed.

use std::collections::BTreeSet;
use std::io;

use nix::libc;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};

use crate::{Answers, Family, attribute, attributes, find, nested, number};

// The numbers of linux/ethtool_netlink.h.
const LINKMODES_GET: u8 = 4;
const FEATURES_GET: u8 = 11;
const FEATURES_SET: u8 = 12;
/// The attribute with the interface is the first of every request.
const HEADER: u16 = 1;
const HEADER_DEV_NAME: u16 = 2;
const HEADER_FLAGS: u16 = 3;
const LINKMODES_SPEED: u16 = 5;
const LINKMODES_DUPLEX: u16 = 6;
const FEATURES_WANTED: u16 = 3;
const FEATURES_ACTIVE: u16 = 4;
const BITSET_BITS: u16 = 3;
const BITS_BIT: u16 = 1;
const BIT_NAME: u16 = 2;
const BIT_VALUE: u16 = 3;
/// Half and full duplex as drivers tell them; others mean that it is not known.
const DUPLEX: [u64; 2] = [0, 1];

/// Makes requests in the network namespace it was opened in.
pub struct Ethtool(Family);

impl Ethtool {
    /// Connects to the network namespace of the calling thread.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] before Linux 5.6.
    pub fn open() -> io::Result<Self> {
        Family::open("ethtool").map(Self)
    }

    /// The attributes of the answer to `command`, a number of `linux/ethtool_netlink.h` that reads; `flags` are
    /// those of a request's header.
    ///
    /// # Errors
    /// What the kernel or the driver refuses it with.
    pub fn get(&self, command: u8, interface: &str, flags: u32) -> io::Result<Vec<u8>> {
        let answers = self.0.request(command, Answers::One, &header(interface, flags))?;
        answers.into_iter().next().ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// The offloads and other features of `interface` that are on, by the names that `ethtool -k` shows.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub fn active(&self, interface: &str) -> io::Result<BTreeSet<String>> {
        Ok(names(&self.get(FEATURES_GET, interface, 0)?).unwrap_or_default())
    }

    /// Switches `features` of `interface` on or off.
    ///
    /// # Errors
    /// As [`Self::get`]; which of them the driver does not have is not known.
    pub fn set(&self, interface: &str, features: &[&str], on: bool) -> io::Result<()> {
        let request = [header(interface, 0), wanted(features, on)].concat();
        self.0.request(FEATURES_SET, Answers::One, &request).map(drop)
    }

    /// The speed of `interface` in Mb/s, and whether it is full duplex; `None` for what its driver does not know.
    #[must_use]
    pub fn speed(&self, interface: &str) -> (Option<u32>, Option<bool>) {
        self.get(LINKMODES_GET, interface, 0).map(|answer| parse_speed(&answer)).unwrap_or_default()
    }
}

fn header(interface: &str, flags: u32) -> Vec<u8> {
    nested(
        HEADER,
        &[attribute(HEADER_DEV_NAME, &text(interface)), attribute(HEADER_FLAGS, &flags.to_ne_bytes())],
    )
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

fn parse_speed(answer: &[u8]) -> (Option<u32>, Option<bool>) {
    let value = |kind| find(answer, kind).and_then(number);
    // All ones where the driver does not know.
    let speed = value(LINKMODES_SPEED).and_then(|speed| u32::try_from(speed).ok());
    let speed = speed.filter(|speed| (1..u32::MAX).contains(speed));
    let duplex = value(LINKMODES_DUPLEX).filter(|duplex| DUPLEX.contains(duplex));
    (speed, duplex.map(|duplex| duplex == 1))
}

fn text(name: &str) -> Vec<u8> {
    [name.as_bytes(), b"\0"].concat()
}

/// What a driver calls itself; `None` for what it leaves empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Driver {
    /// Its name.
    pub name: Option<String>,
    /// Its version; of most, the kernel's.
    pub version: Option<String>,
    /// The firmware's version.
    pub firmware: Option<String>,
    /// Where the device is, as in `0000:01:00.0`.
    pub bus: Option<String>,
}

/// `struct ethtool_drvinfo`: the command, five texts, and numbers that are not used here.
#[repr(C)]
struct DriverInfo {
    command: u32,
    texts: [[u8; 32]; 5],
    rest: [u8; 32],
}

/// Asks the driver of `interface`, in the network namespace of the calling thread, what it is.
///
/// # Errors
/// The kernel's, where there is no such interface, or its driver does not tell.
pub fn driver(interface: &str) -> io::Result<Driver> {
    const GDRVINFO: u32 = 3;
    let socket = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
    let mut info = DriverInfo { command: GDRVINFO, texts: [[0; 32]; 5], rest: [0; 32] };
    let mut name = [0; libc::IFNAMSIZ];
    for (to, from) in name[..libc::IFNAMSIZ - 1].iter_mut().zip(interface.bytes()) {
        // Signed on some processors, unsigned on others.
        *to = from as libc::c_char;
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

    #[test]
    fn names_are_those_of_the_active_features() {
        let bit = |name: &str| nested(BITS_BIT, &[attribute(1, &[0; 4]), attribute(BIT_NAME, &text(name))]);
        let set =
            |names: &[&str]| nested(BITSET_BITS, &names.iter().map(|name| bit(name)).collect::<Vec<_>>());
        let answer = [
            header("veth0", 0),
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
        let refused = ethtool.active("no-such-if").unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(libc::ENODEV));
        assert!(ethtool.active("a-name-longer-than-sixteen-bytes").is_err());
        assert_eq!(ethtool.speed("no-such-if"), (None, None));
    }

    #[test]
    fn a_speed_is_one_that_the_driver_knows() {
        let answer =
            |speed: u32, duplex: u8| [attribute(5, &speed.to_ne_bytes()), attribute(6, &[duplex])].concat();
        assert_eq!(parse_speed(&answer(1000, 1)), (Some(1000), Some(true)));
        assert_eq!(parse_speed(&answer(100, 0)), (Some(100), Some(false)));
        assert_eq!(parse_speed(&answer(u32::MAX, 255)), (None, None));
        assert_eq!(parse_speed(&[]), (None, None));
    }

    #[test]
    fn an_interface_without_a_driver_has_none() {
        assert!(driver("no-such").is_err());
        assert_eq!(driver("lo").ok().and_then(|driver| driver.name), None);
    }
}
