//! Shortcuts in the kernel: shortcuts of the router enter; the XDP program at its interfaces forwards what takes them, by
//! itself, and counts it.
//!
//! A shortcut is good for one edition of the router, as everything that it forwards by may be another one in the next.

use std::mem::MaybeUninit;
use std::net::IpAddr;
use std::os::fd::AsFd;

use libbpf_rs::libbpf_sys::BPF_F_XDP_HAS_FRAGS;
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use xsk::{Attachment, Error, Interface, Program, is_in_pieces};

use crate::control::router::Shortcut;

#[allow(clippy::all, clippy::pedantic, missing_docs, clippy::undocumented_unsafe_blocks, clippy::unwrap_used)]
mod skeleton {
    include!(concat!(env!("OUT_DIR"), "/shortcuts.skel.rs"));
}

/// The only key of a map with one value.
const ONLY: [u8; 4] = [0; 4];

/// Packets that took shortcuts from a device or to it, since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Those that arrived there.
    pub received: u64,
    /// Their bytes, without FCS.
    pub received_bytes: u64,
    /// Those that were to leave there. The kernel may have dropped some of them after that.
    pub sent: u64,
    /// Their bytes, without FCS.
    pub sent_bytes: u64,
}

/// The shortcuts between the interfaces of a router.
pub struct Shortcuts {
    shortcuts: MapHandle,
    edition: MapHandle,
    taken: MapHandle,
}

impl Shortcuts {
    /// None, at no interface yet.
    ///
    /// # Errors
    /// When the kernel does not load the program.
    pub fn new() -> Result<Self, Error> {
        let mut storage = MaybeUninit::uninit();
        let open = skeleton::ShortcutsSkelBuilder::default().open(&mut storage).map_err(refused)?;
        let loaded = open.load().map_err(refused)?;
        // These handles keep the maps; the program goes.
        let handle = |map| MapHandle::try_from(map).map_err(refused);
        Ok(Self {
            shortcuts: handle(&loaded.maps.shortcuts)?,
            edition: handle(&loaded.maps.edition)?,
            taken: handle(&loaded.maps.taken)?,
        })
    }

    /// Attaches the program to `interface`, the router's `device`, for frames of up to `longest` bytes. The calling thread
    /// is in the interface's network namespace.
    ///
    /// # Errors
    /// When the kernel or the interface does not take it, or there is another.
    pub fn attach(&self, interface: &Interface, device: u16, longest: usize) -> Result<Program, Error> {
        let mut storage = MaybeUninit::uninit();
        let mut open = skeleton::ShortcutsSkelBuilder::default().open(&mut storage).map_err(refused)?;
        let in_pieces = is_in_pieces(longest);
        if in_pieces {
            open.progs.forward.set_flags(BPF_F_XDP_HAS_FRAGS);
        }
        if let Some(rodata) = open.maps.rodata_data.as_deref_mut() {
            rodata.device = u32::from(device);
        }
        open.maps.shortcuts.reuse_fd(self.shortcuts.as_fd()).map_err(refused)?;
        open.maps.edition.reuse_fd(self.edition.as_fd()).map_err(refused)?;
        open.maps.taken.reuse_fd(self.taken.as_fd()).map_err(refused)?;
        let loaded = open.load().map_err(refused)?;
        let sockets = MapHandle::try_from(&loaded.maps.sockets).map_err(refused)?;
        Ok(Program::of(Attachment::new(interface, &loaded.progs.forward, in_pieces)?, sockets))
    }

    /// The router is at `edition` now: shortcuts of others are no longer taken; with 0, none are.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn set_edition(&self, edition: u64) -> Result<(), Error> {
        self.edition.update(&ONLY, &edition.to_ne_bytes(), MapFlags::ANY).map_err(refused)
    }

    /// Packets take `shortcut`, of `edition`, which leads to the kernel's `interface`.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn add(&self, shortcut: &Shortcut, interface: u32, edition: u64) -> Result<(), Error> {
        self.shortcuts
            .update(&key(shortcut), &value(shortcut, interface, edition), MapFlags::ANY)
            .map_err(refused)
    }

    /// What took shortcuts from and to a device.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn taken(&self, device: u16) -> Result<Taken, Error> {
        let by_core =
            self.taken.lookup_percpu(&u32::from(device).to_ne_bytes(), MapFlags::ANY).map_err(refused)?;
        let sum = |at: usize| -> u64 {
            let counts = by_core.iter().flatten();
            counts.filter_map(|counts| counts.as_chunks().0.get(at).copied()).map(u64::from_ne_bytes).sum()
        };
        Ok(Taken { received: sum(0), received_bytes: sum(1), sent: sum(2), sent_bytes: sum(3) })
    }
}

/// `struct flow` of the program.
fn key(shortcut: &Shortcut) -> Vec<u8> {
    let address = match shortcut.destination {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    };
    [&u32::from(shortcut.from).to_ne_bytes()[..], &address.octets()].concat()
}

/// `struct shortcut` of the program.
fn value(shortcut: &Shortcut, interface: u32, edition: u64) -> Vec<u8> {
    [
        &edition.to_ne_bytes()[..],
        &interface.to_ne_bytes(),
        &u32::from(shortcut.to).to_ne_bytes(),
        &shortcut.arrives.0,
        &shortcut.leaves,
        &shortcut.mtu.to_ne_bytes(),
        // To its alignment.
        &[0; 4],
    ]
    .concat()
}

#[expect(clippy::needless_pass_by_value, reason = "errors are mapped by it")]
fn refused(error: libbpf_rs::Error) -> Error {
    Error::of_loading(&error)
}
