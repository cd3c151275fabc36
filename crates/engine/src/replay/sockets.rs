//! Interfaces of the kernel as ports of a replay: two indexes enter, raw sockets leave.

use std::io;
use std::mem;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use nix::libc::{self, c_int, c_void};
use wire::vlan;

use super::Carrier;
use crate::Error;

/// The longest frame that the kernel hands out, segments that it merged included.
const LONGEST: usize = 1 << 17;
/// What the kernel may keep for us, in bytes.
const RECEIVE_BUFFER: c_int = 64 << 20;
/// Where a VLAN tag stands in a frame.
const TAG: usize = 12;

/// Raw sockets: one that sends at port 0, one that receives at port 1.
#[derive(Debug)]
pub struct Sockets {
    send: OwnedFd,
    receive: OwnedFd,
    buffer: Vec<u8>,
    /// Of the interfaces, for messages.
    names: [String; 2],
}

impl Sockets {
    /// Opens them at the interfaces of these names and indexes, in the network namespace of the calling
    /// thread.
    ///
    /// # Errors
    /// The kernel's, above all without the right to use raw sockets.
    pub fn open(ports: [(&str, u32); 2]) -> io::Result<Self> {
        let [(out, zero), (back, one)] = ports;
        // Nothing arrives at a socket of no protocol.
        let send = socket(zero, 0)?;
        // Past the queues of the kernel: a frame that finds no room stays with us.
        let _ = set(&send, libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, &1);
        let receive = socket(one, (libc::ETH_P_ALL as u16).to_be())?;
        set(&receive, libc::SOL_PACKET, libc::PACKET_AUXDATA, &1)?;
        set(&receive, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, &1)?;
        set(&receive, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &RECEIVE_BUFFER)?;
        let all = libc::packet_mreq {
            mr_ifindex: one as c_int,
            mr_type: libc::PACKET_MR_PROMISC as u16,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        set(&receive, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &all)?;
        Ok(Self { send, receive, buffer: vec![0; LONGEST], names: [out.to_owned(), back.to_owned()] })
    }

    /// The next frame that has arrived, at the start of the buffer behind room for a tag: its length, and
    /// the tag that the kernel took out of it.
    fn next(&mut self) -> io::Result<Option<(usize, Option<[u8; 4]>)>> {
        let mut control = [0_u64; 16];
        let frame = &mut self.buffer[vlan::LENGTH..];
        let mut part = libc::iovec { iov_base: frame.as_mut_ptr().cast(), iov_len: frame.len() };
        // SAFETY: the struct holds numbers and pointers, for which zero is valid.
        let mut message: libc::msghdr = unsafe { mem::zeroed() };
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = mem::size_of_val(&control) as _;
        // SAFETY: the socket is open; the message's one part and its control data can be written to.
        let length = unsafe { libc::recvmsg(self.receive.as_raw_fd(), &raw mut message, libc::MSG_DONTWAIT) };
        match usize::try_from(length) {
            // SAFETY: the kernel filled the message, whose control data still stands.
            Ok(length) => Ok(Some((length, unsafe { tag(&message) }))),
            Err(_) => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
                error if error.kind() == io::ErrorKind::Interrupted => Ok(None),
                error => Err(error),
            },
        }
    }

    fn failed(&self, port: usize, error: &io::Error) -> Error {
        let remedy = match error.raw_os_error() {
            Some(libc::EMSGSIZE) => "a frame is longer than its MTU allows: raise it (ip link set … mtu …)",
            Some(libc::ENETDOWN | libc::ENXIO | libc::ENODEV) => "is it still there, and up?",
            _ => "see 'ip -s link'",
        };
        Error::Port(format!("{} fails: {error}; {remedy}", self.names[port]))
    }
}

impl Carrier for Sockets {
    fn send(&mut self, frames: &[&[u8]]) -> Result<usize, Error> {
        for (taken, frame) in frames.iter().enumerate() {
            // SAFETY: the socket is open and the frame can be read.
            let sent = unsafe {
                libc::send(self.send.as_raw_fd(), frame.as_ptr().cast(), frame.len(), libc::MSG_DONTWAIT)
            };
            if sent >= 0 {
                continue;
            }
            let error = io::Error::last_os_error();
            return match error.raw_os_error() {
                Some(libc::ENOBUFS | libc::EAGAIN | libc::EINTR) => Ok(taken),
                _ => Err(self.failed(0, &error)),
            };
        }
        Ok(frames.len())
    }

    fn receive(&mut self, each: &mut dyn FnMut(&[u8])) -> Result<(), Error> {
        for _ in 0..super::BURST {
            let Some((length, tag)) = self.next().map_err(|error| self.failed(1, &error))? else { break };
            let end = vlan::LENGTH + length.min(LONGEST - vlan::LENGTH);
            match tag {
                None => each(&self.buffer[vlan::LENGTH..end]),
                Some(tag) => {
                    // The addresses move to the front, and the tag behind them.
                    self.buffer.copy_within(vlan::LENGTH..vlan::LENGTH + TAG, 0);
                    self.buffer[TAG..TAG + vlan::LENGTH].copy_from_slice(&tag);
                    each(&self.buffer[..end]);
                }
            }
        }
        Ok(())
    }

    fn missed(&self) -> Result<u64, Error> {
        let mut counted = [0_u32; 2];
        let mut length = mem::size_of_val(&counted) as libc::socklen_t;
        // SAFETY: the socket is open, and `counted` has as many bytes as `length` says.
        let result = unsafe {
            libc::getsockopt(
                self.receive.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                counted.as_mut_ptr().cast(),
                &raw mut length,
            )
        };
        if result < 0 { Err(self.failed(1, &io::Error::last_os_error())) } else { Ok(u64::from(counted[1])) }
    }
}

/// A raw socket at the interface of this index.
fn socket(index: u32, protocol: u16) -> io::Result<OwnedFd> {
    // SAFETY: it takes no pointers.
    let socket = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
    if socket < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is open, and nobody else's.
    let socket = unsafe { OwnedFd::from_raw_fd(socket) };
    // SAFETY: the struct holds only numbers, for which zero is valid.
    let mut address: libc::sockaddr_ll = unsafe { mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_ifindex = index as c_int;
    address.sll_protocol = protocol;
    let length = mem::size_of_val(&address) as libc::socklen_t;
    // SAFETY: the socket is open, and the address has `length` bytes.
    let result = unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(socket) }
}

fn set<T>(socket: &OwnedFd, level: c_int, option: c_int, value: &T) -> io::Result<()> {
    let length = mem::size_of::<T>() as libc::socklen_t;
    let value: *const c_void = (&raw const *value).cast();
    // SAFETY: the socket is open, and `value` has `length` bytes.
    let result = unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, value, length) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// The VLAN tag that the kernel took out of a frame.
///
/// # Safety
/// The kernel filled `message`, and its control data still stands.
unsafe fn tag(message: &libc::msghdr) -> Option<[u8; 4]> {
    // SAFETY: as the caller promises.
    let mut header = unsafe { libc::CMSG_FIRSTHDR(message) };
    while !header.is_null() {
        // SAFETY: not null, so it is within the control data.
        let (level, kind) = unsafe { ((*header).cmsg_level, (*header).cmsg_type) };
        if level == libc::SOL_PACKET && kind == libc::PACKET_AUXDATA {
            // SAFETY: that is what stands behind such a header; it need not be aligned.
            let said: libc::tpacket_auxdata =
                unsafe { libc::CMSG_DATA(header).cast::<libc::tpacket_auxdata>().read_unaligned() };
            if said.tp_status & libc::TP_STATUS_VLAN_VALID == 0 {
                return None;
            }
            let is_known = said.tp_status & libc::TP_STATUS_VLAN_TPID_VALID != 0;
            let ethertype = if is_known { said.tp_vlan_tpid } else { vlan::CUSTOMER };
            let ([a, b], [c, d]) = (ethertype.to_be_bytes(), said.tp_vlan_tci.to_be_bytes());
            return Some([a, b, c, d]);
        }
        // SAFETY: as above.
        header = unsafe { libc::CMSG_NXTHDR(message, header) };
    }
    None
}
