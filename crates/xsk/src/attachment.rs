//! An XDP program at an interface: both enter; a link that the kernel takes away with this process leaves.

use std::io;
use std::mem::offset_of;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use genetlink::netdev;
use libbpf_rs::libbpf_sys::{
    BPF_XDP, XDP_ATTACHED_DRV, XDP_ATTACHED_NONE, XDP_FLAGS_SKB_MODE, bpf_link_create, bpf_link_create_opts,
    bpf_xdp_query, bpf_xdp_query_opts,
};
use libbpf_rs::query::{LinkInfo, LinkTypeInfo, XdpLinkInfo};
use libbpf_rs::{ErrorKind, ProgramMut};

use crate::{Error, Interface};

/// A program at an interface. The kernel detaches it when this is dropped, and when this process ends in whatever way.
pub struct Attachment {
    link: OwnedFd,
    native: bool,
}

impl Attachment {
    /// Attaches `program` to `interface`: in the driver where that knows XDP, else after it. `in_pieces` says that the
    /// program knows frames in several pieces. The calling thread is in the interface's network namespace.
    ///
    /// # Errors
    /// When the interface does not take it, or has another.
    pub fn new(interface: &Interface, program: &ProgramMut<'_>, in_pieces: bool) -> Result<Self, Error> {
        if mode(interface).is_some_and(|mode| mode != XDP_ATTACHED_NONE) {
            return Err(Error::OtherProgram { interface: interface.name().to_owned() });
        }
        // Not by libbpf's function for it, which prints what the kernel refuses.
        let link = match attach(interface, program.as_fd(), 0) {
            // A driver with XDP may refuse it as it is set up now, like virtio_net that is handed merged frames.
            // Many drivers have XDP for frames of one page only; then the kernel has it for larger ones.
            Err(error) if error.kind() == ErrorKind::Unsupported || (in_pieces && !is_final(&error)) => {
                attach(interface, program.as_fd(), XDP_FLAGS_SKB_MODE)
            }
            result => result,
        };
        let link = link.map_err(|error| refused(interface, &error))?;
        Ok(Self { link, native: mode(interface) == Some(XDP_ATTACHED_DRV) })
    }

    /// Whether the program is still at the interface: somebody may detach it. A link that cannot be asked is taken to
    /// have it.
    #[must_use]
    pub fn is_there(&self) -> bool {
        let gone = |link: LinkInfo| matches!(link.info, LinkTypeInfo::Xdp(XdpLinkInfo { ifindex: 0, .. }));
        !LinkInfo::from_fd(self.link.as_fd()).is_ok_and(gone)
    }

    /// Whether it runs in the driver; otherwise the kernel runs it later, which is slower.
    #[must_use]
    pub fn is_native(&self) -> bool {
        self.native
    }
}

/// Attaches `program` to `interface`: with [`XDP_FLAGS_SKB_MODE`] behind the driver, which need not know XDP for that;
/// without flags as the kernel chooses.
fn attach(interface: &Interface, program: BorrowedFd<'_>, flags: u32) -> Result<OwnedFd, libbpf_rs::Error> {
    let options = bpf_link_create_opts {
        sz: size_of::<bpf_link_create_opts>() as _,
        flags,
        ..bpf_link_create_opts::default()
    };
    // SAFETY: the program's descriptor and the options are valid until the call returns.
    let link = unsafe {
        bpf_link_create(program.as_raw_fd(), interface.index() as i32, BPF_XDP, &raw const options)
    };
    if link < 0 {
        return Err(libbpf_rs::Error::from(io::Error::from_raw_os_error(-link)));
    }
    // SAFETY: the kernel has just made this descriptor, and nothing else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(link) })
}

/// Whether no other way of attaching helps.
fn is_final(error: &libbpf_rs::Error) -> bool {
    matches!(error.kind(), ErrorKind::AlreadyExists | ErrorKind::PermissionDenied | ErrorKind::NotFound)
}

fn refused(interface: &Interface, error: &libbpf_rs::Error) -> Error {
    let interface = interface.name().to_owned();
    match error.kind() {
        ErrorKind::AlreadyExists => Error::OtherProgram { interface },
        ErrorKind::PermissionDenied => Error::NotPermitted { action: "attaching an XDP program".into() },
        ErrorKind::NotFound => Error::Vanished { interface },
        _ => Error::NoProgram { interface, reason: format!("{error:#}") },
    }
}

impl Interface {
    /// Whether XDP programs of other interfaces can send by it; `None` where the kernel does not say, as before
    /// Linux 6.3. The calling thread is in the interface's network namespace.
    #[must_use]
    pub fn takes_redirected(&self) -> Option<bool> {
        netdev::takes_redirected(self.index())
    }
}

/// How the kernel runs the XDP program of `interface`.
fn mode(interface: &Interface) -> Option<u32> {
    // Asked for what follows, libbpf would look for the family `netdev` each time, which `genetlink` does once.
    let size = offset_of!(bpf_xdp_query_opts, feature_flags);
    let mut state = bpf_xdp_query_opts { sz: size as _, ..bpf_xdp_query_opts::default() };
    // SAFETY: `state` is valid for writes, and its size is what is to be written of it.
    let result = unsafe { bpf_xdp_query(interface.index() as i32, 0, &raw mut state) };
    (result == 0).then_some(u32::from(state.attach_mode))
}
