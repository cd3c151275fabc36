//! An interface as the tester's port: its name enters; [`PortFacts`] leave, what stands in the way of a load
//! test with the remedy, and whether the kernel engine can send by it. All of it is known before the first
//! frame.
//!
//! [`findings()`] and [`Sending::of`] are arithmetic on facts; [`read()`], [`Attached`], [`probe()`] and
//! [`Questions`] ask the kernel, in the network namespace of the calling thread.

mod choice;
mod describe;
mod ethtool;
mod findings;
mod link;
mod program;
mod questions;
mod read;
mod sending;
mod virtio;

pub use choice::{Engine, choose};
pub use describe::describe;
pub use findings::{Finding, Severity, findings};
pub use link::wait_for_carrier;
pub use program::{Attached, probe};
pub use questions::{Question, Questions, address_of, own_addresses};
pub use read::read;
pub use results::record::PortFacts;
pub use sending::{Sending, Verdict, can_send};

/// Why an interface cannot be looked at.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is none of this name.
    #[error("there is no interface '{0}' here: 'ip link' lists them")]
    Missing(String),
    /// The kernel refused a question.
    #[error("cannot read {what} of '{interface}': {cause}. Run as root, or with CAP_NET_ADMIN")]
    Kernel {
        /// What was asked for.
        what: &'static str,
        /// The interface.
        interface: String,
        /// The kernel's answer.
        cause: std::io::Error,
    },
    /// The kernel refused a program.
    #[error("cannot {what}: {cause}. Run as root, or with CAP_BPF and CAP_NET_ADMIN")]
    Program {
        /// The operation.
        what: String,
        /// The kernel's answer.
        cause: libbpf_rs::Error,
    },
}

/// What the functions of this crate return.
pub type Result<T, E = Error> = std::result::Result<T, E>;
