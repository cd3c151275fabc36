//! What can go wrong in a lab: an operation and the kernel's answer enter, one line that names
//! cause and remedy leaves.

use std::io;

use crate::holder::HolderError;
use crate::placement::PlacementError;
use crate::ports::PortsError;

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

/// What a lab's functions return.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What is asked of the kernel, for the message when it refuses.
#[derive(Clone, Copy)]
pub enum Needs {
    /// Namespaces and mounts.
    SysAdmin,
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
