//! Profiles of every kind: the frames that they describe are held against independent parsers. All is one program, which
//! is built and linked once.

#![allow(clippy::unwrap_used)] // a test may panic

mod captures;
mod frames;
mod profiles;
mod trex;
