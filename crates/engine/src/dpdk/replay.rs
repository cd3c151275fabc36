//! Ports of DPDK for a replay: two devices enter, a carrier of whole frames leaves.

use std::sync::Arc;

use dpdk::{Burst, Dpdk, Pool, Port, RxQueue, TxQueue};

use super::setup::{Opened, port_config, wait_for_links};
use crate::Error;
use crate::replay::{BURST, Carrier};
use crate::user_space::room;

/// Buffers of each pool: a queue may be full of them.
const FRAMES: u32 = 4095;

/// Two ports of DPDK, open.
#[derive(Debug)]
pub struct Ports {
    send: TxQueue,
    receive: RxQueue,
    sending: Burst,
    arriving: Burst,
    pool: Pool,
    /// The one that receives.
    one: Port,
    _zero: Port,
}

impl Ports {
    /// Opens `devices` for frames of up to `longest` bytes, without FCS.
    ///
    /// # Errors
    /// When a device cannot be opened, or has no other end.
    pub fn open(dpdk: &Arc<Dpdk>, devices: [&str; 2], longest: usize) -> Result<Self, Error> {
        let config = port_config(1, longest);
        let room = room(longest) as u16;
        let sending = Pool::new(dpdk, FRAMES, room, None)?;
        // Each port has its own for what arrives: net_af_xdp takes half of a pool at the start.
        let open = |device| Opened::new(dpdk, device, &config, &Pool::new(dpdk, FRAMES, room, None)?);
        let [zero, one] = devices.map(open);
        let (zero, one) = (zero?, one?);
        wait_for_links([&zero, &one])?;
        let (send, receive) = (zero.queues.send.into_iter().next(), one.queues.receive.into_iter().next());
        let (Some(send), Some(receive)) = (send, receive) else {
            return Err(Error::Failed("a port has no queue; this is a defect".into()));
        };
        Ok(Self {
            send,
            receive,
            sending: Burst::new(dpdk),
            arriving: Burst::new(dpdk),
            pool: sending,
            one: one.port,
            _zero: zero.port,
        })
    }
}

impl Carrier for Ports {
    fn send(&mut self, frames: &[&[u8]]) -> Result<usize, Error> {
        let frames = &frames[..frames.len().min(BURST)];
        if !self.send.is_up() || !self.sending.stock(&self.pool, frames.len()) {
            // It stays due until there is an other end, and buffers.
            return Ok(0);
        }
        for (index, frame) in frames.iter().enumerate() {
            let place =
                self.sending.buffer(index, frame.len()).and_then(|buffer| buffer.get_mut(..frame.len()));
            place.ok_or_else(|| too_long(frame))?.copy_from_slice(frame);
        }
        let sent = self.send.send(&mut self.sending, frames.len());
        // Those that found no room are written anew.
        self.sending.clear();
        Ok(sent)
    }

    fn receive(&mut self, each: &mut dyn FnMut(&[u8])) -> Result<(), Error> {
        self.receive.receive(&mut self.arriving, BURST);
        for index in 0..self.arriving.len() {
            if let Some(frame) = self.arriving.frame(index) {
                each(frame);
            }
        }
        self.arriving.clear();
        Ok(())
    }

    fn missed(&self) -> Result<u64, Error> {
        let stats = self.one.stats()?;
        Ok(stats.missed + stats.no_buffer)
    }
}

fn too_long(frame: &[u8]) -> Error {
    Error::Refused(format!("a frame of {} bytes is longer than a buffer; this is a defect", frame.len()))
}
