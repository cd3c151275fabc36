//! Statistics. Plain numbers enter, plain numbers leave.

pub mod histogram;

pub use histogram::Histogram;
