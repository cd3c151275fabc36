//! Ports of DPDK for a replay: two devices enter, a carrier of whole frames leaves.

use std::sync::Arc;

use dpdk::{Burst, Dpdk, Pool};

use super::engine::{Receiving, Sending};
use super::setup::{Opened, port_config, wait_for_links};
use crate::Error;
use crate::user_space::{Pair, room};

/// Buffers of each pool: a queue may be full of them.
const FRAMES: u32 = 4095;

/// Opens `devices` for frames of up to `longest` bytes, without FCS.
///
/// # Errors
/// When a device cannot be opened, or has no other end.
pub fn carrier(
    dpdk: &Arc<Dpdk>,
    devices: [&str; 2],
    longest: usize,
) -> Result<Pair<Sending, Receiving>, Error> {
    let config = port_config(1, longest);
    let pool = || Pool::new(dpdk, FRAMES, room(longest) as u16, None);
    let sending = pool()?;
    // Each port has its own for what arrives: net_af_xdp takes half of a pool at the start.
    let open = |device| Opened::new(dpdk, device, &config, &pool()?);
    let [zero, one] = devices.map(open);
    let (zero, one) = (zero?, one?);
    wait_for_links([&zero, &one])?;
    let send = zero.queues.send.into_iter();
    let receive = one.queues.receive.into_iter();
    let (port, sender) = (one.port, zero.port);
    Pair::of(
        send.map(|queue| Sending::new(queue, sending.clone(), Burst::new(dpdk))).collect(),
        receive.map(|queue| Receiving::new(queue, Burst::new(dpdk))).collect(),
        move || {
            let _open = &sender;
            let stats = port.stats()?;
            Ok(stats.missed + stats.no_buffer)
        },
    )
}
