//! A peer made by hand: it says and writes whatever a test wants, byte by byte.

#![allow(dead_code)] // not all tests use all

use std::fs::{self, File};
use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::thread;
use std::time::{Duration, Instant};

use memif::{Event, Memif, Reason, Socket};
use memmap2::{MmapOptions, MmapRaw};
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::socket::{
    AddressFamily, Backlog, ControlMessage, ControlMessageOwned, MsgFlags, SockFlag, SockType, UnixAddr,
    accept, bind, connect, listen, recvmsg, sendmsg, socket,
};

pub const ACK: u8 = 1;
pub const HELLO: u8 = 2;
pub const INIT: u8 = 3;
pub const ADD_REGION: u8 = 4;
pub const ADD_RING: u8 = 5;
pub const CONNECT: u8 = 6;
pub const CONNECTED: u8 = 7;
pub const DISCONNECT: u8 = 8;

/// A message: its kind, and fields at their places.
pub fn message(kind: u8, fields: &[(usize, &[u8])]) -> [u8; 128] {
    let mut bytes = [0; 128];
    bytes[0] = kind;
    for (at, field) in fields {
        bytes[*at..][..field.len()].copy_from_slice(field);
    }
    bytes
}

pub fn init() -> [u8; 128] {
    message(INIT, &[(2, &[0, 2])])
}

pub fn add_region(index: u16, size: u64) -> [u8; 128] {
    message(ADD_REGION, &[(2, &index.to_le_bytes()), (4, &size.to_le_bytes())])
}

/// A ring in region 0; `to_server` is 1 or 0.
pub fn add_ring(to_server: u8, offset: u32, log2_size: u8) -> [u8; 128] {
    message(ADD_RING, &[(2, &[to_server]), (8, &offset.to_le_bytes()), (12, &[log2_size])])
}

pub fn hello(max_log2_ring_size: u8) -> [u8; 128] {
    message(HELLO, &[(34, &[0, 2, 0, 2, 255, 0, 255, 255, 255, 255, max_log2_ring_size])])
}

/// One end of a control channel.
pub struct Raw(OwnedFd);

fn address(at: &Socket) -> UnixAddr {
    let Socket::Abstract(name) = at else { panic!("a file") };
    UnixAddr::new_abstract(name.as_bytes()).unwrap()
}

fn unconnected() -> OwnedFd {
    socket(AddressFamily::Unix, SockType::SeqPacket, SockFlag::empty(), None).unwrap()
}

impl Raw {
    /// Connects to `memif`, which listens, and takes its hello.
    pub fn connect(at: &Socket, memif: &mut Memif) -> Self {
        let socket = unconnected();
        connect(socket.as_raw_fd(), &address(at)).unwrap();
        let raw = Self(socket);
        quiet(memif);
        assert_eq!(raw.receive().0[0], HELLO);
        raw
    }

    /// Connects to another process, and takes its hello; nothing where that does not listen.
    pub fn dial(at: &Socket) -> Option<Self> {
        let socket = unconnected();
        connect(socket.as_raw_fd(), &address(at)).ok()?;
        let raw = Self(socket);
        (raw.hear()?.first() == Some(&HELLO)).then_some(raw)
    }

    /// What another process says within a second.
    pub fn hear(&self) -> Option<Vec<u8>> {
        let deadline = Instant::now() + Duration::from_secs(1);
        let mut bytes = [0; 256];
        while Instant::now() < deadline {
            let mut parts = [IoSliceMut::new(&mut bytes)];
            match recvmsg::<()>(self.0.as_raw_fd(), &mut parts, None, MsgFlags::MSG_DONTWAIT) {
                Ok(received) => {
                    let length = received.bytes;
                    return Some(bytes[..length].to_vec());
                }
                Err(nix::errno::Errno::EAGAIN) => thread::sleep(Duration::from_millis(1)),
                Err(_) => return None,
            }
        }
        None
    }

    /// Sends a message with so many descriptors of a file, if the other end is still there.
    pub fn try_send(&self, message: &[u8], file: BorrowedFd, count: usize) -> bool {
        let files = vec![file.as_raw_fd(); count];
        let rights = [ControlMessage::ScmRights(&files)];
        let control = if count > 0 { &rights[..] } else { &[] };
        let flags = MsgFlags::MSG_NOSIGNAL;
        sendmsg::<()>(self.0.as_raw_fd(), &[IoSlice::new(message)], control, flags, None).is_ok()
    }

    /// Listens, and has `memif` connect.
    pub fn accept(at: &Socket, memif: &mut Memif) -> Self {
        let listener = unconnected();
        bind(listener.as_raw_fd(), &address(at)).unwrap();
        listen(&listener, Backlog::new(1).unwrap()).unwrap();
        quiet(memif);
        // SAFETY: the kernel has just made it.
        Self(unsafe { OwnedFd::from_raw_fd(accept(listener.as_raw_fd()).unwrap()) })
    }

    pub fn send(&self, message: &[u8], file: Option<BorrowedFd>) {
        let files = [file.map_or(-1, |file| file.as_raw_fd())];
        let rights = [ControlMessage::ScmRights(&files)];
        let control = if file.is_some() { &rights[..] } else { &[] };
        sendmsg::<()>(self.0.as_raw_fd(), &[IoSlice::new(message)], control, MsgFlags::empty(), None)
            .unwrap();
    }

    /// Sends a message with so many descriptors of one file.
    pub fn send_files(&self, message: &[u8], file: BorrowedFd, count: usize) {
        let files = vec![file.as_raw_fd(); count];
        let rights = [ControlMessage::ScmRights(&files)];
        sendmsg::<()>(self.0.as_raw_fd(), &[IoSlice::new(message)], &rights, MsgFlags::empty(), None)
            .unwrap();
    }

    /// A message and its file; nothing at the end.
    pub fn receive(&self) -> (Vec<u8>, Option<OwnedFd>) {
        let mut bytes = [0; 256];
        let mut parts = [IoSliceMut::new(&mut bytes)];
        let mut control = nix::cmsg_space!([i32; 2]);
        let received =
            recvmsg::<()>(self.0.as_raw_fd(), &mut parts, Some(&mut control), MsgFlags::MSG_DONTWAIT)
                .unwrap();
        let file = received.cmsgs().unwrap().find_map(|part| match part {
            // SAFETY: the kernel has just opened it.
            ControlMessageOwned::ScmRights(files) => Some(unsafe { OwnedFd::from_raw_fd(files[0]) }),
            _ => None,
        });
        let length = received.bytes;
        (bytes[..length].to_vec(), file)
    }

    /// What it is told at the end.
    pub fn farewell(&self) -> String {
        loop {
            let (bytes, _) = self.receive();
            if bytes[0] == DISCONNECT {
                return String::from_utf8(bytes[6..].to_vec()).unwrap().trim_end_matches('\0').to_owned();
            }
        }
    }
}

/// Has `memif` do what it can; nothing becomes of a connection.
pub fn quiet(memif: &mut Memif) {
    assert_eq!(memif.poll(Duration::ZERO).unwrap(), None);
}

/// Memory that a peer shares.
pub struct Shared {
    pub file: OwnedFd,
    memory: MmapRaw,
}

/// Where the fields of a ring are.
pub const FLAGS: usize = 4;
pub const HEAD: usize = 6;
pub const TAIL: usize = 64;

impl Shared {
    pub fn new(size: usize) -> Self {
        let file = File::from(memfd_create(c"hand-made", MFdFlags::MFD_ALLOW_SEALING).unwrap());
        file.set_len(size as u64).unwrap();
        Self::map(file.into(), size)
    }

    pub fn map(file: OwnedFd, size: usize) -> Self {
        let memory = MmapOptions::new().len(size).map_raw(&file).unwrap();
        Self { file, memory }
    }

    /// Writes a number, even while the other side reads there.
    pub fn put<const N: usize>(&self, at: usize, bytes: [u8; N]) {
        assert!(at + N <= self.memory.len());
        // SAFETY: inside the mapping.
        unsafe { self.memory.as_mut_ptr().add(at).cast::<[u8; N]>().write_volatile(bytes) };
    }

    pub fn get<const N: usize>(&self, at: usize) -> [u8; N] {
        assert!(at + N <= self.memory.len());
        // SAFETY: inside the mapping.
        unsafe { self.memory.as_ptr().add(at).cast::<[u8; N]>().read_volatile() }
    }

    /// A descriptor of the ring at `ring`.
    pub fn describe(&self, ring: usize, slot: usize, [flags, region]: [u16; 2], length: u32, offset: u32) {
        let at = ring + 128 + 16 * slot;
        self.put(at, (u64::from(flags) | u64::from(region) << 16 | u64::from(length) << 32).to_le_bytes());
        self.put(at + 8, offset.to_le_bytes());
    }
}

/// A hand-made client's memory: rings of eight, to the server at 0 and to the client at 256, and buffers of
/// 256 bytes from 4096 on.
pub struct Client {
    pub raw: Raw,
    pub shared: Shared,
    pub events: [EventFd; 2],
}

pub const TO_SERVER: usize = 0;
pub const TO_CLIENT: usize = 256;
pub const SLOTS: usize = 8;
pub const SIZE: usize = 4096 + 2 * SLOTS * 256;

impl Client {
    /// Connects with it to another process, if that takes it.
    pub fn dial(at: &Socket) -> Option<Self> {
        let (shared, events) = Self::make();
        let raw = Raw::dial(at)?;
        for (message, file, answer) in [
            (init(), None, ACK),
            (add_region(0, SIZE as u64), Some(shared.file.as_fd()), ACK),
            (add_ring(1, TO_SERVER as u32, 3), Some(events[0].as_fd()), ACK),
            (add_ring(0, TO_CLIENT as u32, 3), Some(events[1].as_fd()), ACK),
            (message(CONNECT, &[(2, b"\x1b[2Jhostile")]), None, CONNECTED),
        ] {
            let count = usize::from(file.is_some());
            if !raw.try_send(&message, file.unwrap_or(shared.file.as_fd()), count)
                || raw.hear()?.first() != Some(&answer)
            {
                return None;
            }
        }
        Some(Self { raw, shared, events })
    }

    /// Its memory and event files.
    fn make() -> (Shared, [EventFd; 2]) {
        let shared = Shared::new(SIZE);
        for (number, ring) in [TO_SERVER, TO_CLIENT].into_iter().enumerate() {
            shared.put(ring, 0x03E3_1F20_u32.to_le_bytes());
            for slot in 0..SLOTS {
                shared.describe(ring, slot, [0, 0], 256, (4096 + (number * SLOTS + slot) * 256) as u32);
            }
        }
        let events = [(); 2].map(|()| EventFd::from_flags(EfdFlags::EFD_NONBLOCK).unwrap());
        (shared, events)
    }

    /// Connects with it.
    pub fn new(at: &Socket, memif: &mut Memif) -> Self {
        let (shared, events) = Self::make();
        let raw = Raw::connect(at, memif);
        let ask = |message: [u8; 128], file: Option<BorrowedFd>, memif: &mut Memif| {
            raw.send(&message, file);
            quiet(memif);
            assert_eq!(raw.receive().0[0], ACK);
        };
        ask(init(), None, memif);
        ask(add_region(0, SIZE as u64), Some(shared.file.as_fd()), memif);
        ask(add_ring(1, TO_SERVER as u32, 3), Some(events[0].as_fd()), memif);
        ask(add_ring(0, TO_CLIENT as u32, 3), Some(events[1].as_fd()), memif);
        raw.send(&message(CONNECT, &[]), None);
        assert!(matches!(memif.poll(Duration::ZERO).unwrap(), Some(Event::Connected(_))));
        assert_eq!(raw.receive().0[0], CONNECTED);
        Self { raw, shared, events }
    }
}

/// What becomes of a connection next.
pub fn event(memif: &mut Memif) -> Option<Event> {
    memif.poll(Duration::from_secs(1)).unwrap()
}

pub const IMPOSSIBLE: Event = Event::Disconnected(Reason::Refused("a ring's index is impossible"));

/// Has the next write to an event file wait until somebody reads it.
pub fn have_writers_wait(event: BorrowedFd) {
    fcntl(event, FcntlArg::F_SETFL(OFlag::empty())).unwrap();
    let full = (u64::MAX - 1).to_ne_bytes();
    assert_eq!(nix::unistd::write(event, &full).unwrap(), 8);
}

/// Whether `work` is done in time; it may go on for ever otherwise.
pub fn in_time(work: impl FnOnce() + Send + 'static) -> bool {
    let working = thread::spawn(work);
    let deadline = Instant::now() + Duration::from_secs(5);
    while !working.is_finished() && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(1));
    }
    working.is_finished() && working.join().is_ok()
}

/// Where all mappings of the hand-made memory are.
pub fn mappings(name: &str) -> Vec<std::ops::Range<usize>> {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let lines = maps.lines().filter(|line| line.contains(name));
    lines
        .map(|line| {
            let (start, end) = line.split(' ').next().unwrap().split_once('-').unwrap();
            usize::from_str_radix(start, 16).unwrap()..usize::from_str_radix(end, 16).unwrap()
        })
        .collect()
}
