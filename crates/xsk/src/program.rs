//! The XDP program that hands frames to sockets: an interface and sockets enter; its attachment leaves, and a count of
//! what passed to the kernel.

use std::mem::MaybeUninit;

use libbpf_rs::libbpf_sys::BPF_F_XDP_HAS_FRAGS;
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{MapCore, MapFlags, MapHandle, OpenObject};

use crate::socket::Opened;
use crate::{Attachment, Error, Interface};

#[allow(clippy::all, clippy::pedantic, missing_docs, clippy::undocumented_unsafe_blocks, clippy::unwrap_used)]
mod redirect {
    include!(concat!(env!("OUT_DIR"), "/redirect.skel.rs"));
}

/// The longest frame that every driver with XDP keeps in one piece, in bytes without FCS: a page less the 256 bytes
/// before it and the 320 that the kernel wants behind it, and what some drivers keep beside.
const ONE_PIECE: usize = 3046 + 18;

/// Which frames go to the sockets; all others pass to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Those whose last `length` bytes begin with these four.
    Trailer {
        /// Four or more.
        length: u32,
        /// In the order of the frame.
        begins: [u8; 4],
    },
    /// All but ARP and ICMPv6, by which the kernel finds neighbours.
    Everything,
    /// All, so that the kernel sees none.
    All,
}

/// The program at an interface.
pub struct Program {
    attachment: Attachment,
    sockets: MapHandle,
    /// Where it counts what passes, if it does.
    passed: Option<MapHandle>,
}

impl Program {
    /// Attaches it to `interface`, for frames of up to `longest` bytes. The calling thread is in the interface's
    /// network namespace.
    ///
    /// # Errors
    /// When the kernel or the interface does not take it, or there is another.
    pub fn attach(interface: &Interface, wanted: Wanted, longest: usize) -> Result<Self, Error> {
        let mut storage = MaybeUninit::uninit();
        let in_pieces = is_in_pieces(longest);
        let loaded = load(&mut storage, wanted, in_pieces).map_err(|error| Error::of_loading(&error))?;
        // The attachment and these handles keep the program and its maps.
        let handle = |map| MapHandle::try_from(map).map_err(|error| Error::of_loading(&error));
        let (sockets, passed) = (handle(&loaded.maps.sockets)?, Some(handle(&loaded.maps.passed)?));
        let attachment = Attachment::new(interface, &loaded.progs.redirect, in_pieces)?;
        Ok(Self { attachment, sockets, passed })
    }

    /// One of somebody else's making, which is attached and hands frames to the sockets in a map (an `XSKMAP`, by
    /// queue).
    #[must_use]
    pub fn of(attachment: Attachment, sockets: MapHandle) -> Self {
        Self { attachment, sockets, passed: None }
    }

    /// Has it hand the frames of a socket's queue to that socket.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn add(&self, socket: &Opened) -> Result<(), Error> {
        let descriptor = socket.bound.raw().to_ne_bytes();
        self.sockets.update(&socket.queue.to_ne_bytes(), &descriptor, MapFlags::ANY).map_err(|error| {
            Error::Config(format!("the kernel does not hand frames to an AF_XDP socket: {error:#}"))
        })
    }

    /// Frames that arrived and passed to the kernel; a program of somebody else's making counts none.
    ///
    /// # Errors
    /// When the counter cannot be read.
    pub fn passed(&self) -> Result<u64, Error> {
        let Some(passed) = &self.passed else { return Ok(0) };
        let values = passed
            .lookup_percpu(&0_u32.to_ne_bytes(), MapFlags::ANY)
            .map_err(|error| Error::Config(format!("a kernel counter cannot be read: {error:#}")))?;
        let number = |bytes: &Vec<u8>| bytes.first_chunk().map_or(0, |bytes| u64::from_ne_bytes(*bytes));
        Ok(values.unwrap_or_default().iter().map(number).sum())
    }

    /// Whether it is still at the interface: somebody may detach it.
    #[must_use]
    pub fn is_attached(&self) -> bool {
        self.attachment.is_there()
    }

    /// Whether it runs in the driver; otherwise the kernel runs it later, which is slower.
    #[must_use]
    pub fn is_native(&self) -> bool {
        self.attachment.is_native()
    }
}

/// Whether drivers hand over frames of up to `longest` bytes in several pieces, and take only a program that knows them.
#[must_use]
pub fn is_in_pieces(longest: usize) -> bool {
    longest > ONE_PIECE
}

fn load(
    storage: &mut MaybeUninit<OpenObject>,
    wanted: Wanted,
    in_pieces: bool,
) -> Result<redirect::RedirectSkel<'_>, libbpf_rs::Error> {
    let mut open = redirect::RedirectSkelBuilder::default().open(storage)?;
    if in_pieces {
        open.progs.redirect.set_flags(BPF_F_XDP_HAS_FRAGS);
    }
    if let Some(rodata) = open.maps.rodata_data.as_deref_mut() {
        match wanted {
            Wanted::All => (rodata.everything, rodata.neighbours) = (true, true),
            Wanted::Everything => rodata.everything = true,
            Wanted::Trailer { length, begins } => {
                rodata.trailer_length = length;
                rodata.trailer_begins = u32::from_ne_bytes(begins);
            }
        }
    }
    open.load()
}
