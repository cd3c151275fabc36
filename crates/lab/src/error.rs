//! What can go wrong in a lab: an operation and the kernel's answer enter, one line that names
//! cause and remedy leaves.

use std::io;
use std::net::IpAddr;

use crate::placement::PlacementError;

/// Why a lab could not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kernel refused an operation.
    #[error("{what}: {cause}. {remedy}")]
    Kernel {
        /// The operation, like `cannot create a network namespace`.
        what: String,
        /// The kernel's answer.
        cause: io::Error,
        /// What the user can do.
        remedy: String,
    },
    /// The kernel refused a BPF program.
    #[error("{what}: {cause}. {remedy}")]
    Bpf {
        /// The operation, like `cannot load sink.bpf.c`.
        what: String,
        /// libbpf's answer.
        cause: libbpf_rs::Error,
        /// What the user can do.
        remedy: String,
    },
    /// The frames asked for do not fit the device.
    #[error(
        "frames of {asked} bytes do not fit: the lab carries {least} to {most} bytes. Choose a size within"
    )]
    FrameSize {
        /// Frame size asked for, in bytes, FCS included.
        asked: usize,
        /// Smallest frame size.
        least: usize,
        /// Largest frame size.
        most: usize,
    },
    /// The kernel answered something that this version does not understand.
    #[error("{0}. Please report this with the output of 'linerate doctor'")]
    Unexpected(String),
    /// A device that is no part of the lab.
    #[error("{device} does not forward between interfaces of the kernel: add --engine {engine}")]
    Engine {
        /// The device.
        device: &'static str,
        /// The engine that it needs.
        engine: &'static str,
    },
    /// A device without interfaces of the lab is to be reset by them.
    #[error("{device} cannot be reset by interfaces of the lab, which it has none of: give --reset-command")]
    NoInterfaces {
        /// The device.
        device: &'static str,
    },
    /// The cores asked for cannot be had.
    #[error(transparent)]
    Placement(#[from] PlacementError),
    /// Real interfaces cannot be used.
    #[error(transparent)]
    Ports(#[from] PortsError),
    /// A lab held by another process cannot be reached.
    #[error(transparent)]
    Holder(#[from] HolderError),
}

/// Why a lab held by another process cannot be reached, or this one cannot be offered.
#[derive(Debug, thiserror::Error)]
pub enum HolderError {
    /// Not a name for a lab.
    #[error("'{0}' is no name for a lab: use up to 64 letters, digits, '-', '_' and '.'")]
    Name(String),
    /// The name is taken.
    #[error("there is a lab called '{0}' already: choose another name, or 'linerate lab down {0}'")]
    Taken(String),
    /// Another user has the name.
    #[error(
        "the name '{name}' is held by user {owner}, and only labs of root or of your own are used: \
         choose another name"
    )]
    Foreign {
        /// The name.
        name: String,
        /// The user's number.
        owner: u32,
    },
    /// There is no lab of this name.
    #[error("there is no lab called '{name}'. There are: {known}")]
    Unknown {
        /// The name asked for.
        name: String,
        /// The names that there are.
        known: String,
    },
    /// The lab does not do what was asked.
    #[error("the lab '{name}' refuses: {reason}")]
    Refused {
        /// The lab.
        name: String,
        /// What it says.
        reason: String,
    },
    /// The conversation failed.
    #[error(
        "cannot talk to the lab '{name}': {cause}. Its process may have just ended: see 'linerate lab list'"
    )]
    Broken {
        /// The lab.
        name: String,
        /// What the kernel says.
        cause: io::Error,
    },
    /// The command to execute cannot be started.
    #[error("cannot run '{command}': {cause}. Check its name and your PATH")]
    Command {
        /// The command.
        command: String,
        /// What the kernel says.
        cause: io::Error,
    },
}

/// Why two interfaces cannot be ports.
#[derive(Debug, thiserror::Error)]
pub enum PortsError {
    /// No interface of this name.
    #[error("there is no interface '{name}'. {known}")]
    Missing {
        /// The name asked for.
        name: String,
        /// Which there are, in a sentence.
        known: String,
    },
    /// One interface for both ports.
    #[error("both ports are '{0}': name two different interfaces")]
    Same(String),
    /// Not an Ethernet interface.
    #[error("'{0}' is not an Ethernet interface: name one that is")]
    NotEthernet(String),
    /// Set down.
    #[error("'{0}' is down: set it up ('ip link set {0} up')")]
    Down(String),
    /// Nothing at the other end.
    #[error("'{0}' has no link: check the cable and the interface at its other end")]
    NoCarrier(String),
    /// This machine's own traffic goes by it.
    #[error(
        "'{name}' carries {what}, and a load test on it would cut that off. \
             Name another interface, or say --force twice"
    )]
    InUse {
        /// The interface.
        name: String,
        /// What it carries.
        what: String,
    },
    /// The gateway does not answer.
    #[error("no answer from the gateway {gateway} on '{name}': {diagnosis}")]
    Unresolved {
        /// The gateway.
        gateway: IpAddr,
        /// The interface.
        name: String,
        /// What was seen, and what to do.
        diagnosis: String,
    },
}

/// What a lab's functions return.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What is asked of the kernel, for the message when it refuses.
#[derive(Clone, Copy)]
pub enum Needs {
    /// Namespaces and mounts.
    SysAdmin,
    /// Entering a network and a mount namespace.
    Entering,
    /// Files that belong to root.
    RootsFiles,
    /// Links, addresses, routes, sysctls of a network namespace.
    NetAdmin,
    /// BPF programs and maps.
    Bpf,
    /// Affinity of other tasks.
    SysNice,
    /// Raw or device-bound sockets.
    NetRaw,
}

impl Needs {
    const fn capability(self) -> &'static str {
        match self {
            Self::SysAdmin => "CAP_SYS_ADMIN",
            Self::Entering => "CAP_SYS_ADMIN and CAP_SYS_CHROOT",
            Self::RootsFiles => "CAP_DAC_OVERRIDE and CAP_NET_ADMIN",
            Self::NetAdmin => "CAP_NET_ADMIN",
            Self::Bpf => "CAP_BPF and CAP_NET_ADMIN",
            Self::SysNice => "CAP_SYS_NICE",
            Self::NetRaw => "CAP_NET_RAW",
        }
    }
}

impl Error {
    /// A refusal by the kernel. A missing capability has one remedy, whatever the operation;
    /// `otherwise` is the remedy for everything else.
    pub fn kernel(
        what: impl Into<String>,
        cause: impl Into<io::Error>,
        needs: Needs,
        otherwise: &str,
    ) -> Self {
        let cause = cause.into();
        let remedy = match cause.kind() {
            io::ErrorKind::PermissionDenied => {
                format!("Run it as root (sudo), or with {}", needs.capability())
            }
            _ => otherwise.to_owned(),
        };
        Self::Kernel { what: what.into(), cause, remedy }
    }

    /// A refusal by libbpf or the kernel behind it.
    #[must_use]
    pub fn bpf(what: impl Into<String>, cause: libbpf_rs::Error) -> Self {
        let remedy = match cause.kind() {
            libbpf_rs::ErrorKind::PermissionDenied => {
                format!("Run it as root (sudo), or with {}", Needs::Bpf.capability())
            }
            _ => "'linerate doctor' shows what this kernel lacks".to_owned(),
        };
        Self::Bpf { what: what.into(), cause, remedy }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_capability_is_named() {
        let refused = |errno| {
            Error::kernel(
                "cannot create a network namespace",
                io::Error::from_raw_os_error(errno),
                Needs::SysAdmin,
                "Close other namespaces",
            )
            .to_string()
        };
        assert_eq!(
            refused(nix::libc::EPERM),
            "cannot create a network namespace: Operation not permitted (os error 1). \
             Run it as root (sudo), or with CAP_SYS_ADMIN"
        );
        assert!(refused(nix::libc::ENOSPC).ends_with(". Close other namespaces"));
    }
}
