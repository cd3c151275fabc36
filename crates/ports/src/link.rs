//! What route netlink says of an interface: its name or index enters, a [`Link`] leaves.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use genetlink::{attribute, find, number};
use results::record::XdpProgram;

use crate::{Error, Result};

// The numbers of linux/rtnetlink.h and linux/if_link.h.
const RTM_GETLINK: u16 = 18;
const IFLA_IFNAME: u16 = 3;
const IFLA_MTU: u16 = 4;
const IFLA_MASTER: u16 = 10;
const IFLA_LINKINFO: u16 = 18;
const IFLA_INFO_KIND: u16 = 1;
const IFLA_STATS64: u16 = 23;
const IFLA_XDP: u16 = 43;
const IFLA_XDP_ATTACHED: u16 = 2;
const IFLA_XDP_PROG_ID: u16 = 4;
/// `struct ifinfomsg`: family, type, index, flags, changed flags.
const HEADER: usize = 16;
const IFF_UP: u32 = 1;
const IFF_LOWER_UP: u32 = 1 << 16;
/// `struct rtnl_link_stats64` begins with packets received and packets sent.
const SENT: usize = 8;

/// How often a link that is expected is looked for.
const PAUSE: Duration = Duration::from_millis(20);

/// An interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Link {
    pub index: u32,
    pub name: String,
    pub up: bool,
    pub carrier: bool,
    pub mtu: u32,
    /// What it is, if it is no hardware: `veth`, `bridge`, …
    pub kind: Option<String>,
    /// The index of the bridge or bond it belongs to.
    pub controller: Option<u32>,
    pub xdp_program: Option<XdpProgram>,
    /// Packets sent since it was made.
    pub sent: u64,
}

impl Link {
    /// The interface of this name.
    pub fn by_name(name: &str) -> Result<Self> {
        if name.is_empty() || name.len() >= nix::libc::IFNAMSIZ {
            return Err(Error::Missing(name.to_owned()));
        }
        ask(name, 0, &attribute(IFLA_IFNAME, &[name.as_bytes(), b"\0"].concat()))
    }

    /// The interface of this index, which `name` belongs to.
    pub fn by_index(name: &str, index: u32) -> Result<Self> {
        ask(name, index, &[])
    }
}

/// Waits until all of the interfaces `names` have a link. A driver that resets its card when an XDP program is
/// attached loses it for seconds.
///
/// # Errors
/// [`Error::Missing`]. The result is whether they all have one before `patience` is over.
pub fn wait_for_carrier(names: &[&str], patience: Duration) -> Result<bool> {
    let deadline = Instant::now() + patience;
    loop {
        let links = names.iter().map(|name| Link::by_name(name)).collect::<Result<Vec<_>>>()?;
        if links.iter().all(|link| link.carrier) {
            return Ok(true);
        }
        if Instant::now() >= deadline {
            return Ok(false);
        }
        thread::sleep(PAUSE);
    }
}

fn ask(name: &str, index: u32, attributes: &[u8]) -> Result<Link> {
    let mut body = vec![0; HEADER];
    body[4..8].copy_from_slice(&index.to_ne_bytes());
    body.extend(attributes);
    let failed = |cause: io::Error| match cause.raw_os_error() {
        Some(nix::libc::ENODEV) => Error::Missing(name.to_owned()),
        _ => Error::Kernel { what: "the link", interface: name.to_owned(), cause },
    };
    let answers = genetlink::request_route(RTM_GETLINK, &body).map_err(failed)?;
    answers.iter().find_map(|answer| parse(answer)).ok_or_else(|| failed(io::ErrorKind::InvalidData.into()))
}

fn parse(answer: &[u8]) -> Option<Link> {
    let (header, attributes) = answer.split_at_checked(HEADER)?;
    let word = |at: usize| Some(u32::from_ne_bytes(header.get(at..at + 4)?.try_into().ok()?));
    let value = |kind| find(attributes, kind);
    let word_of = |kind| value(kind).and_then(number).and_then(|number| u32::try_from(number).ok());
    let flags = word(8)?;
    let sent = value(IFLA_STATS64).and_then(|stats| stats.get(SENT..SENT + 8)).and_then(number);
    Some(Link {
        index: word(4)?,
        name: text(value(IFLA_IFNAME)?),
        up: flags & IFF_UP != 0,
        carrier: flags & IFF_LOWER_UP != 0,
        mtu: word_of(IFLA_MTU).unwrap_or_default(),
        kind: value(IFLA_LINKINFO).and_then(|info| find(info, IFLA_INFO_KIND)).map(text),
        controller: word_of(IFLA_MASTER),
        xdp_program: value(IFLA_XDP).and_then(parse_program),
        sent: sent.unwrap_or_default(),
    })
}

fn parse_program(xdp: &[u8]) -> Option<XdpProgram> {
    let mode = match find(xdp, IFLA_XDP_ATTACHED).and_then(number)? {
        0 => return None,
        1 => "native",
        2 => "generic",
        3 => "offloaded",
        _ => "several",
    };
    let id = find(xdp, IFLA_XDP_PROG_ID).and_then(number).and_then(|id| u32::try_from(id).ok());
    Some(XdpProgram { id: id.unwrap_or_default(), mode: mode.to_owned() })
}

/// The text of an attribute, which ends in a zero byte.
pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim_end_matches('\0').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use genetlink::nested;

    #[test]
    fn an_answer_is_read() {
        let mut stats = [0; 32];
        stats[SENT] = 7;
        let mut header = [0; HEADER];
        header[4] = 3;
        header[8..12].copy_from_slice(&(IFF_UP | IFF_LOWER_UP).to_ne_bytes());
        let answer = [
            header.to_vec(),
            attribute(IFLA_IFNAME, b"eth1\0"),
            attribute(IFLA_MTU, &1500_u32.to_ne_bytes()),
            attribute(IFLA_MASTER, &9_u32.to_ne_bytes()),
            nested(IFLA_LINKINFO, &[attribute(IFLA_INFO_KIND, b"veth\0")]),
            attribute(IFLA_STATS64, &stats),
            nested(
                IFLA_XDP,
                &[attribute(IFLA_XDP_ATTACHED, &[1]), attribute(IFLA_XDP_PROG_ID, &42_u32.to_ne_bytes())],
            ),
        ]
        .concat();
        let link = Link {
            index: 3,
            name: "eth1".to_owned(),
            up: true,
            carrier: true,
            mtu: 1500,
            kind: Some("veth".to_owned()),
            controller: Some(9),
            xdp_program: Some(XdpProgram { id: 42, mode: "native".to_owned() }),
            sent: 7,
        };
        assert_eq!(parse(&answer), Some(link));
        // Half an answer is half read, or not at all, and never a panic.
        for length in 0..answer.len() {
            let _ = parse(&answer[..length]);
        }
    }

    #[test]
    fn the_loopback_is_there_and_others_are_not() {
        let lo = Link::by_name("lo").unwrap();
        assert_eq!((lo.name.as_str(), Link::by_index("lo", lo.index).unwrap().index), ("lo", lo.index));
        for name in ["", "no-such", "a-name-that-is-far-too-long"] {
            assert!(matches!(Link::by_name(name), Err(Error::Missing(_))), "{name}");
        }
        assert!(wait_for_carrier(&["no-such"], Duration::ZERO).is_err());
    }
}
