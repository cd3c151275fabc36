//! Statistics. Plain numbers enter, plain numbers leave.

pub mod bootstrap;
pub mod comparison;
pub mod confidence;
pub mod histogram;
pub mod holm;
pub mod mean_difference;
pub mod median;
pub mod ministat;
pub mod pooled;
pub mod power;
pub mod proportion;
pub mod random;
pub mod ranks;
pub mod scaling;
pub mod signed_ranks;
pub mod trend;

pub use comparison::Comparison;
pub use confidence::Confidence;
pub use histogram::Histogram;
pub use mean_difference::MeanDifference;
pub use pooled::Pooled;
pub use random::Random;
pub use ranks::Ranks;
pub use scaling::Scaling;
pub use signed_ranks::SignedRanks;
pub use trend::Trend;
