//! Memifs for a replay: two ends enter, a carrier of whole frames leaves.

use super::queues::{Receiving, Sending};
use super::{End, open};
use crate::Error;
use crate::user_space::Pair;

/// Opens `ends` for frames of up to `longest` bytes, without FCS.
///
/// # Errors
/// When an end cannot be opened, or has no other end.
pub fn carrier(ends: [&End; 2], longest: usize) -> Result<Pair<Sending, Receiving>, Error> {
    let (controlled, [zero, one]) = open(ends, 1, longest, 0)?;
    Pair::of(zero.transmit, one.receive, move || {
        let _connected = &controlled;
        // What finds no room is refused to the sender, which knows.
        Ok(0)
    })
}
