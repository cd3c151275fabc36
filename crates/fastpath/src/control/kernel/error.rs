//! What can go wrong between the router and the kernel, each with its cause and what to do about it.

use std::io;

use nix::errno::Errno;

/// Why the kernel does not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kernel refused an operation.
    #[error("{what}: {cause}; {remedy}")]
    Refused {
        /// The operation, like `cannot create the TAP device 'lan0'`.
        what: String,
        /// The kernel's answer.
        cause: io::Error,
        /// What to do.
        remedy: String,
    },
    /// No interface can have this name.
    #[error("'{0}' cannot name an interface: give 1 to 15 characters, without '/', ':', '%' and blanks")]
    Name(String),
    /// The kernel does not say where routes over nexthop objects lead.
    #[error(
        "the kernel names nexthop objects without what they lead to: set the sysctl \
         net.ipv4.nexthop_compat_mode to 1"
    )]
    NextHopObjects,
    /// The thread that watches the kernel died.
    #[error("the thread that watches the kernel's routes died: please report this")]
    Died,
}

impl Error {
    /// A refusal. `remedy` is for those that have nothing to do with rights.
    pub(super) fn refused(what: impl Into<String>, cause: impl Into<io::Error>, remedy: &str) -> Self {
        let cause = cause.into();
        let remedy = match cause.raw_os_error().map(Errno::from_raw) {
            Some(Errno::EPERM | Errno::EACCES) => "run as root, or with CAP_NET_ADMIN",
            _ => remedy,
        };
        Self::Refused { what: what.into(), cause, remedy: remedy.to_owned() }
    }
}
