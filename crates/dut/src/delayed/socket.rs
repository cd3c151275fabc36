//! A packet socket on one interface: whole frames enter and leave, and nothing waits unless asked to.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;

use lab::{Error, Needs, Result};
use nix::libc;

/// Bytes for frames that wait to be read, each with its page: some 10,000, so that a pause of the
/// device's thread loses none.
const RECEIVE_BUFFER: i32 = 64 << 20;
/// Bytes for frames that are on their way to a port which receives on another core.
const SEND_BUFFER: i32 = 4 << 20;
/// Longer than any frame of a lab.
const LONGEST_FRAME: usize = 16_384;
/// A VLAN tag, which the kernel takes out of a frame and tells apart.
const TAG: usize = wire::vlan::LENGTH;
/// Where it stands: after the two addresses.
const TAG_OFFSET: usize = 12;

/// What arrives at an interface is read from it, and what is sent leaves by the interface.
pub(super) struct FrameSocket {
    socket: OwnedFd,
    /// A frame follows room for a tag.
    buffer: Box<[u8]>,
}

impl FrameSocket {
    /// A socket on interface `index` of the calling thread's network namespace.
    pub fn open(index: u32) -> Result<Self> {
        let failed =
            |cause| Error::kernel("cannot open a packet socket", cause, Needs::NetRaw, "Raise 'ulimit -n'");
        let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: a system call without pointers. Without a protocol nothing is received before
        // the socket is bound to its interface.
        let socket = check(unsafe { libc::socket(libc::AF_PACKET, kind, 0) }).map_err(failed)?;
        // SAFETY: the descriptor was just made, and nobody else has it.
        let socket = unsafe { OwnedFd::from_raw_fd(socket) };
        for (level, option, value) in [
            (libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, 1),
            (libc::SOL_PACKET, libc::PACKET_AUXDATA, 1),
            (libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, RECEIVE_BUFFER),
            (libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, SEND_BUFFER),
        ] {
            set(&socket, level, option, value).map_err(failed)?;
        }
        bind(&socket, index).map_err(failed)?;
        Ok(Self { socket, buffer: vec![0; TAG + LONGEST_FRAME].into() })
    }

    /// The next frame that has arrived, if there is one.
    pub fn receive(&mut self) -> Option<&[u8]> {
        let (length, tag) = receive(&self.socket, self.buffer.get_mut(TAG..)?)?;
        let Some(tag) = tag else { return self.buffer.get(TAG..TAG + length) };
        self.buffer.copy_within(TAG..TAG + TAG_OFFSET, 0);
        self.buffer.get_mut(TAG_OFFSET..TAG_OFFSET + TAG)?.copy_from_slice(&tag);
        self.buffer.get(..TAG + length)
    }

    /// Sends a frame; says whether it left.
    pub fn send(&self, frame: &[u8]) -> bool {
        // SAFETY: the buffer is valid for its length.
        unsafe { libc::send(self.socket.as_raw_fd(), frame.as_ptr().cast(), frame.len(), 0) >= 0 }
    }
}

/// Sleeps until a frame can be read from one of the sockets, for `timeout_ms` at most.
pub(super) fn wait(sockets: [&FrameSocket; 2], timeout_ms: i32) {
    let mut waiting = sockets.map(|socket| libc::pollfd {
        fd: socket.socket.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    });
    // SAFETY: the array is valid for its length and outlives the call. Why it returned does not matter:
    // what can be read is read next.
    unsafe { libc::poll(waiting.as_mut_ptr(), waiting.len() as libc::nfds_t, timeout_ms) };
}

fn check(answer: i32) -> io::Result<i32> {
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(answer) }
}

fn set(socket: &OwnedFd, level: i32, option: i32, value: i32) -> io::Result<()> {
    let (fd, size) = (socket.as_raw_fd(), size_of::<i32>() as u32);
    // SAFETY: the value outlives the call and has the size told.
    check(unsafe { libc::setsockopt(fd, level, option, (&raw const value).cast(), size) }).map(drop)
}

/// From now on every frame of interface `index` is received.
fn bind(socket: &OwnedFd, index: u32) -> io::Result<()> {
    // SAFETY: sockaddr_ll holds only numbers, for which zero is valid.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
    address.sll_ifindex = index.cast_signed();
    let size = size_of::<libc::sockaddr_ll>() as u32;
    // SAFETY: the address is whole, has the size told and outlives the call.
    check(unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), size) }).map(drop)
}

/// The length of the next frame, now in `buffer`, and the tag that the kernel took out of it.
fn receive(socket: &OwnedFd, buffer: &mut [u8]) -> Option<(usize, Option<[u8; TAG]>)> {
    let mut place = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    let mut control = [0_u64; 8]; // aligned, and longer than the one message asked for
    // SAFETY: msghdr holds only numbers and pointers, for which zero is valid.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut place;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(&control) as _;
    // SAFETY: the message points to buffers that are valid for their lengths and outlive the call.
    let length = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, 0) };
    let length = usize::try_from(length).ok()?;
    // SAFETY: the kernel has filled in the message, whose buffers are still there.
    Some((length, unsafe { tag(&message) }))
}

/// The tag that a message tells of.
///
/// # Safety
/// The message was filled in by the kernel, and its control buffer is valid.
unsafe fn tag(message: &libc::msghdr) -> Option<[u8; TAG]> {
    // SAFETY: as the caller says; the macro gives a null pointer where there is no header.
    let header = unsafe { libc::CMSG_FIRSTHDR(message).as_ref() }?;
    if (header.cmsg_level, header.cmsg_type) != (libc::SOL_PACKET, libc::PACKET_AUXDATA) {
        return None;
    }
    // SAFETY: a message of this type holds this structure, at an address that need not be aligned.
    let told: libc::tpacket_auxdata = unsafe { ptr::read_unaligned(libc::CMSG_DATA(header).cast()) };
    if told.tp_status & libc::TP_STATUS_VLAN_VALID == 0 {
        return None;
    }
    let [[a, b], [c, d]] = [told.tp_vlan_tpid.to_be_bytes(), told.tp_vlan_tci.to_be_bytes()];
    Some([a, b, c, d])
}
