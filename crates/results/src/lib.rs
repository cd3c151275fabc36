//! Results are files: the record of a run, the store that keeps records, and the exporters.
//!
//! Measured values enter; JSON that anyone can recompute every figure from leaves.

pub mod record;

pub use record::Record;
