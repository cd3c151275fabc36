//! What a port and its queues share: it enters running, and the device is forgotten with the last of them.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::af_xdp;
use crate::environment::Dpdk;
use crate::error::Error;
use crate::shim;

/// Held while devices come and go: drivers share tables that the first of theirs makes, and do not guard
/// them.
pub(crate) static COMING_AND_GOING: Mutex<()> = Mutex::new(());

/// The link of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// Whether the other end is there.
    pub up: bool,
    /// Whether both ends send at once.
    pub full_duplex: bool,
    /// Bits a second, where the driver knows.
    pub speed_bps: Option<u64>,
}

/// What a port and its queues share.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) number: u16,
    pub(crate) name: String,
    pub(crate) dpdk: Arc<Dpdk>,
    /// The interface of the kernel that `net_af_xdp` uses, if it is one.
    pub(crate) interface: Option<String>,
    /// What holds the XDP program there.
    pub(crate) program: OnceLock<OwnedFd>,
}

impl Running {
    pub(crate) fn number(&self) -> u16 {
        self.number
    }

    pub(crate) fn dpdk(&self) -> &Arc<Dpdk> {
        &self.dpdk
    }

    pub(crate) fn link(&self) -> Option<Link> {
        let mut link = shim::linerate_link { up: 0, full_duplex: 0, mbps: 0 };
        // SAFETY: the port exists and `link` can be written.
        let known = unsafe { shim::linerate_link(self.number, &raw mut link) } == 0;
        known.then(|| Link {
            up: link.up != 0,
            full_duplex: link.full_duplex != 0,
            speed_bps: Some(u64::from(link.mbps) * 1_000_000).filter(|_| ![0, u32::MAX].contains(&link.mbps)),
        })
    }

    /// Sees to it that no XDP program outlives this process.
    pub(crate) fn hold_program(&self) -> Result<(), Error> {
        let Some(interface) = &self.interface else { return Ok(()) };
        let lost = |cause| Error::Port {
            port: self.name.clone(),
            what: "its XDP program",
            cause,
            said: format!("nothing else may attach one to {interface}"),
        };
        if let Some(link) = af_xdp::hold(interface).map_err(lost)? {
            let _ = self.program.set(link);
        }
        Ok(())
    }

    pub(crate) fn ask(&self, what: &'static str, work: impl FnOnce() -> i32) -> Result<i32, Error> {
        let refused = |(cause, said)| Error::Port { port: self.name.clone(), what, cause, said };
        self.dpdk.listen(work).map_err(refused)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _alone = COMING_AND_GOING.lock().unwrap_or_else(PoisonError::into_inner);
        // First: the driver cannot detach what is held.
        drop(self.program.take());
        // SAFETY: the port exists, and no queue of it is left.
        unsafe { shim::linerate_remove(self.number) };
    }
}
