//! Shortcuts of the running router: what the router has of them enters; the kernel forwards by them, and what it counted
//! is among the counters of interfaces.

use std::sync::Arc;

use anyhow::{Context, Result};

use super::devices::Opened;
use crate::control::config::{Attachment, Config, Device};
use crate::control::router::Router;
use crate::dataplane::counters::{Counter, Counters};
use crate::device::af_xdp::{self, Taken};

/// No edition of a router: nothing takes a shortcut.
const NONE: u64 = 0;

/// The shortcuts, if packets of any device are to take some.
#[derive(Default)]
pub(super) struct Shortcuts {
    kernel: Option<af_xdp::Shortcuts>,
    /// The edition that the kernel was told.
    edition: u64,
    /// What took them.
    counters: Arc<Counters>,
}

impl Shortcuts {
    /// Those that `config` wants.
    ///
    /// # Errors
    /// When the kernel has none.
    pub fn of(config: &Config) -> Result<Self> {
        let wanted = config.interfaces.iter().any(|interface| {
            matches!(&interface.attachment, Attachment::Device(Device::AfXdp(device)) if device.shortcuts)
        });
        let kernel = wanted.then(af_xdp::Shortcuts::new).transpose();
        Ok(Self { kernel: kernel.context("cannot have shortcuts")?, ..Self::default() })
    }

    /// Where the kernel has them.
    pub fn kernel(&self) -> Option<&af_xdp::Shortcuts> {
        self.kernel.as_ref()
    }

    /// What took them.
    pub fn counters(&self) -> Option<Arc<Counters>> {
        self.kernel.as_ref().map(|_| Arc::clone(&self.counters))
    }

    /// Has packets take the shortcuts that the router has now, and no others; none at all while workers are to see every
    /// packet.
    ///
    /// # Errors
    /// When the kernel refuses; nothing takes shortcuts any more where it can still be told so.
    pub fn follow(&mut self, router: &mut Router, devices: &[Opened]) -> Result<()> {
        let Some(kernel) = &self.kernel else { return Ok(()) };
        for (number, device) in (0..).zip(devices) {
            router.set_shortcuts(number, device.shortcuts().is_some());
        }
        let found = router.take_shortcuts();
        let edition = if router.traces().on() { NONE } else { router.edition() };
        if edition != self.edition {
            kernel.set_edition(edition)?;
            self.edition = edition;
        }
        for shortcut in found.iter().filter(|_| edition != NONE) {
            let device = devices.get(usize::from(shortcut.to));
            let Some(interface) = device.and_then(Opened::shortcuts) else { continue };
            kernel.add(shortcut, interface, edition)?;
        }
        Ok(())
    }

    /// Has no packet take one until the router is followed again.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn pause(&mut self) -> Result<()> {
        if let Some(kernel) = &self.kernel {
            kernel.set_edition(NONE)?;
            self.edition = NONE;
        }
        Ok(())
    }

    /// Counts what took shortcuts since the last time.
    pub fn count(&self, router: &Router) {
        let Some(kernel) = &self.kernel else { return };
        for (number, device) in (0..).zip(&router.forwarding().devices) {
            // What cannot be read now is counted later.
            let Ok(Taken { received, received_bytes, sent, sent_bytes }) = kernel.taken(number) else {
                continue;
            };
            let counters = self.counters.interface(device.untagged);
            let count = |counter: &Counter, now: u64| counter.add(now.wrapping_sub(counter.get()));
            count(&counters.received, received);
            count(&counters.received_bytes, received_bytes);
            count(&counters.sent, sent);
            count(&counters.sent_bytes, sent_bytes);
        }
    }
}
