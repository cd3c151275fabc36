//! What the tests of real labs share: starting one, and sending and receiving raw frames.
#![allow(dead_code)] // each test binary uses a part of it

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use dut::DutSpec;
use lab::placement::{Wishes, host};
use lab::{Config, Lab, Placement, Port};
use nix::libc;

/// Whether labs can be built here. A test that needs one returns where this is false.
pub fn can_build_labs() -> bool {
    let root = nix::unistd::geteuid().is_root();
    if !root {
        eprintln!("skipped: network namespaces need root");
    }
    root
}

pub fn start(dut: &str) -> Lab {
    start_with_frames_of(1518, dut)
}

pub fn start_with_frames_of(max_frame_size: usize, dut: &str) -> Lab {
    let placement = Placement::choose(&host().unwrap(), &Wishes::default()).unwrap();
    Lab::start(&Config { dut: Arc::new(dut.parse::<DutSpec>().unwrap()), placement, max_frame_size })
        .unwrap_or_else(|e| panic!("{dut}: {e}"))
}

/// Sends and receives whole frames on one port of a lab.
pub struct RawPort {
    socket: OwnedFd,
}

impl RawPort {
    pub fn open(lab: &Lab, port: &Port) -> Self {
        let index = port.ifindex;
        lab.tester_namespace().run(|| Ok(Self::open_here(index))).unwrap()
    }

    fn open_here(index: u32) -> Self {
        let all = (libc::ETH_P_ALL as u16).to_be();
        // SAFETY: plain system calls; the address is a whole sockaddr_ll and outlives bind.
        unsafe {
            let socket = libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, i32::from(all));
            assert!(socket >= 0, "{}", io::Error::last_os_error());
            let socket = OwnedFd::from_raw_fd(socket);
            let mut address: libc::sockaddr_ll = std::mem::zeroed();
            address.sll_family = libc::AF_PACKET as u16;
            address.sll_protocol = all;
            address.sll_ifindex = index as i32;
            let size = size_of::<libc::sockaddr_ll>() as u32;
            assert_eq!(libc::bind(socket.as_raw_fd(), (&raw const address).cast(), size), 0);
            Self { socket }
        }
    }

    /// Sends `frame`, once there is room for it.
    pub fn send(&self, frame: &[u8]) {
        loop {
            // SAFETY: the buffer is valid for its length.
            let sent = unsafe { libc::send(self.socket.as_raw_fd(), frame.as_ptr().cast(), frame.len(), 0) };
            let error = io::Error::last_os_error();
            if sent == -1 && error.raw_os_error() == Some(libc::ENOBUFS) {
                std::thread::sleep(Duration::from_micros(100));
                continue;
            }
            return assert_eq!(sent, frame.len() as isize, "{error}");
        }
    }

    /// The next frame that came in from the link, within `patience`.
    pub fn receive(&self, patience: Duration) -> Option<Vec<u8>> {
        let deadline = Instant::now() + patience;
        loop {
            let left = deadline.checked_duration_since(Instant::now())?;
            let mut poll = libc::pollfd { fd: self.socket.as_raw_fd(), events: libc::POLLIN, revents: 0 };
            // SAFETY: one valid pollfd.
            if unsafe { libc::poll(&raw mut poll, 1, left.as_millis() as i32 + 1) } <= 0 {
                return None;
            }
            let mut frame = vec![0; 16_384];
            // SAFETY: buffer, address and its size are valid and outlive the call.
            let (length, kind) = unsafe {
                let mut from: libc::sockaddr_ll = std::mem::zeroed();
                let mut size = size_of::<libc::sockaddr_ll>() as u32;
                let fd = self.socket.as_raw_fd();
                let address = (&raw mut from).cast();
                let length =
                    libc::recvfrom(fd, frame.as_mut_ptr().cast(), frame.len(), 0, address, &raw mut size);
                (length, from.sll_pkttype)
            };
            assert!(length >= 0, "{}", io::Error::last_os_error());
            frame.truncate(length as usize);
            if kind != libc::PACKET_OUTGOING {
                return Some(frame);
            }
        }
    }

    /// The next frame that `wanted` accepts, within a second.
    pub fn receive_one(&self, wanted: impl Fn(&[u8]) -> bool) -> Option<Vec<u8>> {
        let deadline = Instant::now() + Duration::from_secs(1);
        loop {
            let frame = self.receive(deadline.checked_duration_since(Instant::now())?)?;
            if wanted(&frame) {
                return Some(frame);
            }
        }
    }
}
