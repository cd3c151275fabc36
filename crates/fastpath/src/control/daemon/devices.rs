//! The devices of a running router: what the configuration says of one enters; its queues leave for the
//! workers, and its control end stays here, to be polled.

use std::time::{Duration, Instant};

use anyhow::Result;
use memif::Event;

use super::LOOK;
use super::ports::{self, Ports};
use crate::control::config::Device;
use crate::control::log::Limit;
use crate::control::show::hardware::{self, Link};
use crate::dataplane::forwarding::LINK_HEADER;
use crate::dataplane::handoff::Meter;
use crate::device::af_xdp::Shortcuts;
use crate::device::{Queues, af_xdp, memif as memif_device, null};

/// A device that was opened.
pub(super) struct Opened {
    /// What users see of it, as far as that does not change.
    pub shown: hardware::Device,
    end: End,
    /// Of which queue frames are handed over, from which worker to which, from 0.
    ways: Vec<(usize, usize, usize, Meter)>,
    /// How often is said what its peer does.
    limit: Limit,
}

/// Its control end.
enum End {
    /// It has none.
    Nothing,
    Memif {
        memif: Box<memif::Memif>,
        /// Bytes of a buffer, as configured.
        buffer: u32,
        /// Why there is nobody at the other end.
        link: Link,
    },
    AfXdp(Box<AfXdp>),
    Port(Box<ports::End>),
}

/// The control end of an interface of the kernel.
struct AfXdp {
    control: af_xdp::Control,
    /// As it was when it was looked at.
    link: Link,
    /// Whether packets could take shortcuts then, if they are to.
    shortcuts: Option<hardware::Shortcuts>,
    looked: Instant,
}

impl AfXdp {
    /// Looks after the link now and then, and says what became of it.
    fn poll(&mut self) -> Option<String> {
        // Who waits for shortcuts waits for the other end, which may just be about to take them.
        let waits = matches!(self.shortcuts, Some(hardware::Shortcuts::Off(_)));
        if self.looked.elapsed() < if waits { LOOK / 10 } else { LOOK } {
            return None;
        }
        self.looked = Instant::now();
        self.shortcuts = self.shortcuts.take().map(|_| self.control.can_have_shortcuts());
        let before = std::mem::replace(&mut self.link, self.control.link());
        (self.link != before).then(|| self.link.to_string())
    }
}

/// The frames that a memif's peer sent and no worker could take, if there are any.
fn lost(memif: &memif::Memif) -> Option<hardware::Lost> {
    let received = memif.received();
    let errors: u64 = received.iter().map(|queue| queue.malformed + queue.chained + queue.too_long).sum();
    (errors > 0).then(|| hardware::Lost { errors, ..hardware::Lost::default() })
}

impl Opened {
    /// Opens the device of the interface `name` for packets of up to `mtu` bytes and so many workers; if it is among
    /// `ports`, as one of them. If the configuration has it so, packets can take `shortcuts`.
    ///
    /// # Errors
    /// Those of the device.
    pub fn new(
        name: &str,
        index: usize,
        (device, mtu): (&Device, u16),
        workers: usize,
        ports: &Ports,
        shortcuts: Option<&Shortcuts>,
    ) -> Result<(Self, Queues)> {
        let (end, queues) = match device {
            Device::Null => (End::Nothing, null::queues(1, workers)),
            Device::Memif(said) => {
                let config = memif::Config {
                    id: said.id,
                    secret: said.secret.clone(),
                    name: name.to_owned(),
                    receive_queues: said.queues,
                    send_queues: workers as u16,
                    ring_size: said.ring,
                    buffer_size: said.buffer,
                    unsealed: said.unsealed,
                    ..memif::Config::new(said.role, said.socket.clone())
                };
                let (memif, queues) = memif_device::open(config)?;
                (
                    End::Memif {
                        memif: Box::new(memif),
                        buffer: said.buffer,
                        link: Link::Down("nobody has connected yet".into()),
                    },
                    queues,
                )
            }
            Device::AfXdp(device) => {
                let wanted = af_xdp::Wanted { device: device.clone(), mtu, workers };
                let shortcuts = shortcuts.filter(|_| device.shortcuts);
                let (control, queues) = wanted.open(index as u16, shortcuts)?;
                let (link, looked) = (control.link(), Instant::now());
                let shortcuts = shortcuts.map(|_| control.can_have_shortcuts());
                (End::AfXdp(Box::new(AfXdp { control, link, shortcuts, looked })), queues)
            }
            Device::Port(_) => {
                let (end, queues) = ports.open(name)?;
                (End::Port(Box::new(end)), queues)
            }
        };
        let shown = hardware::Device {
            name: name.to_owned(),
            index,
            driver: device.to_string(),
            copying: match &end {
                End::AfXdp(end) => Some(end.control.copying().clone()),
                End::Nothing | End::Memif { .. } | End::Port(_) => None,
            },
            shortcuts: None,
            link: Link::Up,
            placement: Vec::new(),
            transmit_queues: queues.outputs.len(),
            handoffs: Vec::new(),
            lost: None,
        };
        Ok((Self { shown, end, ways: Vec::new(), limit: Limit::new(Instant::now()) }, queues))
    }

    /// Notes that worker `from`, which polls the next queue that is placed, hands frames to worker `to`.
    pub fn hands_over(&mut self, from: usize, to: usize, meter: Meter) {
        let queue = self.shown.placement.len();
        self.ways.push((queue, from, to, meter));
    }

    /// Lets peers come and go, and says what became of them, if that is not too often.
    pub fn poll(&mut self) -> Option<String> {
        let said = self.poll_end()?;
        self.limit.say(format!("{}: {said}", self.shown.name), Instant::now())
    }

    fn poll_end(&mut self) -> Option<String> {
        let (memif, link) = match &mut self.end {
            End::Nothing => return None,
            End::AfXdp(end) => return end.poll(),
            End::Port(port) => return port.poll(),
            End::Memif { memif, link, .. } => (memif, link),
        };
        let event = match memif.poll(Duration::ZERO) {
            Ok(event) => event?,
            Err(error) => return Some(error.to_string()),
        };
        let said;
        (*link, said) = match event {
            Event::Connected(peer) => {
                let doubt =
                    if peer.sealed { "" } else { "; its memory can be taken away, which would end this" };
                (Link::Up, format!("connected with {}{doubt}", peer.name))
            }
            Event::Disconnected(reason) => {
                (Link::Down(reason.to_string()), format!("disconnected: {reason}"))
            }
            Event::Refused(reason) => (Link::Down(reason.to_string()), format!("refused: {reason}")),
        };
        Some(said)
    }

    /// Has no frames taken that are longer than `mtu` with a link header, or than its buffers are to be.
    pub fn limit_frames(&self, mtu: u16) {
        if let End::Memif { memif, buffer, .. } = &self.end {
            memif.set_longest_frame((u32::from(mtu) + LINK_HEADER as u32).max(*buffer));
        }
    }

    /// What users see of it now.
    pub fn show(&self) -> hardware::Device {
        let (link, lost) = match &self.end {
            End::Nothing => (Link::Up, None),
            End::Memif { link, memif, .. } => (link.clone(), lost(memif)),
            End::AfXdp(end) => (end.control.link(), end.control.lost()),
            End::Port(port) => (port.link(), port.lost()),
        };
        let handoff = |(queue, from, to, meter): &(usize, usize, usize, Meter)| hardware::Handoff {
            queue: *queue,
            // Workers follow the main thread, which is number 0.
            from: from + 1,
            to: to + 1,
            frames: meter.handed(),
            congestion_drops: meter.refused(),
        };
        let handoffs = self.ways.iter().map(handoff).collect();
        let shortcuts = match &self.end {
            End::AfXdp(end) => end.shortcuts.clone(),
            End::Nothing | End::Memif { .. } | End::Port(_) => None,
        };
        hardware::Device { link, lost, handoffs, shortcuts, ..self.shown.clone() }
    }

    /// The kernel's index of an interface whose packets can take shortcuts.
    pub fn shortcuts(&self) -> Option<u32> {
        match &self.end {
            End::AfXdp(end) if end.shortcuts == Some(hardware::Shortcuts::On) => Some(end.control.index()),
            _ => None,
        }
    }

    /// The largest MTU that it can carry.
    pub fn most_mtu(&self) -> u16 {
        match &self.end {
            End::Nothing | End::Memif { .. } => u16::MAX,
            End::AfXdp(end) => end.control.most_mtu(),
            End::Port(port) => port.most_mtu(),
        }
    }
}
