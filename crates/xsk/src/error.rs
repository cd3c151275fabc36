//! What can go wrong.

use std::io;

use libbpf_rs::ErrorKind;
use nix::libc;

/// Why a socket or a program cannot be used: cause and remedy.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// This process may not.
    #[error("{action} is not permitted: run as root, or with CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF")]
    NotPermitted {
        /// What was tried.
        action: String,
    },
    /// The kernel was built without AF_XDP.
    #[error(
        "this kernel has no AF_XDP sockets ({0}): use a kernel built with CONFIG_XDP_SOCKETS, or another engine"
    )]
    NoSockets(io::Error),
    /// Another socket has the queue.
    #[error(
        "queue {queue} of interface {interface} is busy: another program has an AF_XDP socket there; end that \
         program first"
    )]
    QueueBusy {
        /// The interface.
        interface: String,
        /// The queue.
        queue: u32,
    },
    /// The interface has no such queue.
    #[error(
        "interface {interface} has no queue {queue}: give it more (ethtool -L {interface} combined {}), or use \
         fewer cores",
        queue + 1
    )]
    NoQueue {
        /// The interface.
        interface: String,
        /// The queue.
        queue: u32,
    },
    /// The driver cannot do what was insisted on.
    #[error(
        "the driver of interface {interface} has no AF_XDP without copies: leave the choice to the kernel"
    )]
    NoZeroCopy {
        /// The interface.
        interface: String,
    },
    /// The kernel knows no frames in several pieces.
    #[error(
        "frames of {length} bytes are too large for the AF_XDP sockets of this kernel: they take up to {most} bytes,          FCS included, and larger ones since Linux 6.6; choose a smaller --size, or a newer kernel"
    )]
    NoLargeFrames {
        /// Bytes with FCS.
        length: usize,
        /// What fits one piece, with FCS.
        most: usize,
    },
    /// The interface is gone.
    #[error(
        "there is no interface {interface}: it vanished, or its name is another one (ip link lists them)"
    )]
    Vanished {
        /// The interface.
        interface: String,
    },
    /// Another XDP program is attached.
    #[error(
        "interface {interface} has another XDP program: remove it first, as with 'ip link set {interface} xdp off'"
    )]
    OtherProgram {
        /// The interface.
        interface: String,
    },
    /// The interface does not take the XDP program.
    #[error(
        "interface {interface} does not take the XDP program that receives: {reason}; its MTU may be too large for \
         XDP, try 1500 (ip link set {interface} mtu 1500), and switch LRO off (ethtool -K {interface} lro off)"
    )]
    NoProgram {
        /// The interface.
        interface: String,
        /// The kernel's words.
        reason: String,
    },
    /// The memory of the frames cannot be had.
    #[error(
        "the kernel does not lock {bytes} bytes for frames ({source}): raise the limit (ulimit -l unlimited), or \
         run as root"
    )]
    Memory {
        /// How many.
        bytes: usize,
        /// Why.
        source: io::Error,
    },
    /// A setting that is impossible.
    #[error("{0}")]
    Config(String),
    /// Something else failed.
    #[error("{action} fails: {source}")]
    Failed {
        /// What was tried.
        action: String,
        /// Why.
        source: io::Error,
    },
}

impl Error {
    /// What the kernel's refusal to load an XDP program means.
    #[must_use]
    pub fn of_loading(error: &libbpf_rs::Error) -> Self {
        match error.kind() {
            ErrorKind::PermissionDenied => Self::NotPermitted { action: "loading an XDP program".into() },
            _ => Self::Config(format!(
                "the kernel does not load the XDP program that receives: {error:#}; Linux 5.18 or newer with BPF is \
                 needed"
            )),
        }
    }

    /// What the kernel said to `action`, just now.
    pub(crate) fn last(action: impl Into<String>) -> Self {
        Self::of(action, io::Error::last_os_error())
    }

    /// What `source` means where nothing more is known.
    pub(crate) fn of(action: impl Into<String>, source: io::Error) -> Self {
        let action = action.into();
        match source.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => Self::NotPermitted { action },
            _ => Self::Failed { action, source },
        }
    }

    /// What an error of binding to a queue means.
    pub(crate) fn of_bind(interface: &str, queue: u32, source: io::Error) -> Self {
        let interface = interface.to_owned();
        match source.raw_os_error() {
            Some(libc::EBUSY) => Self::QueueBusy { interface, queue },
            Some(libc::EINVAL) => Self::NoQueue { interface, queue },
            Some(libc::EOPNOTSUPP) => Self::NoZeroCopy { interface },
            Some(libc::ENODEV | libc::ENXIO) => Self::Vanished { interface },
            _ => Self::of(format!("an AF_XDP socket at queue {queue} of interface {interface}"), source),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_says_to_a_bind_becomes_cause_and_remedy() {
        for (number, cause, remedy) in [
            (libc::EBUSY, "queue 3 of interface eth7 is busy", "end that program"),
            (libc::EINVAL, "has no queue 3", "ethtool -L eth7 combined 4"),
            (libc::EOPNOTSUPP, "without copies", "leave the choice"),
            (libc::ENODEV, "no interface eth7", "ip link"),
            (libc::EPERM, "not permitted", "run as root"),
            (libc::ENOMEM, "queue 3 of interface eth7 fails", "memory"),
        ] {
            let text = Error::of_bind("eth7", 3, io::Error::from_raw_os_error(number)).to_string();
            assert!(text.contains(cause) && text.to_lowercase().contains(&remedy.to_lowercase()), "{text}");
        }
    }
}
