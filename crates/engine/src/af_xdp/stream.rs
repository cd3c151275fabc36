//! Interfaces that send as fast as they can.

use std::os::fd::BorrowedFd;

use traffic::FrameTable;

use super::Options;
use super::open::{Opening, Purpose, open, wait_until_up};
use crate::Error;
use crate::builder::Builder;
use crate::memif::Anyone;
use crate::user_space::{Stream, longest};
use crate::xdp::PortRef;

/// Sends the frames of `table` by `port`, which is in `namespace`, from `core`; counts those that its driver took.
///
/// # Errors
/// When the interface cannot be used, or is down.
pub fn source(
    port: &PortRef,
    namespace: Option<BorrowedFd<'_>>,
    options: Options,
    table: &FrameTable,
    core: usize,
) -> Result<Stream, Error> {
    let opening = Opening {
        namespace,
        options,
        longest: longest(table),
        fill: table.fill,
        purpose: Purpose::Send,
        senders: 1,
    };
    let (opened, mut queues) = open(port, &opening)?;
    wait_until_up(&[&opened])?;
    let queue =
        queues.transmit.pop().ok_or_else(|| Error::Failed("a port has no queue; this is a defect".into()))?;
    Stream::source(queue, Anyone, Builder::new(table, 0, 1), core, move || opened.is_up())
}
