//! Packet capture: a request enters; a file leaves, which the main thread writes from what workers copied.

use anyhow::{Context, Result, bail};

use super::State;
use crate::control::capture::{Capturing, Pcap, Start};
use crate::dataplane::capture::{Capture, Wanted};
use crate::dataplane::forwarding::Interface;

impl State {
    /// Begins a capture, ends it, or says how it goes.
    ///
    /// # Errors
    /// When one goes on already, or there is no such interface, or the file cannot be made.
    pub(super) fn pcap(&mut self, pcap: Pcap) -> Result<String> {
        match pcap {
            Pcap::Start(start) => self.start_capture(&start),
            Pcap::Off => {
                let capturing =
                    self.capturing.take().context("no packets are captured: begin with pcap trace rx tx")?;
                self.router.traces().capture(None);
                capturing.end()
            }
            Pcap::Status => Ok(self
                .capturing
                .as_ref()
                .map_or_else(|| "no packets are captured".to_owned(), |it| it.text())),
        }
    }

    fn start_capture(&mut self, start: &Start) -> Result<String> {
        if let Some(capturing) = &self.capturing {
            bail!("{}: end that first (pcap trace off)", capturing.text());
        }
        let interfaces = self.wanted(start.interface.as_deref())?;
        let names: Vec<String> =
            self.router.forwarding().interfaces.iter().map(|interface| interface.name.clone()).collect();
        let wanted =
            Wanted { received: start.received, sent: start.sent, interfaces, bytes: start.bytes as usize };
        let (capture, copies) = Capture::new(wanted);
        let capturing = Capturing::start(start, &names, copies)?;
        let said = capturing.text();
        self.capturing = Some(capturing);
        self.router.traces().capture(Some(capture));
        Ok(said)
    }

    /// By number: whether an interface's packets are wanted. With an interface go its VLANs; all are wanted if none is named.
    fn wanted(&self, name: Option<&str>) -> Result<Vec<bool>> {
        let interfaces = &self.router.forwarding().interfaces;
        let Some(name) = name else { return Ok(vec![true; interfaces.len()]) };
        let number = usize::from(self.number(name)?);
        let whole = interfaces.get(number).filter(|interface| interface.vlan.is_none());
        let goes_with = |interface: &Interface| whole.is_some_and(|whole| whole.device == interface.device);
        let of = |(at, interface): (usize, &Interface)| at == number || goes_with(interface);
        Ok(interfaces.iter().enumerate().map(of).collect())
    }

    /// Writes what workers have copied; ends the capture that has all it wanted, or cannot be written.
    pub(super) fn write_captured(&mut self, log: &dyn Fn(&str)) {
        let Some(capturing) = &mut self.capturing else { return };
        let goes_on = capturing.write();
        if matches!(goes_on, Ok(true)) {
            return;
        }
        self.router.traces().capture(None);
        let ended = goes_on.and_then(|_| self.capturing.take().map_or(Ok(String::new()), Capturing::end));
        self.capturing = None;
        match ended {
            Ok(said) => log(&said),
            Err(error) => log(&format!("{error:#}")),
        }
    }
}
