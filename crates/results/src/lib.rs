//! Results are files: the record of a run, the store that keeps records, and the exporters.
//!
//! Measured values enter; JSON that anyone can recompute every figure from leaves.

pub mod bench;
pub mod certificate;
pub mod consistency;
pub mod export;
pub mod facts;
#[cfg(any(test, feature = "fixtures"))]
pub mod fixtures;
pub mod import;
pub mod record;
mod shared_core;
pub mod store;
pub mod time;
pub mod whole;

pub use record::Record;
