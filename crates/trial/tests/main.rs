//! Every strategy over simulated devices: what it finds is held against the truth that the device was given. All is one
//! program, which is built and linked once.

#![allow(clippy::unwrap_used)] // a test may panic

mod common;

mod comparison;
mod intervals;
mod latency;
mod laws;
mod mlrsearch;
mod proof;
mod ramp;
mod rfc2544;
mod saturate;
mod search;
mod soak;
mod stall;
