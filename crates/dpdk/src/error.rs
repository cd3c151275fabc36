//! What can go wrong, each with its cause and what to do about it.

use nix::errno::Errno;
use nix::unistd::geteuid;

/// Why DPDK does not do what was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// DPDK starts once in the life of a process.
    #[error("DPDK was started in this process already, which it permits once: start the program anew")]
    StartedBefore,
    /// It does not start at all.
    #[error("DPDK does not start: {cause}{}; {}", quote(.said), remedy_of_start(.said, *.hugepages))]
    Start {
        /// The kernel's word for it.
        cause: Errno,
        /// What DPDK said of it.
        said: String,
        /// Whether hugepages were asked for.
        hugepages: bool,
    },
    /// Cards reach nothing else.
    #[error(
        "network cards need hugepages, and fewer than {mebibytes} MiB of them are free: \
         `linerate doctor --fix` reserves some"
    )]
    NoHugepages {
        /// How much is asked for.
        mebibytes: u32,
    },
    /// A device cannot be used.
    #[error("DPDK cannot use the device '{device}': {cause}{}; {}", quote(.said), remedy_of_device(.device, *.cause, .said))]
    Device {
        /// As the user wrote it.
        device: String,
        /// The kernel's word for it.
        cause: Errno,
        /// What DPDK said of it.
        said: String,
    },
    /// A device refuses a setting.
    #[error("port {port} refuses {what}: {cause}{}; {}", quote(.said), remedy_of_port(.said))]
    Port {
        /// The port's name.
        port: String,
        /// What it refuses.
        what: &'static str,
        /// The kernel's word for it.
        cause: Errno,
        /// What DPDK said of it.
        said: String,
    },
    /// A device cannot do as much as was asked.
    #[error("port {port} has {most} {what}, and {asked} are asked for: ask for no more")]
    TooMany {
        /// The port's name.
        port: String,
        /// Of what.
        what: &'static str,
        /// How many it has.
        most: usize,
        /// How many were asked for.
        asked: usize,
    },
    /// Memory for frames is short.
    #[error(
        "no memory for {count} frames of {room} bytes: {cause}; give DPDK more memory, or reserve more hugepages"
    )]
    Pool {
        /// Frames.
        count: u32,
        /// Bytes of each.
        room: u16,
        /// The kernel's word for it.
        cause: Errno,
    },
    /// A table of routes cannot be made, or has no room for another route.
    #[error("DPDK's table of routes refuses {what}: {cause}; give it or DPDK more memory")]
    Fib {
        /// What it refuses.
        what: String,
        /// The kernel's word for it.
        cause: Errno,
    },
    /// A thread cannot be made known.
    #[error("DPDK does not take up another thread: {cause}; use fewer cores")]
    Thread {
        /// The kernel's word for it.
        cause: Errno,
    },
    /// A text that a C program cannot read.
    #[error("'{}' holds a zero byte: leave it out", .0.escape_default())]
    Text(String),
    /// The place for what DPDK says cannot be made.
    #[error("no file in memory for what DPDK says: {0}; close some files")]
    Log(Errno),
}

impl Error {
    /// Whether root could do it.
    #[must_use]
    pub fn needs_root(&self) -> bool {
        matches!(self, Self::Device { cause, .. } if remedy_of_permission(*cause).is_some())
    }
}

/// What helps those who may not do what others may.
const AS_ROOT: &str = "run it as root (sudo), or with CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF";

fn quote(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(" ({text})") }
}

fn remedy_of_start(said: &str, hugepages: bool) -> &'static str {
    if hugepages && (said.contains("hugepage") || said.contains("memory")) {
        "reserve hugepages (`linerate doctor` says how), or do without"
    } else {
        "`linerate doctor` says what is missing"
    }
}

fn remedy_of_device(device: &str, cause: Errno, said: &str) -> &'static str {
    let is_address = device.contains(':') && device.starts_with(|first: char| first.is_ascii_hexdigit());
    match cause {
        _ if said.contains("failed to parse device") => "is its driver's name right, as in net_memif0?",
        Errno::ENODEV | Errno::ENOENT if is_address => {
            "bind it to vfio-pci first (dpdk-devbind.py), and see that no kernel driver holds it"
        }
        Errno::ENOMEM => "give DPDK more memory",
        _ if said.contains("Invalid socket directory") => {
            "is there such a directory for its socket, and may you write there?"
        }
        _ => remedy_of_permission(cause).unwrap_or("are its arguments right?"),
    }
}

/// Drivers that give no reason return -1, which is EPERM: root knows better.
fn remedy_of_permission(cause: Errno) -> Option<&'static str> {
    let denied = [Errno::EPERM, Errno::EACCES].contains(&cause) && !geteuid().is_root();
    denied.then_some(AS_ROOT)
}

fn remedy_of_port(said: &str) -> &'static str {
    if said.contains("Failed to connect") {
        "start its other end first, with the same socket"
    } else if said.contains("xdp") && !geteuid().is_root() {
        // The driver keeps the kernel's reason to itself.
        AS_ROOT
    } else {
        "its driver may need other settings"
    }
}

/// The error number in what a function of the shim returned.
pub(crate) fn errno(result: i32) -> Errno {
    Errno::from_raw(result.saturating_neg())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_say_cause_and_remedy() {
        let device = |device: &str, cause| Error::Device { device: device.into(), cause, said: "x".into() };
        let text = device("0000:01:00.0", Errno::ENODEV).to_string();
        assert!(
            text.contains("No such device") && text.contains("(x)") && text.contains("vfio-pci"),
            "{text}"
        );
        let start = Error::Start { cause: Errno::EACCES, said: "no hugepages found".into(), hugepages: true };
        assert!(start.to_string().contains("reserve hugepages"), "{start}");
    }
}
