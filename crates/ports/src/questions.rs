//! What the device asks for and nobody answers: the ports enter; each address that it asked for by ARP or
//! neighbour discovery and that this machine does not have leaves, with the command that gives it to the port.

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use nix::libc;
use wire::{arp, neighbour};

/// Frames that are looked at for each port and family.
const MOST: usize = 4096;
/// The bytes of a frame that are needed.
const ENOUGH: usize = 128;
const ETHERNET: usize = 14;
const IPV6: usize = 40;
const ICMPV6: u8 = 58;

/// An address that the device asked for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Question {
    /// The port at which it asked.
    pub interface: String,
    /// The address that it asked for.
    pub address: IpAddr,
    /// Its own address.
    pub asker: IpAddr,
}

impl Question {
    /// The prefix length that the two addresses' subnet most likely has.
    fn prefix(&self) -> u32 {
        match (self.address, self.asker) {
            (IpAddr::V4(one), IpAddr::V4(other)) => (one.to_bits() ^ other.to_bits()).leading_zeros().min(24),
            _ => 64,
        }
    }
}

impl fmt::Display for Question {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { interface, address, asker } = self;
        let how = if address.is_ipv4() { "ARP" } else { "neighbour discovery" };
        write!(
            formatter,
            "the device ({asker}) asks at {interface} by {how} for {address}, which no port has, and sends \
             nothing there without an answer: 'ip address add {address}/{} dev {interface}' gives it to the port \
             (with the prefix length of the device's own address)",
            self.prefix()
        )
    }
}

/// Sockets at the ports that keep the questions which arrive from now on, until the kernel's buffer for them is
/// full. They cost nothing while frames of the test pass, which never reach them.
pub struct Questions(Vec<(String, [OwnedFd; 2])>);

impl Questions {
    /// Opens them at interfaces of the calling thread's network namespace, given by name and index.
    ///
    /// # Errors
    /// Without `CAP_NET_RAW`.
    pub fn listen(ports: &[(&str, u32)]) -> io::Result<Self> {
        let open = |(name, index): &(&str, u32)| {
            let sockets = [socket(libc::ETH_P_ARP, *index)?, socket(libc::ETH_P_IPV6, *index)?];
            Ok(((*name).to_owned(), sockets))
        };
        ports.iter().map(open).collect::<io::Result<_>>().map(Self)
    }

    /// The questions so far for addresses that are not in `own`, each once.
    #[must_use]
    pub fn unanswered(&self, own: &BTreeSet<IpAddr>) -> Vec<Question> {
        let mut found = BTreeSet::new();
        for (interface, sockets) in &self.0 {
            for socket in sockets {
                let frames = std::iter::from_fn(|| receive(socket)).take(MOST);
                let asked =
                    frames.filter_map(|frame| parse(&frame)).filter(|(address, _)| !own.contains(address));
                found.extend(asked.map(|(address, asker)| Question {
                    interface: interface.clone(),
                    address,
                    asker,
                }));
            }
        }
        found.into_iter().collect()
    }
}

/// The addresses that this machine has in the network namespace of the calling thread.
///
/// # Errors
/// When the kernel does not list them.
pub fn own_addresses() -> io::Result<BTreeSet<IpAddr>> {
    let address = |of: nix::ifaddrs::InterfaceAddress| {
        let storage = of.address?;
        let v4 = storage.as_sockaddr_in().map(|address| IpAddr::from(address.ip()));
        v4.or_else(|| storage.as_sockaddr_in6().map(|address| IpAddr::from(address.ip())))
    };
    Ok(nix::ifaddrs::getifaddrs()?.filter_map(address).collect())
}

/// The first IPv4 address of `interface` in the network namespace of the calling thread, and the length of its prefix.
///
/// # Errors
/// When the kernel does not list addresses.
pub fn address_of(interface: &str) -> io::Result<Option<(Ipv4Addr, u8)>> {
    let address = |of: nix::ifaddrs::InterfaceAddress| {
        let v4 = |storage: Option<nix::sys::socket::SockaddrStorage>| Some(storage?.as_sockaddr_in()?.ip());
        let prefix = u32::from(v4(of.netmask)?).leading_ones() as u8;
        (of.interface_name == interface).then_some((v4(of.address)?, prefix))
    };
    Ok(nix::ifaddrs::getifaddrs()?.find_map(address))
}

/// A packet socket that receives frames of one type at one interface.
fn socket(protocol: i32, index: u32) -> io::Result<OwnedFd> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: the call takes no pointers; the descriptor it returns is owned by nobody else.
    let socket = unsafe {
        let descriptor = libc::socket(libc::AF_PACKET, kind, 0);
        nix::errno::Errno::result(descriptor)?;
        OwnedFd::from_raw_fd(descriptor)
    };
    let address = libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: (protocol as u16).to_be(),
        sll_ifindex: index.cast_signed(),
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    // SAFETY: the address is valid for reads of the length given with it.
    let bound = unsafe {
        libc::bind(socket.as_raw_fd(), (&raw const address).cast(), size_of::<libc::sockaddr_ll>() as u32)
    };
    nix::errno::Errno::result(bound)?;
    Ok(socket)
}

/// The next frame that is waiting, cut to what is needed.
fn receive(socket: &OwnedFd) -> Option<Vec<u8>> {
    let mut frame = vec![0; ENOUGH];
    let length =
        nix::sys::socket::recv(socket.as_raw_fd(), &mut frame, nix::sys::socket::MsgFlags::MSG_DONTWAIT);
    frame.truncate(length.ok()?);
    Some(frame)
}

/// Who is asked for, and by whom. An address that is being tried out (its asker has none yet) is no question.
fn parse(frame: &[u8]) -> Option<(IpAddr, IpAddr)> {
    let packet = frame.get(ETHERNET..)?;
    if let Some(arp) = arp::Header::parse(packet) {
        let asks = arp.operation == arp::REQUEST && arp.sender != arp.target && !arp.sender.is_unspecified();
        return asks.then(|| (arp.target.into(), arp.sender.into()));
    }
    let (header, payload) = packet.split_at_checked(IPV6)?;
    let source = Ipv6Addr::from(<[u8; 16]>::try_from(header.get(8..24)?).ok()?);
    let message = neighbour::Header::parse(payload).filter(|_| header[0] >> 4 == 6 && header[6] == ICMPV6)?;
    let asks = message.kind == neighbour::SOLICITATION && !source.is_unspecified();
    asks.then(|| (message.target.into(), source.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::MacAddress;

    fn request(sender: [u8; 4], target: [u8; 4]) -> Vec<u8> {
        let header = arp::Header {
            operation: arp::REQUEST,
            sender_mac: MacAddress([2; 6]),
            sender: sender.into(),
            target_mac: MacAddress([0; 6]),
            target: target.into(),
        };
        [&[0; ETHERNET][..], &header.emit()].concat()
    }

    #[test]
    fn requests_and_solicitations_are_questions() {
        let asked = parse(&request([10, 0, 0, 1], [10, 0, 0, 2])).unwrap();
        assert_eq!(asked, ([10, 0, 0, 2].into(), [10, 0, 0, 1].into()));
        // An announcement, and an address that is being tried out.
        assert_eq!(parse(&request([10, 0, 0, 1], [10, 0, 0, 1])), None);
        assert_eq!(parse(&request([0, 0, 0, 0], [10, 0, 0, 1])), None);

        let (one, two): (Ipv6Addr, Ipv6Addr) = ("fe80::1".parse().unwrap(), "fd00::2".parse().unwrap());
        let solicits = |source: Ipv6Addr| {
            let mut header = [0; IPV6];
            (header[0], header[6]) = (0x60, ICMPV6);
            header[8..24].copy_from_slice(&source.octets());
            let message =
                neighbour::Header { kind: neighbour::SOLICITATION, checksum: 0, flags: 0, target: two };
            [&[0; ETHERNET][..], &header, &message.emit()].concat()
        };
        assert_eq!(parse(&solicits(one)), Some((two.into(), one.into())));
        assert_eq!(parse(&solicits(Ipv6Addr::UNSPECIFIED)), None);
        for length in 0..solicits(one).len() {
            assert_eq!(parse(&solicits(one)[..length]), None);
        }
    }

    #[test]
    fn a_question_says_the_command_that_answers_it() {
        let question = |address: &str, asker: &str| {
            let (address, asker) = (address.parse().unwrap(), asker.parse().unwrap());
            Question { interface: "eth1".to_owned(), address, asker }.to_string()
        };
        assert!(question("100.65.1.2", "100.65.1.1").contains("'ip address add 100.65.1.2/24 dev eth1'"));
        assert!(question("10.0.4.2", "10.0.1.1").contains("'ip address add 10.0.4.2/21 dev eth1'"));
        assert!(question("fd00::2", "fe80::1").contains("'ip address add fd00::2/64 dev eth1'"));
        assert!(question("fd00::2", "fe80::1").contains("neighbour discovery"));
    }
}
