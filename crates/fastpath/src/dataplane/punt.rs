//! The way to the kernel: frames that the router does not handle itself enter, and a kernel's interface of
//! the same addresses takes them.

use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

/// Takes frames for the kernel, from all workers.
pub trait Punt: Send + Sync {
    /// Takes a frame as it arrived, from its Ethernet header on and without the interface's VLAN tag; says
    /// whether there was room. Never waits.
    fn punt(&self, frame: &[u8]) -> bool;
}

/// The way to the kernel of an interface.
#[derive(Clone)]
pub struct Kernel(Arc<dyn Punt>);

impl Kernel {
    /// By `punt`.
    #[must_use]
    pub fn new(punt: Arc<dyn Punt>) -> Self {
        Self(punt)
    }

    /// As [`Punt::punt`].
    #[must_use]
    pub fn punt(&self, frame: &[u8]) -> bool {
        self.0.punt(frame)
    }
}

impl PartialEq for Kernel {
    /// Whether it is the same one.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Kernel {}

impl Debug for Kernel {
    fn fmt(&self, formatter: &mut Formatter) -> fmt::Result {
        formatter.write_str("Kernel")
    }
}
