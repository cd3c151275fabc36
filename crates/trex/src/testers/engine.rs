//! The engine over TRex servers: loads enter, counts leave.
//!
//! A load is sent for a time that is known when it starts: the server ends it by itself, whatever becomes of this
//! client. Then the counters are read until they are quiet. So an interval has exactly the frames that left in it and
//! came back, and between two intervals nothing is sent for a moment. That moment is no time to [`Engine::now`].

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use engine::{Capabilities, Counts, Engine, Error, Interval, Load, Totals};
use serde_json::{Value, json};
use traffic::FrameTable;

use super::apart::Apart;
use super::client::TesterError;
use super::server::{PortCounters, Server};
use super::streams;

/// Intervals whose counts can be read.
const KEPT: usize = 1_000;
/// The largest frame.
const MAX_FRAME: usize = 9_216;
/// How often it is looked whether the user stops, while traffic flows.
const LOOK: Duration = Duration::from_millis(50);
/// How often servers hear of this client meanwhile.
const SIGN_OF_LIFE: Duration = Duration::from_secs(1);
/// How often a server is asked whether it has ended.
const ASK: Duration = Duration::from_millis(5);
/// A server that has not ended so long after its time has a wrong clock, or hangs.
const OVERTIME: Duration = Duration::from_secs(10);
/// How long frames may come back after the traffic has ended.
const LONGEST_SETTLING: Duration = Duration::from_secs(10);
/// How often a clock is read at the beginning.
const CLOCK_READINGS: usize = 5;
/// What it does not see.
const UNSEEN: [&str; 1] = ["the testers' servers tell no latency of frames that they do not count apart"];

/// The time, and how it passes.
pub trait Clock {
    /// Time since any fixed moment.
    fn now(&self) -> Duration;
    /// Lets time pass.
    fn sleep(&self, duration: Duration);
}

/// An engine that consists of TRex stateless servers.
pub struct TesterEngine {
    servers: Vec<Server>,
    clock: Box<dyn Clock>,
    stop: Arc<AtomicBool>,
    /// Whether the user's wish was told.
    told: bool,
    directions: usize,
    /// By direction: what is sent without end.
    streams: Vec<Vec<Value>>,
    /// The frames of each burst that the servers' streams are now; `None` of those without end.
    bursts: Option<Vec<u64>>,
    /// Whether the burst of this interval was sent.
    is_sent: bool,
    /// Time under load and in between, without the moments that servers take to begin and end.
    now: Duration,
    load: Load,
    intervals: VecDeque<Vec<Counts>>,
    /// The number of the first of them.
    oldest: Interval,
    /// Whose frames come back now.
    charged: Option<Interval>,
    /// What each server's ports had counted when they were read last.
    read: Vec<[PortCounters; 2]>,
    totals: Vec<Totals>,
    apart: Rc<RefCell<Apart>>,
    failed: Option<TesterError>,
    /// When servers heard of this client last.
    heard: Duration,
}

impl TesterEngine {
    /// An idle engine that sends `table` by all of `servers`, each its share. `apart` learns how far they are apart;
    /// `stop` is set when the user wants to end.
    ///
    /// # Errors
    /// What a server refuses, or what of the table streams cannot say.
    pub fn start(
        mut servers: Vec<Server>,
        table: &FrameTable,
        clock: Box<dyn Clock>,
        stop: Arc<AtomicBool>,
        apart: &Rc<RefCell<Apart>>,
    ) -> Result<Self, Error> {
        let directions = table.directions();
        let streams: Result<Vec<Vec<Value>>, String> =
            (0..directions as u8).map(|direction| streams::streams(table, direction)).collect();
        let streams = streams.map_err(Error::Refused)?;
        *apart.borrow_mut() = Apart::new(servers.iter().map(|server| server.name().to_owned()).collect());
        for (number, server) in servers.iter_mut().enumerate() {
            server.take().and_then(|()| server.set_streams(&streams)).map_err(failed)?;
            for _ in 0..CLOCK_READINGS {
                if let Some(reading) = server.clock(|| clock.now()).map_err(failed)? {
                    apart.borrow_mut().read(number, reading);
                }
            }
        }
        let heard = clock.now();
        let mut engine = Self {
            servers,
            clock,
            stop,
            told: false,
            directions,
            streams,
            bursts: None,
            is_sent: false,
            now: Duration::ZERO,
            load: Load::Idle,
            intervals: VecDeque::new(),
            oldest: 0,
            charged: None,
            read: Vec::new(),
            totals: vec![Totals::default(); directions],
            apart: Rc::clone(apart),
            failed: None,
            heard,
        };
        engine.read = engine.counters().map_err(failed)?;
        Ok(engine)
    }

    /// What all ports have counted.
    fn counters(&mut self) -> Result<Vec<[PortCounters; 2]>, TesterError> {
        for server in &mut self.servers {
            server.ask_for_counters()?;
        }
        self.servers.iter_mut().map(Server::counters).collect()
    }

    /// Reads all counters; whether any has changed.
    fn follow(&mut self) -> Result<bool, TesterError> {
        let now = self.counters()?;
        let mut changed = false;
        for (server, (after, before)) in now.iter().zip(&self.read).enumerate() {
            for direction in 0..self.directions {
                let (from, to) = (direction, 1 - direction);
                let since = |of: fn(&PortCounters) -> u64, port: usize| {
                    of(&after[port]).checked_sub(of(&before[port])).ok_or_else(|| {
                        self.servers[server]
                            .error("a counter went back: the server began anew, or its counters were cleared")
                    })
                };
                let sent = since(|it| it.sent, from)?;
                let sent_bytes = since(|it| it.sent_bytes, from)?;
                let unsent = since(|it| it.unsent, from)?;
                let received = since(|it| it.received, to)?;
                let received_bytes = since(|it| it.received_bytes, to)?;
                changed |= sent + unsent + received > 0;
                // What comes before anything was sent is none of the tester's.
                let Some(charged) = self.charged else { continue };
                let totals = &mut self.totals[direction];
                totals.offered += sent;
                totals.unsent += unsent;
                totals.forwarded += received;
                let counts =
                    charged.checked_sub(self.oldest).and_then(|at| self.intervals.get_mut(at as usize));
                if let Some(counts) = counts.and_then(|counts| counts.get_mut(direction)) {
                    counts.offered += sent;
                    counts.offered_bytes += sent_bytes;
                    counts.unsent += unsent;
                    counts.forwarded += received;
                    counts.forwarded_bytes += received_bytes;
                }
            }
        }
        self.read = now;
        Ok(changed)
    }

    /// Reads counters until they are quiet.
    fn settle(&mut self) -> Result<(), TesterError> {
        let quiet = self.servers.iter().map(Server::quiet).max().unwrap_or_default();
        let begun = self.clock.now();
        self.follow()?;
        loop {
            self.clock.sleep(quiet);
            if !self.follow()? || self.clock.now().saturating_sub(begun) > LONGEST_SETTLING {
                return Ok(());
            }
        }
    }

    /// Sends the load for `duration`; says how long it really was, and whether the user interrupted it.
    fn send(&mut self, duration: Duration) -> Result<(Duration, bool), TesterError> {
        let orders = self.orders(duration);
        // What came since belongs to the load before.
        self.follow()?;
        self.charged = Some(self.oldest + self.intervals.len() as u64 - 1);
        for (server, order) in self.servers.iter_mut().zip(&orders) {
            if let Some((multiplier, duration)) = order {
                server.ask_to_start(self.directions, multiplier, *duration)?;
            }
        }
        let mut told = Vec::new();
        for (server, _) in self.servers.iter_mut().zip(&orders).filter(|(_, order)| order.is_some()) {
            told.push(server.started()?);
        }
        if told.len() == self.servers.len() {
            self.apart.borrow_mut().started(&told);
        }
        let begun = self.clock.now();
        let elapsed = self.pass(duration)?;
        if let Some(elapsed) = elapsed {
            self.servers.iter_mut().try_for_each(Server::stop)?;
            self.settle()?;
            return Ok((elapsed, true));
        }
        for number in 0..self.servers.len() {
            while self.servers[number].is_sending()? {
                if self.clock.now().saturating_sub(begun) > duration.saturating_add(OVERTIME) {
                    let late =
                        format!("it still sends {OVERTIME:?} after the end that it was given: stop it there");
                    return Err(self.servers[number].error(late));
                }
                self.clock.sleep(ASK);
            }
        }
        self.settle()?;
        for (number, server) in self.servers.iter_mut().enumerate() {
            if let Some(reading) = server.clock(|| self.clock.now())? {
                self.apart.borrow_mut().read(number, reading);
            }
        }
        Ok((duration, false))
    }

    /// What each server is told to send for `duration`, and how long; nothing where its share of a burst is none.
    fn orders(&self, duration: Duration) -> Vec<Option<(Value, Option<Duration>)>> {
        let count = self.servers.len();
        let order = |number: usize| match (self.load, &self.bursts) {
            (Load::Burst { pps, frames }, Some(bursts)) => {
                let share = bursts.get(number).copied().filter(|share| *share > 0)?;
                // All servers' bursts end together.
                let pps = pps * share as f64 / frames as f64;
                Some((json!({"type": "pps", "value": pps, "op": "abs"}), None))
            }
            (Load::Rate(pps), _) => {
                Some((json!({"type": "pps", "value": pps / count as f64, "op": "abs"}), Some(duration)))
            }
            _ => Some((json!({"type": "percentage", "value": 100.0, "op": "abs"}), Some(duration))),
        };
        (0..count).map(order).collect()
    }

    /// Gives the servers the streams that the load needs, where they have others.
    fn change_streams(&mut self) -> Result<(), TesterError> {
        let count = self.servers.len() as u64;
        let wanted = match self.load {
            Load::Burst { frames, .. } => {
                let share = |number: u64| frames / count + u64::from(number < frames % count);
                Some((0..count).map(share).collect::<Vec<u64>>())
            }
            _ => None,
        };
        if wanted == self.bursts {
            return Ok(());
        }
        for (number, server) in self.servers.iter_mut().enumerate() {
            let bursts = wanted.as_ref().and_then(|shares| shares.get(number)).map(|frames| {
                if *frames == 0 {
                    return Ok(Vec::new());
                }
                let each = self.streams.iter().map(|streams| streams::bursts(streams, *frames));
                each.collect::<Result<Vec<_>, String>>()
            });
            let bursts = bursts.transpose().map_err(|reason| server.error(reason))?;
            server.set_streams(bursts.as_deref().unwrap_or(&self.streams))?;
        }
        self.bursts = wanted;
        Ok(())
    }

    /// Lets `duration` pass, in which servers hear of this client; less, and how much, where the user wants to end.
    fn pass(&mut self, duration: Duration) -> Result<Option<Duration>, TesterError> {
        let begun = self.clock.now();
        loop {
            let now = self.clock.now();
            let elapsed = now.saturating_sub(begun);
            if !self.told && self.stop.load(Ordering::Relaxed) {
                return Ok(Some(elapsed.min(duration)));
            }
            if elapsed >= duration {
                return Ok(None);
            }
            if now.saturating_sub(self.heard) >= SIGN_OF_LIFE {
                self.heard = now;
                self.servers.iter_mut().try_for_each(Server::show_life)?;
            }
            self.clock.sleep(LOOK.min(duration - elapsed));
        }
    }

    /// One wait; whether the user interrupted it.
    fn let_pass(&mut self, duration: Duration) -> Result<bool, TesterError> {
        let pps = match self.load {
            Load::Rate(pps) if pps > 0.0 => Some(pps),
            Load::Max => None,
            Load::Burst { pps, frames } if !self.is_sent && frames > 0 => Some(pps),
            Load::Idle | Load::Rate(_) | Load::Burst { .. } => {
                let interrupted = self.pass(duration)?;
                self.now += interrupted.unwrap_or(duration);
                self.follow()?;
                return Ok(interrupted.is_some());
            }
        };
        if duration.is_zero() {
            return Ok(self.pass(duration)?.is_some());
        }
        self.change_streams()?;
        self.is_sent = true;
        let (elapsed, interrupted) = self.send(duration)?;
        self.now += elapsed;
        for counts in self.intervals.back_mut().into_iter().flatten() {
            match pps {
                // It was intended from the start.
                Some(_) if matches!(self.load, Load::Burst { .. }) => {}
                Some(pps) => counts.intended += pps * elapsed.as_secs_f64(),
                None => counts.intended = counts.offered as f64,
            }
        }
        Ok(interrupted)
    }
}

fn failed(error: TesterError) -> Error {
    Error::Failed(error.to_string())
}

impl Engine for TesterEngine {
    fn capabilities(&self) -> Capabilities {
        Capabilities { name: "trex", max_frame_size: MAX_FRAME, unseen: &UNSEEN }
    }

    fn directions(&self) -> usize {
        self.directions
    }

    fn begin(&mut self, load: Load) -> Result<Interval, Error> {
        if let Some(error) = &self.failed {
            return Err(failed(error.clone()));
        }
        match load {
            Load::Rate(pps) | Load::Burst { pps, .. } if !(pps.is_finite() && pps >= 0.0) => {
                return Err(Error::Refused(format!(
                    "a load of {pps} frames a second cannot be sent: give a rate"
                )));
            }
            Load::Burst { frames, .. } => {
                let shares = self.servers.len() as u64;
                for share in [frames / shares, frames.div_ceil(shares)] {
                    let burst = |streams: &Vec<Value>| streams::bursts(streams, share).map(drop);
                    self.streams.iter().try_for_each(burst).map_err(Error::Refused)?;
                }
            }
            Load::Idle | Load::Rate(_) | Load::Max => {}
        }
        self.load = load;
        self.is_sent = false;
        let intended = if let Load::Burst { frames, .. } = load { frames as f64 } else { 0.0 };
        self.intervals.push_back(vec![Counts { intended, ..Counts::default() }; self.directions]);
        if self.intervals.len() > KEPT {
            self.intervals.pop_front();
            self.oldest += 1;
        }
        Ok(self.oldest + self.intervals.len() as u64 - 1)
    }

    fn wait(&mut self, duration: Duration) -> Result<(), Error> {
        if let Some(error) = &self.failed {
            return Err(failed(error.clone()));
        }
        match self.let_pass(duration) {
            Ok(false) => Ok(()),
            Ok(true) => {
                self.told = true;
                Err(Error::Interrupted)
            }
            Err(error) => {
                // The others must not go on without it.
                self.servers.iter_mut().for_each(Server::leave);
                self.failed = Some(error.clone());
                Err(failed(error))
            }
        }
    }

    fn now(&self) -> Duration {
        self.now
    }

    fn counts(&mut self, interval: Interval) -> Result<Vec<Counts>, Error> {
        let counts = interval.checked_sub(self.oldest).and_then(|at| self.intervals.get(at as usize));
        counts.cloned().ok_or_else(|| {
            Error::Refused(format!(
                "interval {interval} cannot be read: read one of the last {KEPT} that have begun"
            ))
        })
    }

    fn totals(&mut self) -> Result<Vec<Totals>, Error> {
        Ok(self.totals.clone())
    }
}

#[cfg(test)]
mod tests;
