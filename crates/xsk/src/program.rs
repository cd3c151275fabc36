//! The XDP program that hands frames to sockets: an interface and sockets enter; its link leaves, and a count of
//! what passed to the kernel.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use libbpf_rs::libbpf_sys::{
    BPF_F_XDP_HAS_FRAGS, BPF_XDP, XDP_FLAGS_SKB_MODE, bpf_link_create, bpf_link_create_opts, bpf_xdp_query,
    bpf_xdp_query_opts,
};
use libbpf_rs::query::{LinkInfo, LinkTypeInfo, XdpLinkInfo};
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{ErrorKind, Link, MapCore, MapFlags, MapHandle, OpenObject};

use crate::socket::Opened;
use crate::{Error, Interface};

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

/// The program at an interface. The kernel detaches it when this is dropped, and when this process ends in
/// whatever way.
pub struct Program {
    link: Hold,
    sockets: MapHandle,
    passed: MapHandle,
    native: bool,
}

impl Program {
    /// Attaches it to `interface`, for frames of up to `longest` bytes. The calling thread is in the interface's
    /// network namespace.
    ///
    /// # Errors
    /// When the kernel or the interface does not take it, or there is another.
    pub fn attach(interface: &Interface, wanted: Wanted, longest: usize) -> Result<Self, Error> {
        if is_attached(interface) {
            return Err(Error::OtherProgram { interface: interface.name().to_owned() });
        }
        let mut storage = MaybeUninit::uninit();
        // A driver whose frames are in several pieces takes only a program that knows them.
        let in_pieces = longest > ONE_PIECE;
        let loaded = load(&mut storage, wanted, in_pieces).map_err(|error| refused(&error))?;
        // The link and these handles keep the program and its maps.
        let handle = |map| MapHandle::try_from(map).map_err(|error| refused(&error));
        let (sockets, passed) = (handle(&loaded.maps.sockets)?, handle(&loaded.maps.passed)?);
        let program = &loaded.progs.redirect;
        let link = match program.attach_xdp(interface.index() as i32) {
            Ok(link) => Hold::Driver(link),
            // A driver with XDP may refuse it as it is set up now, like virtio_net that is handed merged frames.
            // Many drivers have XDP for frames of one page only; then the kernel has it for larger ones.
            Err(error) if error.kind() == ErrorKind::Unsupported || (in_pieces && !is_final(&error)) => {
                Hold::Generic(attach_generic(interface, program.as_fd())?)
            }
            Err(error) => return Err(attach_error(interface, &error)),
        };
        let native = attach_mode(interface) == Some(libbpf_rs::libbpf_sys::XDP_ATTACHED_DRV);
        Ok(Self { link, sockets, passed, native })
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

    /// Frames that arrived and passed to the kernel.
    ///
    /// # Errors
    /// When the counter cannot be read.
    pub fn passed(&self) -> Result<u64, Error> {
        let values = self
            .passed
            .lookup_percpu(&0_u32.to_ne_bytes(), MapFlags::ANY)
            .map_err(|error| Error::Config(format!("a kernel counter cannot be read: {error:#}")))?;
        let number = |bytes: &Vec<u8>| bytes.first_chunk().map_or(0, |bytes| u64::from_ne_bytes(*bytes));
        Ok(values.unwrap_or_default().iter().map(number).sum())
    }

    /// Whether it is still at the interface: somebody may remove it.
    #[must_use]
    pub fn is_attached(&self) -> bool {
        has_interface(self.link.as_fd())
    }

    /// Whether it runs in the driver; otherwise the kernel runs it later, which is slower.
    #[must_use]
    pub fn is_native(&self) -> bool {
        self.native
    }
}

/// Whether the XDP program of `link` is still at its interface. A link that cannot be asked is taken to have it.
#[must_use]
pub fn has_interface(link: BorrowedFd<'_>) -> bool {
    let gone = |link: LinkInfo| matches!(link.info, LinkTypeInfo::Xdp(XdpLinkInfo { ifindex: 0, .. }));
    !LinkInfo::from_fd(link).is_ok_and(gone)
}

/// What keeps the program at the interface.
enum Hold {
    Driver(Link),
    Generic(OwnedFd),
}

impl AsFd for Hold {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Driver(link) => link.as_fd(),
            Self::Generic(link) => link.as_fd(),
        }
    }
}

/// Has the kernel run `program` at `interface` after the driver, which need not know XDP for it.
fn attach_generic(interface: &Interface, program: BorrowedFd<'_>) -> Result<OwnedFd, Error> {
    let options = bpf_link_create_opts {
        sz: size_of::<bpf_link_create_opts>() as _,
        flags: XDP_FLAGS_SKB_MODE,
        ..bpf_link_create_opts::default()
    };
    // SAFETY: the program's descriptor and the options are valid until the call returns.
    let link = unsafe {
        bpf_link_create(program.as_raw_fd(), interface.index() as i32, BPF_XDP, &raw const options)
    };
    if link < 0 {
        let error = libbpf_rs::Error::from(io::Error::from_raw_os_error(-link));
        return Err(attach_error(interface, &error));
    }
    // SAFETY: the kernel has just made this descriptor, and nothing else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(link) })
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

fn refused(error: &libbpf_rs::Error) -> Error {
    match error.kind() {
        ErrorKind::PermissionDenied => Error::NotPermitted { action: "loading an XDP program".into() },
        _ => Error::Config(format!(
            "the kernel does not load the XDP program that receives: {error:#}; Linux 5.18 or newer with BPF is \
             needed"
        )),
    }
}

/// Whether no other way of attaching helps.
fn is_final(error: &libbpf_rs::Error) -> bool {
    matches!(error.kind(), ErrorKind::AlreadyExists | ErrorKind::PermissionDenied | ErrorKind::NotFound)
}

fn attach_error(interface: &Interface, error: &libbpf_rs::Error) -> Error {
    let interface = interface.name().to_owned();
    match error.kind() {
        ErrorKind::AlreadyExists => Error::OtherProgram { interface },
        ErrorKind::PermissionDenied => Error::NotPermitted { action: "attaching an XDP program".into() },
        ErrorKind::NotFound => Error::Vanished { interface },
        _ => Error::NoProgram { interface, reason: format!("{error:#}") },
    }
}

fn is_attached(interface: &Interface) -> bool {
    attach_mode(interface).is_some_and(|mode| mode != libbpf_rs::libbpf_sys::XDP_ATTACHED_NONE)
}

/// How the kernel runs the XDP program of `interface`.
fn attach_mode(interface: &Interface) -> Option<u32> {
    let mut state =
        bpf_xdp_query_opts { sz: size_of::<bpf_xdp_query_opts>() as _, ..bpf_xdp_query_opts::default() };
    // SAFETY: `state` is valid for writes and says its own size.
    let result = unsafe { bpf_xdp_query(interface.index() as i32, 0, &raw mut state) };
    (result == 0).then_some(u32::from(state.attach_mode))
}
