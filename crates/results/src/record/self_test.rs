//! The tester's own limits.

use serde::{Deserialize, Serialize};

/// What the tester reaches without a device: with a cable between its ports.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SelfTest {
    /// When that was measured (RFC 3339, UTC).
    pub measured: String,
    /// The most that it receives of what it sends in each direction, in frames a second. What comes back near
    /// that rate is its limit, not the device's. Frames that a device drops cost less: more of them may be offered.
    pub ceiling_pps: f64,
    /// The shortest time that a frame takes, at a low load, in nanoseconds.
    pub base_latency_min_ns: u64,
    /// The mean, in nanoseconds.
    pub base_latency_mean_ns: f64,
    /// The median, of two directions the longer one, in nanoseconds; older records have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_latency_p50_ns: Option<u64>,
}

impl SelfTest {
    /// The low load at which its latencies are measured, in frames a second in each direction. At higher ones frames may
    /// be faster: threads that receive do not fall asleep between them.
    pub const LOW_PPS: f64 = 10_000.0;
}
