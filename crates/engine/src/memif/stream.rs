//! Memifs that send as fast as they can, or swallow what arrives.

use memif::Role;
use traffic::FrameTable;

use super::control::Controlled;
use super::queues::{Receiving, Sending};
use super::{Anyone, End, PATIENCE, open_one};
use crate::Error;
use crate::builder::Builder;
use crate::user_space::{Stream, longest};

/// Sends the frames of `table` by `end`, whose other end is there, from `core`; counts those that found room.
///
/// # Errors
/// When the end cannot be opened, or has no other end.
pub fn source(end: &End, table: &FrameTable, core: usize) -> Result<Stream, Error> {
    let (opened, mut queues) = open_one(end, 1, longest(table), table.fill)?;
    let controlled = Controlled::start(vec![opened])?;
    controlled.wait(1, PATIENCE)?;
    let builder = Builder::new(table, 0, 1);
    let builder = if end.role == Role::Server { builder.whole(table) } else { builder };
    let queue: Sending = queues.transmit.pop().ok_or_else(no_queue)?;
    Stream::source(queue, Anyone, builder, core, move || controlled.is_up(0))
}

/// Receives frames of up to `longest` bytes, without FCS, from `end` on `core`, drops and counts them. Its other
/// end may come later.
///
/// # Errors
/// When the end cannot be opened.
pub fn sink(end: &End, longest: usize, core: usize) -> Result<Stream, Error> {
    let (opened, mut queues) = open_one(end, 1, longest, 0)?;
    let controlled = Controlled::start(vec![opened])?;
    let queue: Receiving = queues.receive.pop().ok_or_else(no_queue)?;
    Stream::sink(queue, Anyone, core, move || controlled.is_up(0))
}

fn no_queue() -> Error {
    Error::Failed("a memif has no queue; this is a defect".into())
}
