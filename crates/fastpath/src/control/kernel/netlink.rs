//! Route netlink, the little that is needed of it here: requests enter; acknowledgements, tables and
//! notifications leave.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_DUMP, NLM_F_DUMP_INTR, NLM_F_REQUEST, NLMSG_DONE, NLMSG_ERROR, NetlinkBuffer,
    NetlinkMessage,
};
use netlink_packet_route::RouteNetlinkMessage;
use nix::errno::Errno;
use nix::libc;
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recvfrom, send, setsockopt,
    socket, sockopt,
};

/// The kernel fills at most half of it with one answer.
const DATAGRAM: usize = 64 << 10;
/// Of a multicast group, in `linux/rtnetlink.h`.
const RTNLGRP_NEXTHOP: u32 = 32;

/// A message's header and what follows it.
pub(super) type Message<'a> = NetlinkBuffer<&'a [u8]>;

/// A connection to the network namespace of the thread that opened it.
pub(super) struct Socket {
    descriptor: OwnedFd,
    datagram: Vec<u8>,
    sequence: u32,
}

impl Socket {
    /// One for requests.
    pub fn open() -> io::Result<Self> {
        Self::new(0, SockFlag::empty())
    }

    /// One that receives notifications of links, addresses, neighbours, routes and nexthop objects, and
    /// keeps so many bytes of them.
    pub fn subscribe(backlog: usize) -> io::Result<Self> {
        let groups = libc::RTMGRP_LINK
            | libc::RTMGRP_NEIGH
            | libc::RTMGRP_IPV4_IFADDR
            | libc::RTMGRP_IPV6_IFADDR
            | libc::RTMGRP_IPV4_ROUTE
            | libc::RTMGRP_IPV6_ROUTE;
        let opened = Self::new(groups as u32 | 1 << (RTNLGRP_NEXTHOP - 1), SockFlag::SOCK_NONBLOCK)?;
        // Without the right to more it has what the system allows, and tables are read again more often.
        if setsockopt(&opened.descriptor, sockopt::RcvBufForce, &backlog).is_err() {
            let _ = setsockopt(&opened.descriptor, sockopt::RcvBuf, &backlog);
        }
        Ok(opened)
    }

    fn new(groups: u32, flags: SockFlag) -> io::Result<Self> {
        let flags = flags | SockFlag::SOCK_CLOEXEC;
        let descriptor =
            socket(AddressFamily::Netlink, SockType::Raw, flags, Some(SockProtocol::NetlinkRoute))?;
        bind(descriptor.as_raw_fd(), &NetlinkAddr::new(0, groups))?;
        Ok(Self { descriptor, datagram: vec![0; DATAGRAM], sequence: 0 })
    }

    /// One that nothing can be asked or heard by.
    #[cfg(test)]
    pub fn broken() -> Self {
        let descriptor = std::fs::File::open("/dev/null").unwrap().into();
        Self { descriptor, datagram: vec![0; DATAGRAM], sequence: 0 }
    }

    /// Has the kernel change something.
    pub fn change(&mut self, message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        self.ask(message, NLM_F_ACK | flags)?;
        self.answers(|_| {}).map(drop)
    }

    /// Reads a table, and says whether it stayed as it was meanwhile.
    pub fn dump(&mut self, table: RouteNetlinkMessage, entry: impl FnMut(&Message)) -> io::Result<bool> {
        self.ask(table, NLM_F_DUMP)?;
        self.answers(entry)
    }

    /// Gives the notifications of the next datagram to `each`, and says whether there was one.
    ///
    /// # Errors
    /// `ENOBUFS` when notifications were lost.
    pub fn notifications(&mut self, mut each: impl FnMut(&Message)) -> io::Result<bool> {
        match self.receive() {
            Ok(length) => {
                messages(&self.datagram[..length]).for_each(|message| each(&message));
                Ok(true)
            }
            Err(Errno::EAGAIN | Errno::EINTR) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }

    fn ask(&mut self, message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        self.sequence = self.sequence.wrapping_add(1);
        let mut message = NetlinkMessage::from(message);
        message.header.flags = NLM_F_REQUEST | flags;
        message.header.sequence_number = self.sequence;
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        send(self.descriptor.as_raw_fd(), &bytes, MsgFlags::empty())?;
        Ok(())
    }

    /// Receives until the kernel has said all, and whether that is of one moment.
    fn answers(&mut self, mut each: impl FnMut(&Message)) -> io::Result<bool> {
        let mut of_one_moment = true;
        loop {
            let length = match self.receive() {
                Err(Errno::EINTR) => continue,
                length => length?,
            };
            for message in messages(&self.datagram[..length]) {
                if message.sequence_number() != self.sequence {
                    continue;
                }
                of_one_moment &= message.flags() & NLM_F_DUMP_INTR == 0;
                match message.message_type() {
                    NLMSG_DONE | NLMSG_ERROR => return verdict(&message).map(|()| of_one_moment),
                    _ => each(&message),
                }
            }
        }
    }

    /// Receives one datagram; one that is not from the kernel counts as empty.
    fn receive(&mut self) -> nix::Result<usize> {
        let (length, sender) = recvfrom::<NetlinkAddr>(self.descriptor.as_raw_fd(), &mut self.datagram)?;
        Ok(if sender.is_some_and(|sender| sender.pid() == 0) { length } else { 0 })
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// A last message begins with the negative error number; 0 acknowledges.
fn verdict(message: &Message) -> io::Result<()> {
    match message.payload().first_chunk().copied().map(i32::from_ne_bytes) {
        None | Some(0) => Ok(()),
        Some(errno) => Err(io::Error::from_raw_os_error(errno.saturating_neg())),
    }
}

/// The messages of a datagram, as far as they are whole.
pub(super) fn messages(mut bytes: &[u8]) -> impl Iterator<Item = Message<'_>> {
    std::iter::from_fn(move || {
        let message = NetlinkBuffer::new_checked(bytes).ok()?;
        let next = (message.length() as usize).next_multiple_of(4);
        bytes = bytes.get(next..).unwrap_or_default();
        Some(message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_messages_are_taken_from_a_datagram() {
        let mut bytes = Vec::new();
        for length in [17u32, 16, 18] {
            let mut message = length.to_ne_bytes().to_vec();
            message.resize(length as usize, 7);
            message.resize((length as usize).next_multiple_of(4), 0);
            bytes.extend(message);
        }
        let lengths =
            |bytes: &[u8]| -> Vec<usize> { messages(bytes).map(|message| message.payload().len()).collect() };
        assert_eq!(lengths(&bytes), [1, 0, 2]);
        assert_eq!(lengths(&bytes[..bytes.len() - 3]), [1, 0]);
        assert_eq!(lengths(&[]), [0usize; 0]);
        assert_eq!(lengths(&[3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]), [0usize; 0]);
    }
}
