//! Statistics. Plain numbers enter, plain numbers leave.

pub mod bootstrap;
pub mod comparison;
pub mod confidence;
pub mod histogram;
pub mod holm;
pub mod median;
pub mod ministat;
pub mod power;
pub mod random;
pub mod ranks;
pub mod trend;
pub mod welch;

pub use comparison::Comparison;
pub use confidence::Confidence;
pub use histogram::Histogram;
pub use random::Random;
pub use ranks::Ranks;
pub use trend::Trend;
pub use welch::Welch;
