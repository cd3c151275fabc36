//! Why a device is no faster: where its packets, its time, its cycles and its energy go.
//!
//! Counters and clocks of the kernel enter, through thin readers; what they mean leaves as plain
//! data. Whatever a kernel or a machine does not tell is named, and nothing is put in its place.

pub mod cost;
pub mod cycles;
pub mod energy;
pub mod flame;
pub mod links;
pub mod queues;
