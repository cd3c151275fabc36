//! The devices of a running router: what the configuration says of one enters; its queues leave for the
//! workers, and its control end stays here, to be polled.

use std::time::Duration;

use memif::Event;

use crate::config::Device;
use crate::device::{Queues, memif as memif_device, null};
use crate::show::hardware::{self, Link};

/// A device that was opened.
pub(super) struct Opened {
    /// What users see of it, as far as that does not change.
    pub shown: hardware::Device,
    end: End,
}

/// Its control end.
enum End {
    /// It has none.
    Nothing,
    Memif {
        memif: Box<memif::Memif>,
        /// Why there is nobody at the other end.
        link: Link,
    },
}

impl Opened {
    /// Opens the device of the interface `name`, for so many workers.
    ///
    /// # Errors
    /// Those of the device.
    pub fn new(
        name: &str,
        index: usize,
        device: &Device,
        workers: usize,
    ) -> Result<(Self, Queues), memif::Error> {
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
                    ..memif::Config::new(said.role, said.socket.clone())
                };
                let (memif, queues) = memif_device::open(config)?;
                (
                    End::Memif {
                        memif: Box::new(memif),
                        link: Link::Down("nobody has connected yet".into()),
                    },
                    queues,
                )
            }
        };
        let shown = hardware::Device {
            name: name.to_owned(),
            index,
            driver: device.to_string(),
            link: Link::Up,
            placement: Vec::new(),
            transmit_queues: queues.outputs.len(),
        };
        Ok((Self { shown, end }, queues))
    }

    /// Lets peers come and go, and says what became of them.
    ///
    /// # Errors
    /// When the kernel does not let it look.
    pub fn poll(&mut self) -> Result<Option<String>, memif::Error> {
        let End::Memif { memif, link } = &mut self.end else { return Ok(None) };
        let Some(event) = memif.poll(Duration::ZERO)? else { return Ok(None) };
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
        Ok(Some(format!("{}: {said}", self.shown.name)))
    }

    /// What users see of it now.
    pub fn show(&self) -> hardware::Device {
        let link = match &self.end {
            End::Nothing => Link::Up,
            End::Memif { link, .. } => link.clone(),
        };
        hardware::Device { link, ..self.shown.clone() }
    }
}
