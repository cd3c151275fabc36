//! Statistics. Plain numbers enter, plain numbers leave.

pub mod confidence;
pub mod histogram;
pub mod ministat;
pub mod random;
pub mod trend;

pub use confidence::Confidence;
pub use histogram::Histogram;
pub use random::Random;
pub use trend::Trend;
