//! Interfaces for a replay: two of them enter, a carrier of whole frames leaves.

use std::os::fd::BorrowedFd;

use super::Options;
use super::open::{Opening, Purpose, open, wait_until_up};
use super::queues::{Receiving, Sending};
use crate::Error;
use crate::user_space::Pair;
use crate::xdp::PortRef;

/// Opens `ports`, which are in `namespace`, for frames of up to `longest` bytes, without FCS. The kernel still
/// gets what it needs to find neighbours, and no other frame that arrives at port 1.
///
/// # Errors
/// When an interface cannot be used, or is down.
pub fn carrier(
    ports: [&PortRef; 2],
    namespace: Option<BorrowedFd<'_>>,
    options: Options,
    longest: usize,
) -> Result<Pair<Sending, Receiving>, Error> {
    let opening = |purpose| Opening { namespace, options, longest, fill: 0, purpose, senders: 1 };
    let (zero, sending) = open(ports[0], &opening(Purpose::Send))?;
    let (one, receiving) = open(ports[1], &opening(Purpose::ReceiveAll))?;
    wait_until_up(&[&zero, &one])?;
    Pair::of(sending.transmit, receiving.receive, move || {
        let _open = &zero;
        Ok(one.statistics()?.receive_dropped)
    })
}
