//! The driver's statistics: an interface's name enters, the packets of each queue leave, as far as
//! the names of the statistics tell which they are.

use std::collections::BTreeMap;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::libc;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};

use super::{Counters, Place};

// The numbers of linux/ethtool.h.
const ETHTOOL_GSTRINGS: u32 = 0x1b;
const ETHTOOL_GSTATS: u32 = 0x1d;
const ETHTOOL_GSSET_INFO: u32 = 0x37;
const ETH_SS_STATS: u32 = 1;
const ETH_GSTRING_LEN: usize = 32;
const WORD: usize = size_of::<u32>();
/// More statistics than any driver has: about ten for each of a thousand queues.
const MOST: usize = 1 << 14;

/// The counters of each queue.
pub(super) fn counters(name: &str) -> Result<BTreeMap<Place, Counters>, String> {
    let statistics = match read(name) {
        Err(Errno::EOPNOTSUPP) => Vec::new(),
        statistics => statistics.map_err(|cause| cause.desc().to_owned())?,
    };
    let counters = by_queue(statistics.iter().map(|(name, value)| (name.as_str(), *value)));
    if counters.is_empty() {
        return Err(match statistics.len() {
            0 => "it has none".to_owned(),
            count => format!("none of its {count} statistics is named after a queue's packets"),
        });
    }
    Ok(counters)
}

/// Sorts statistics by what their names say.
///
/// Drivers agree on nothing but the parts: a direction, a number, `packets`. All of these are queue
/// 3's: `rx_queue_3_packets` (igb, ixgbe), `rx-3.packets` (i40e, ice), `rx3_packets` (mlx5, virtio),
/// `rx_queue_3_xdp_packets` (veth), `queue_3_rx_cnt` (ena), `rx[3]_packets`, `[3]: rx_ucast_packets`
/// (bnxt). Where several are one queue's, as those of each kind of address, they add up, but
/// what a queue counts of XDP beside all packets is part of those.
#[must_use]
pub fn by_queue<'a>(statistics: impl Iterator<Item = (&'a str, u64)>) -> BTreeMap<Place, Counters> {
    let mut all = BTreeMap::<Place, u64>::new();
    let mut of_xdp = BTreeMap::<Place, u64>::new();
    let mut dropped = BTreeMap::<Place, u64>::new();
    for (name, value) in statistics {
        let Some((place, what)) = queue(name) else { continue };
        let counts = match what {
            What::Packets => &mut all,
            What::XdpPackets => &mut of_xdp,
            What::Dropped => &mut dropped,
        };
        let count = counts.entry(place).or_default();
        *count = count.saturating_add(value);
    }
    for (place, packets) in of_xdp {
        all.entry(place).or_insert(packets);
    }
    let counters = |(place, packets): (Place, u64)| {
        (place, Counters { packets, dropped: dropped.get(&place).copied(), ..Counters::default() })
    };
    all.into_iter().map(counters).collect()
}

/// What a statistic counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Packets,
    /// Packets that an XDP program saw: on a veth, which counts no others, all that took its queue.
    XdpPackets,
    Dropped,
}

/// The queue that a statistic is of, and what of it.
fn queue(name: &str) -> Option<(Place, What)> {
    let name = name.to_ascii_lowercase();
    let words: Vec<&str> = name.split(|c: char| !c.is_ascii_alphanumeric()).collect();
    let mut receives = None;
    let mut number = None;
    let mut rest = Vec::new();
    for word in words.into_iter().filter(|word| !word.is_empty()) {
        let (letters, digits) = word.split_at(word.find(|c: char| c.is_ascii_digit()).unwrap_or(word.len()));
        let digits = (!digits.is_empty()).then(|| digits.parse::<u32>().ok());
        let is_queue = matches!(letters, "" | "rx" | "tx" | "queue" | "q" | "rxq" | "txq");
        match digits {
            // Two numbers, as those of a traffic class, or digits in another word: not understood.
            Some(digits) if is_queue && number.is_none() => number = Some(digits?),
            Some(_) => return None,
            None => {}
        }
        match letters {
            "rx" | "rxq" | "tx" | "txq" if receives.is_some() => return None,
            "rx" | "rxq" => receives = Some(true),
            "tx" | "txq" => receives = Some(false),
            "" | "queue" | "q" => {}
            letters => rest.push(letters),
        }
    }
    let what = match rest.as_slice() {
        ["packets" | "cnt" | "pkts"] | ["ucast" | "mcast" | "bcast", "packets"] => What::Packets,
        ["xdp", "packets"] => What::XdpPackets,
        ["drops" | "dropped" | "drop"] => What::Dropped,
        _ => return None,
    };
    let (receives, number) = (receives?, number?);
    Some((if receives { Place::Receive(number) } else { Place::Send(number) }, what))
}

/// The name and value of each statistic.
fn read(interface: &str) -> nix::Result<Vec<(String, u64)>> {
    let socket = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
    let count = count(&socket, interface)?;
    // struct ethtool_gstrings: cmd, string_set, len, then the names.
    let request = [ETHTOOL_GSTRINGS, ETH_SS_STATS, count as u32];
    let names = ask(&socket, interface, &request, 3 * WORD + count * ETH_GSTRING_LEN)?;
    // struct ethtool_stats: cmd, n_stats, then the values of 64 bits.
    let request = [ETHTOOL_GSTATS, count as u32];
    let values = ask(&socket, interface, &request, 2 * WORD + count * size_of::<u64>())?;
    let (names, _) = names.get(3 * WORD..).unwrap_or_default().as_chunks::<ETH_GSTRING_LEN>();
    let (values, _) = values.get(2 * WORD..).unwrap_or_default().as_chunks();
    let values = values.iter().copied().map(u64::from_ne_bytes);
    Ok(names.iter().map(|name| text(name)).zip(values).take(count).collect())
}

/// A name, up to its first zero.
fn text(bytes: &[u8]) -> String {
    let name = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(name).into_owned()
}

/// How many statistics there are.
fn count(socket: &OwnedFd, interface: &str) -> nix::Result<usize> {
    // struct ethtool_sset_info: cmd, reserved, a mask of 64 bits, then a number for each bit of it.
    let mask = u64::from(1_u32 << ETH_SS_STATS).to_ne_bytes();
    let [low, high] = [&mask[..4], &mask[4..]].map(|half| half.try_into().map_or(0, u32::from_ne_bytes));
    let answer = ask(socket, interface, &[ETHTOOL_GSSET_INFO, 0, low, high], 5 * WORD)?;
    // The kernel clears the bits of sets that the driver has not.
    let has_any = answer.get(2 * WORD..4 * WORD).is_some_and(|mask| mask.iter().any(|byte| *byte != 0));
    let count = answer.get(4 * WORD..).and_then(|rest| rest.first_chunk()).copied().map(u32::from_ne_bytes);
    let count = count.filter(|_| has_any).unwrap_or_default() as usize;
    // Twice what it has now must fit, since the kernel writes what it has then.
    if count > MOST / 2 { Err(Errno::EOVERFLOW) } else { Ok(count) }
}

/// One request of ethtool, of 32-bit numbers; the answer begins with them, and has room for [`MOST`] names. Its first
/// `wanted` bytes leave, in whole words.
fn ask(socket: &OwnedFd, interface: &str, request: &[u32], wanted: usize) -> nix::Result<Vec<u8>> {
    let mut message = vec![0_u64; MOST * ETH_GSTRING_LEN / size_of::<u64>()];
    let words = request.chunks(2).map(|pair| {
        let [low, high] = [0, 1].map(|at| pair.get(at).copied().unwrap_or_default().to_ne_bytes());
        let mut bytes = [0; 8];
        bytes[..4].copy_from_slice(&low);
        bytes[4..].copy_from_slice(&high);
        u64::from_ne_bytes(bytes)
    });
    for (to, from) in message.iter_mut().zip(words) {
        *to = from;
    }
    // SAFETY: ifreq holds only numbers, bytes and a pointer, for all of which zero is valid.
    let mut envelope: libc::ifreq = unsafe { MaybeUninit::zeroed().assume_init() };
    // The last byte stays zero.
    if interface.len() >= envelope.ifr_name.len() {
        return Err(Errno::ENODEV);
    }
    for (to, from) in envelope.ifr_name.iter_mut().zip(interface.bytes()) {
        *to = from as libc::c_char;
    }
    envelope.ifr_ifru.ifru_data = message.as_mut_ptr().cast();
    // SAFETY: the envelope and the message outlive the call. The kernel writes as many names or
    // values as the driver has at that moment, whatever the request says; there is room for
    // more than twice as many as it had a moment before, and for any that a driver is known to have.
    let answer = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL as _, &raw mut envelope) };
    Errno::result(answer)?;
    Ok(message.iter().take(wanted.div_ceil(size_of::<u64>())).flat_map(|word| word.to_ne_bytes()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drivers_names_are_understood() {
        let rx = |number| Some((Place::Receive(number), What::Packets));
        let tx = |number| Some((Place::Send(number), What::Packets));
        for (name, expected) in [
            ("rx_queue_0_packets", rx(0)),
            ("tx_queue_12_packets", tx(12)),
            ("rx-0.packets", rx(0)),
            ("tx-63.packets", tx(63)),
            ("rx0_packets", rx(0)),
            ("rx[3]_packets", rx(3)),
            ("queue_3_rx_cnt", rx(3)),
            ("[7]: rx_ucast_packets", rx(7)),
            ("[7]: tx_mcast_packets", tx(7)),
            ("RX 5 Packets", rx(5)),
            ("rxq2_pkts", rx(2)),
            ("rx_queue_1_xdp_packets", Some((Place::Receive(1), What::XdpPackets))),
            ("rx_queue_1_drops", Some((Place::Receive(1), What::Dropped))),
            ("rx_packets", None),
            ("rx_queue_0_bytes", None),
            ("rx0_xdp_tx", None),
            ("rx_queue_0_xdp_drops", None),
            ("tx_tc_0_queue_1_packets", None),
            ("rx_size_64_packets", None),
            ("rx_1024_to_1522_byte_packets", None),
            ("rx99999999999_packets", None),
            ("peer_ifindex", None),
            ("", None),
        ] {
            assert_eq!(queue(name), expected, "{name}");
        }
    }

    #[test]
    fn a_veth_counts_all_packets_as_those_of_xdp() {
        let statistics = [
            ("peer_ifindex", 12),
            ("rx_queue_0_xdp_packets", 900),
            ("rx_queue_0_xdp_bytes", 54_000),
            ("rx_queue_0_drops", 3),
            ("rx_queue_0_xdp_redirect", 0),
            ("rx_queue_1_xdp_packets", 100),
            ("tx_queue_0_xdp_xmit", 7),
        ];
        let found = by_queue(statistics.into_iter());
        assert_eq!(found.len(), 2);
        let first = found[&Place::Receive(0)];
        assert_eq!((first.packets, first.dropped), (900, Some(3)));
        assert_eq!(found[&Place::Receive(1)], Counters { packets: 100, ..Counters::default() });
    }

    #[test]
    fn kinds_of_addresses_add_up_and_xdp_is_a_part() {
        let statistics = [
            ("[0]: rx_ucast_packets", 10),
            ("[0]: rx_mcast_packets", 2),
            ("rx1_packets", 50),
            ("rx1_xdp_packets", 40),
        ];
        let found = by_queue(statistics.into_iter());
        assert_eq!(found[&Place::Receive(0)].packets, 12);
        assert_eq!(found[&Place::Receive(1)].packets, 50);
    }

    #[test]
    fn what_there_is_not_is_an_error() {
        assert!(read("no-such-if").is_err());
        assert!(read("a-name-longer-than-sixteen-bytes").is_err());
        assert!(counters("lo").is_err());
    }
}
