//! What threads share memory by, for those modules whose order of loads and stores `tests/loom.rs` checks: there, loom's
//! twins stand in this place.

pub use std::sync::{Arc, Mutex, MutexGuard, PoisonError, atomic};
