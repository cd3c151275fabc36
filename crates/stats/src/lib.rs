//! Statistics. Plain numbers enter, plain numbers leave.

pub mod histogram;
pub mod trend;

pub use histogram::Histogram;
pub use trend::Trend;
