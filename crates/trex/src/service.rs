//! Ports in service mode: what is pushed leaves in its time, what arrives beside the engine's frames is captured.

use std::collections::VecDeque;
use std::time::Duration;

use engine::replay::Carrier;

use crate::captures::Captures;
use crate::sending::Tester;
use crate::server::Server;

/// The most packets that wait to leave by a port.
const MOST_WAITING: usize = 10_000;
/// How often ports are looked at that somebody listens to.
const LOOK: Duration = Duration::from_millis(10);
/// How often a port is read in one look.
const READS: usize = 8;

/// What is open of both ports.
#[derive(Default)]
pub struct Service {
    /// What clients capture.
    pub captures: Captures,
    ports: [Option<Box<dyn Carrier>>; 2],
    /// When each packet is due, by port.
    waiting: [VecDeque<(Duration, Vec<u8>)>; 2],
}

impl Service {
    /// Packets leave by a port from now on, with a pause between two.
    ///
    /// # Errors
    /// When too many wait.
    pub fn push(
        &mut self,
        port: usize,
        packets: Vec<Vec<u8>>,
        pause: Duration,
        now: Duration,
    ) -> Result<(), String> {
        let waiting = &mut self.waiting[port];
        if waiting.len() + packets.len() > MOST_WAITING {
            return Err(format!("{} packets of port {port} wait to leave: push fewer", waiting.len()));
        }
        let mut due = waiting.back().map_or(now, |(last, _)| now.max(*last + pause));
        for packet in packets {
            waiting.push_back((due, packet));
            due += pause;
        }
        Ok(())
    }

    /// When a port wants to be looked at, at the latest.
    pub fn next(&self, now: Duration) -> Option<Duration> {
        let due = self.waiting.iter().filter_map(|waiting| waiting.front().map(|(due, _)| *due));
        let listens = (0..2).any(|port| self.ports[port].is_some() && self.captures.listens(port));
        due.chain(listens.then_some(now + LOOK)).min()
    }
}

impl<T: Tester> Server<T> {
    /// Opens a port beside the engine, if it is not open.
    pub(crate) fn open_service(&mut self, port: usize) -> Result<(), String> {
        if self.service.ports[port].is_none() {
            self.service.ports[port] = Some(self.tester.open(port)?);
        }
        Ok(())
    }

    /// Closes a port that is no longer in service mode.
    pub(crate) fn end_service(&mut self, port: usize) {
        self.service.captures.stop_port(port);
        self.service.waiting[port].clear();
        self.service.ports[port] = None;
    }

    /// Sends what is due, and takes what has arrived.
    pub(crate) fn serve_ports(&mut self, now: Duration) {
        for port in 0..2 {
            let Service { captures, ports, waiting } = &mut self.service;
            let Some(carrier) = ports[port].as_mut() else { continue };
            let mut failed = false;
            while let Some((_, packet)) = waiting[port].pop_front_if(|(due, _)| *due <= now) {
                match carrier.send(&[&packet]) {
                    Ok(0) => {
                        // No room now: again at the next look.
                        waiting[port].push_front((now + LOOK, packet));
                        break;
                    }
                    Ok(_) => captures.take(now, port, true, &packet),
                    Err(_) => failed = true,
                }
            }
            if captures.listens(port) {
                for _ in 0..READS {
                    failed |= carrier.receive(&mut |frame| captures.take(now, port, false, frame)).is_err();
                }
            }
            if failed {
                // A port that is gone, or that is down: it is opened again when somebody wants it.
                self.end_service(port);
            }
        }
    }
}
