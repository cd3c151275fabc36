//! Our counters beside independent ones.

use serde::{Deserialize, Serialize};

/// The way of one direction's frames, as the kernel (or in user space the drivers) counted it at the
/// interfaces, beside what the tester counted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CrossCheck {
    /// `0->1` or `1->0`.
    pub direction: String,
    /// In the order that frames pass them.
    pub points: Vec<Point>,
    /// Whether both counts agree wherever there are two.
    pub agrees: bool,
}

/// One place on the way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Point {
    /// Where, like `sent by port0`.
    pub place: String,
    /// What it counted there, the few frames included that Linerate did not send.
    pub frames: u64,
    /// What it dropped there for want of room.
    pub dropped: u64,
    /// What the tester counted there, if it counts there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ours: Option<u64>,
}

impl Point {
    /// Frames that came to this place: what is dropped where frames are sent was there all the same.
    #[must_use]
    pub fn came(&self) -> u64 {
        self.frames + if self.place.starts_with("sent") { self.dropped } else { 0 }
    }
}
