//! A port of DPDK: a network card, or what else DPDK has a driver for. Frames are lent where the driver put
//! them; what is sent is copied into buffers of the port's own, which alone its driver may free at once.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use dpdk::{Burst, Config, Dpdk, Error, Memory, Pool, PortConfig, RegisteredThread, RxQueue, TxQueue};

use super::{Input, Output, Queues};
use crate::control::config::Port;
use crate::control::show::hardware::Lost;
use crate::dataplane::vector::{Frame, VECTOR};

/// Places of each queue that a driver is asked for.
const DESCRIPTORS: u16 = 1024;
/// Buffers for each queue of either kind.
const BUFFERS: u32 = 4096;
/// Buffers for each worker: those that it was lent, those that it fills, and those that its thread keeps.
const AT_HAND: u32 = 1024;
/// Bytes of a frame before its packet, without a tag and with two.
const HEADER: [u16; 2] = [14, 22];
/// Bytes of a buffer beside the frame.
const BESIDE: usize = 512;
/// What DPDK needs beside buffers, in MiB.
const OWN_MEBIBYTES: usize = 64;

/// A port as it is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The device, and the queues that it receives from.
    pub port: Port,
    /// Bytes that a packet may have, without link header.
    pub mtu: u16,
    /// How many workers send by it.
    pub workers: usize,
}

/// Starts DPDK for `ports`, once in the life of a process; what it does beside moving frames runs on `core`.
///
/// # Errors
/// As [`Memory::choose`] and [`Dpdk::start`].
pub fn start(core: usize, ports: &[Wanted]) -> Result<Arc<Dpdk>, Error> {
    let bytes: usize = ports.iter().map(|port| port.buffers() as usize * (port.room() + BESIDE)).sum();
    let mebibytes = (OWN_MEBIBYTES + (bytes >> 20)).next_multiple_of(32) as u32;
    let cards: Vec<String> =
        ports.iter().filter_map(|wanted| wanted.port.card().map(str::to_owned)).collect();
    Dpdk::start(&Config { core, memory: Memory::choose(mebibytes, &cards)?, cards })
}

impl Wanted {
    /// Opens the port: its control end, and its queues.
    ///
    /// # Errors
    /// When there is no such device, or it refuses a setting.
    pub fn open(&self, dpdk: &Arc<Dpdk>) -> Result<(Control, Queues), Error> {
        let pool = Pool::new(dpdk, self.buffers(), self.room() as u16, None)?;
        let mut port = dpdk::Port::probe(dpdk, &self.port.device)?;
        let rx_queues = usize::from(self.port.queues);
        let tx_queues = self.workers.min(port.facts()?.tx_queues).max(1);
        let max_frame = self.mtu + HEADER[0];
        let config = PortConfig { rx_queues, tx_queues, descriptors: DESCRIPTORS, max_frame };
        let dpdk::Queues { receive, send } = port.start(&config, &pool)?;
        let pieces = Arc::new(AtomicU64::new(0));
        let lender = |queue| Lender::new(queue, Arc::clone(&pieces));
        let send: Vec<_> = send.into_iter().map(|queue| Arc::new(Mutex::new(queue))).collect();
        let takers = send.iter().cycle().take(self.workers.max(1));
        let taker = |queue: &Arc<Mutex<TxQueue>>| Taker::new(dpdk, queue, &pool);
        let queues = Queues {
            inputs: receive.into_iter().map(|queue| Box::new(lender(queue)) as Box<dyn Input>).collect(),
            outputs: takers.map(|queue| Box::new(taker(queue)) as Box<dyn Output>).collect(),
        };
        Ok((Control { port, pieces }, queues))
    }

    /// The largest MTU that its buffers have room for.
    #[must_use]
    pub fn most_mtu(&self) -> u16 {
        self.room() as u16 - HEADER[1]
    }

    /// Bytes of a buffer; no less than half a page.
    fn room(&self) -> usize {
        usize::from(self.mtu + HEADER[1]).next_multiple_of(64).max(2048)
    }

    fn buffers(&self) -> u32 {
        2 * BUFFERS * u32::from(self.port.queues) + (BUFFERS + AT_HAND) * self.workers as u32
    }
}

/// The control end of a port.
#[derive(Debug)]
pub struct Control {
    port: dpdk::Port,
    pieces: Arc<AtomicU64>,
}

impl Control {
    /// Whether the other end is there; `None` where the driver does not say.
    #[must_use]
    pub fn is_up(&self) -> Option<bool> {
        self.port.link().map(|link| link.up)
    }

    /// Frames that were lost before a worker received them or after it had sent them.
    ///
    /// # Errors
    /// When the driver does not say.
    pub fn lost(&self) -> Result<Lost, Error> {
        let stats = self.port.stats()?;
        Ok(Lost {
            missed: stats.missed,
            no_buffer: stats.no_buffer,
            errors: stats.receive_errors + self.pieces.load(Relaxed),
            unsent: stats.send_errors,
        })
    }
}

thread_local! {
    /// A worker as DPDK knows it.
    static KNOWN: RefCell<Option<RegisteredThread>> = const { RefCell::new(None) };
}

/// Makes the calling thread known to DPDK, so that it has buffers at hand; without that it has to share.
#[cold]
fn introduce(dpdk: &Arc<Dpdk>) {
    KNOWN.with_borrow_mut(|known| {
        if known.is_none() {
            *known = dpdk.register_thread().ok();
        }
    });
}

struct Lender {
    queue: RxQueue,
    burst: Burst,
    introduced: bool,
    /// Frames in several pieces, which it does not lend.
    pieces: Arc<AtomicU64>,
}

impl Lender {
    fn new(queue: RxQueue, pieces: Arc<AtomicU64>) -> Self {
        let burst = Burst::new(queue.dpdk());
        Self { queue, burst, introduced: false, pieces }
    }
}

impl Input for Lender {
    fn receive(&mut self, frames: &mut [Frame]) -> usize {
        if !self.introduced {
            introduce(self.queue.dpdk());
            self.introduced = true;
        }
        let received = self.queue.receive(&mut self.burst, frames.len());
        let mut lent = 0;
        for index in 0..received {
            if let Some((buffer, length)) = self.burst.lend(index) {
                // SAFETY: the buffer is the burst's own until `release`, and nobody else uses it.
                frames[lent] = unsafe { Frame::new(buffer.as_mut_ptr(), length as u32, buffer.len() as u32) };
                lent += 1;
            }
        }
        if lent < received {
            self.pieces.fetch_add((received - lent) as u64, Relaxed);
            if lent == 0 {
                self.release();
            }
        }
        lent
    }

    fn release(&mut self) {
        self.burst.clear();
    }
}

struct Taker {
    /// Workers share it where there are fewer than they are.
    queue: Arc<Mutex<TxQueue>>,
    pool: Pool,
    /// Buffers to be filled; those that the port refused are filled again.
    burst: Burst,
    introduced: bool,
    /// Whether it stopped at a frame that is longer than a buffer.
    stopped: bool,
}

impl Taker {
    fn new(dpdk: &Arc<Dpdk>, queue: &Arc<Mutex<TxQueue>>, pool: &Pool) -> Self {
        let burst = Burst::new(dpdk);
        Self { queue: Arc::clone(queue), pool: pool.clone(), burst, introduced: false, stopped: false }
    }

    /// Sends as many frames as a burst holds, and says how many the port took.
    fn send(&mut self, frames: &[Frame]) -> usize {
        if !self.burst.stock(&self.pool, frames.len()) && self.burst.is_empty() {
            return 0;
        }
        let count = frames.len().min(self.burst.len());
        for (index, frame) in frames[..count].iter().enumerate() {
            match self.burst.buffer(index, frame.len()) {
                Some(buffer) => buffer[..frame.len()].copy_from_slice(frame.bytes()),
                None => {
                    let sent = if index > 0 { self.send(&frames[..index]) } else { 0 };
                    // With those before it gone, nothing but its length is in the way.
                    self.stopped = sent == index;
                    return sent;
                }
            }
        }
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.send(&mut self.burst, count)
    }
}

impl Output for Taker {
    fn transmit(&mut self, frames: &[Frame]) -> usize {
        if !self.introduced {
            introduce(self.queue.lock().unwrap_or_else(PoisonError::into_inner).dpdk());
            self.introduced = true;
        }
        self.stopped = false;
        let mut taken = 0;
        for frames in frames.chunks(VECTOR) {
            let sent = self.send(frames);
            taken += sent;
            if sent < frames.len() {
                break;
            }
        }
        taken
    }

    fn stopped_at_long(&self) -> bool {
        self.stopped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One of the port `device` with a queue each way.
    fn wanted(device: &str, mtu: u16, workers: usize) -> Wanted {
        Wanted { port: Port { device: device.to_owned(), queues: 1 }, mtu, workers }
    }

    /// Sends frames of these lengths by `output`, each byte of one its number, and says how many it took.
    fn send(output: &mut dyn Output, lengths: &[usize]) -> usize {
        let mut bytes: Vec<Vec<u8>> =
            lengths.iter().zip((1..=255).cycle()).map(|(length, byte)| vec![byte; *length]).collect();
        let frame = |bytes: &mut Vec<u8>| {
            let length = bytes.len() as u32;
            // SAFETY: the bytes outlive the call, and only it reads them.
            unsafe { Frame::new(bytes.as_mut_ptr(), length, length) }
        };
        let frames: Vec<Frame> = bytes.iter_mut().map(frame).collect();
        output.transmit(&frames)
    }

    #[test]
    fn frames_are_lent_in_place_and_sent_by_copy() {
        let ports = [wanted("net_ring_lent", 9000, 1), wanted("net_null_lent,size=64", 1500, 1)];
        let dpdk = start(0, &ports).unwrap();

        // What leaves a ring arrives at it.
        let (control, mut queues) = ports[0].open(&dpdk).unwrap();
        assert_eq!((queues.inputs.len(), queues.outputs.len(), control.is_up()), (1, 1, Some(true)));
        assert_eq!(send(&mut *queues.outputs[0], &[60, 9014, 61]), 3);
        let mut frames = [Frame::NONE; VECTOR];
        assert_eq!(queues.inputs[0].receive(&mut frames), 3);
        let expected = [(60, 1), (9014, 2), (61, 3)];
        for (frame, (length, byte)) in frames.iter().zip(expected) {
            assert_eq!(frame.bytes(), vec![byte; length]);
        }
        queues.inputs[0].release();
        assert_eq!(queues.inputs[0].receive(&mut frames), 0);

        // A full ring takes what fits, as often as it is asked, and no buffer is lost by that.
        let room: usize = (0..40).map(|_| send(&mut *queues.outputs[0], &[60; VECTOR])).sum();
        assert!(room > VECTOR && room < 40 * VECTOR, "{room}");
        assert_eq!(send(&mut *queues.outputs[0], &[60; 3]), 0);
        let mut arrived = 0;
        loop {
            let count = queues.inputs[0].receive(&mut frames);
            if count == 0 {
                break;
            }
            arrived += count;
            queues.inputs[0].release();
        }
        assert_eq!(arrived, room);
        assert_eq!(
            control.lost().unwrap(),
            Lost { unsent: control.lost().unwrap().unsent, ..Lost::default() }
        );

        // A frame that is too long for a buffer is not sent, but those before it are.
        assert_eq!(send(&mut *queues.outputs[0], &[60, 20_000, 60]), 1);
        assert_eq!(queues.inputs[0].receive(&mut frames), 1);
        queues.inputs[0].release();

        // As many as there is room for, again and again.
        let (_control, mut queues) = ports[1].open(&dpdk).unwrap();
        for _ in 0..100 {
            assert_eq!(queues.inputs[0].receive(&mut frames), VECTOR);
            assert_eq!(frames[VECTOR - 1].len(), 64);
            assert_eq!(send(&mut *queues.outputs[0], &[64; 2 * VECTOR]), 2 * VECTOR);
            queues.inputs[0].release();
        }
        assert_eq!(ports[0].most_mtu(), 9002, "9,022 bytes in whole cache lines");
    }
}
