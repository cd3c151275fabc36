//! Strategies that load a device and judge it: [`Ramp`], [`Saturate`], [`Search`], [`Latency`],
//! [`Rfc2544`], [`Soak`] and [`StallSearch`].
//!
//! An [`engine::Engine`] and a strategy's parameters enter; an [`Outcome`] leaves: every sample
//! with final counts, and a verdict on each direction. Meanwhile an [`Observer`] sees each
//! sample as it is taken. A strategy decides only which load comes next; a session runs it in
//! intervals, drains and counts; [`verdict`] judges the samples and touches nothing else.
//!
//! ```
//! use std::time::Duration;
//! use engine::simulated::{Capacity, Device, SimulatedEngine, Tester};
//! use trial::Strategy;
//!
//! let device = Device { capacity: Capacity::Each(300_000.0), ..Device::default() };
//! let mut engine = SimulatedEngine::new(device, Tester::default());
//! let ramp = trial::Ramp {
//!     conditions: trial::Conditions {
//!         warm_up: trial::WarmUp { pps: 1_000.0, duration: Duration::from_secs(1) },
//!         step: Duration::from_millis(100),
//!         drain: Duration::from_secs(1),
//!         loss_threshold: 0.001,
//!         line_rate_bps: 1e9,
//!     },
//!     target_pps: 1e6,
//!     rise: Duration::from_secs(30),
//!     hold: Duration::from_secs(2),
//!     search: Duration::ZERO,
//! };
//! let outcome = ramp.run(&mut engine, &mut trial::Silent);
//! assert!((outcome.directions[0].max_rate_pps / 300_000.0 - 1.0).abs() < 0.011);
//! ```

mod conditions;
mod latency;
mod lateness;
mod noise;
mod observer;
mod outcome;
mod ramp;
pub mod rfc2544;
mod sample;
mod saturate;
pub mod search;
mod session;
mod soak;
mod stall;
pub mod strategy;
mod surroundings;
mod undisturbed;
pub mod verdict;

pub use conditions::{Conditions, WarmUp};
pub use latency::{ChosenLoad, Latency, Reference};
pub use noise::Noise;
pub use observer::{Observer, ObserverError, Silent};
pub use outcome::{Failure, Outcome};
pub use ramp::Ramp;
pub use rfc2544::Rfc2544;
pub use saturate::Saturate;
pub use search::{Bursts, Goal, Search};
pub use soak::Soak;
pub use stall::StallSearch;
pub use strategy::Strategy;
pub use surroundings::Surroundings;
pub use undisturbed::Interruption;
