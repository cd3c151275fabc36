//! The engine behind the ports: plans enter, and what was sent and came back since the start leaves.
//!
//! An engine serves one frame table. When another is to be sent, the old engine is drained and its counts are
//! kept, so that counters go on.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use engine::{Engine, Interval, Load};
use traffic::FrameTable;
use wire::MacAddress;

use crate::plan::Shape;

/// How long the last frames of an engine may take to come back.
const DRAIN: Duration = Duration::from_millis(100);
/// Intervals whose counts may still change.
const OPEN: usize = 128;

/// What is between the ports, and what sends.
pub trait Tester {
    /// The two ports.
    fn ports(&self) -> &[PortFacts; 2];

    /// An idle engine that sends `table`.
    ///
    /// # Errors
    /// Why there is none.
    fn start(&mut self, table: &FrameTable) -> Result<Box<dyn Engine>, String>;
}

/// What is known of a port.
#[derive(Clone, Debug, PartialEq)]
pub struct PortFacts {
    /// Its name.
    pub name: String,
    /// Its driver, or what it is.
    pub driver: String,
    /// Its own address.
    pub source: MacAddress,
    /// Where its frames go.
    pub destination: MacAddress,
    /// Its line rate (L1), in bits a second.
    pub line_rate_bps: f64,
}

/// What a port has sent and received since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Frames that left.
    pub sent: u64,
    /// Bytes of those, FCS included.
    pub sent_bytes: u64,
    /// Frames that were due and did not leave.
    pub unsent: u64,
    /// Frames of the other port that arrived.
    pub received: u64,
    /// Bytes of those, FCS included.
    pub received_bytes: u64,
}

/// The engine that sends now, if any, and what those before it counted.
#[derive(Default)]
pub struct Sending {
    engine: Option<Running>,
    before: [Counters; 2],
}

struct Running {
    engine: Box<dyn Engine>,
    shape: Shape,
    /// Whose counts may still change.
    open: VecDeque<Interval>,
}

impl Sending {
    /// Whether the engine sends what has this shape.
    pub fn has(&self, shape: &Shape) -> bool {
        self.engine.as_ref().is_some_and(|running| running.shape == *shape)
    }

    /// Sends `table` from now on, at no rate yet; how long that took.
    pub fn replace(
        &mut self,
        tester: &mut impl Tester,
        shape: Shape,
        table: &FrameTable,
    ) -> Result<Duration, String> {
        let begun = Instant::now();
        self.end()?;
        let engine = tester.start(table)?;
        self.engine = Some(Running { engine, shape, open: VecDeque::new() });
        Ok(begun.elapsed())
    }

    /// Ends the engine when its last frames are back; its counts stay.
    pub fn end(&mut self) -> Result<(), String> {
        let Some(mut running) = self.engine.take() else { return Ok(()) };
        let drained = running.begin(&mut self.before, Load::Idle).and_then(|()| {
            // Told to stop meanwhile, it is counted all the same.
            let _ = running.engine.wait(DRAIN);
            running.settle(&mut self.before, 0)
        });
        drained.map_err(|error| error.to_string())
    }

    /// Drops an engine that has failed; what can still be counted is.
    pub fn abandon(&mut self) {
        if let Some(mut running) = self.engine.take() {
            let _ = running.settle(&mut self.before, 0);
        }
    }

    /// The load from now on.
    pub fn begin(&mut self, load: Load) -> Result<(), String> {
        match &mut self.engine {
            Some(running) => running.begin(&mut self.before, load).map_err(|error| error.to_string()),
            None if load == Load::Idle => Ok(()),
            None => Err("nothing is ready to be sent".to_owned()),
        }
    }

    /// Whether all goes well.
    pub fn check(&mut self) -> Result<(), String> {
        match &mut self.engine {
            Some(running) => running.engine.wait(Duration::ZERO).map_err(|error| error.to_string()),
            None => Ok(()),
        }
    }

    /// What both ports have sent and received since the start.
    pub fn counters(&mut self) -> Result<[Counters; 2], String> {
        let mut counters = self.before;
        if let Some(running) = &mut self.engine {
            for interval in running.open.clone() {
                running.add(&mut counters, interval).map_err(|error| error.to_string())?;
            }
        }
        Ok(counters)
    }
}

impl Running {
    fn begin(&mut self, before: &mut [Counters; 2], load: Load) -> Result<(), engine::Error> {
        self.settle(before, OPEN)?;
        let interval = self.engine.begin(load)?;
        self.open.push_back(interval);
        Ok(())
    }

    /// Adds up the oldest intervals, until so many are left.
    fn settle(&mut self, before: &mut [Counters; 2], left: usize) -> Result<(), engine::Error> {
        while self.open.len() > left {
            let Some(interval) = self.open.pop_front() else { break };
            self.add(before, interval)?;
        }
        Ok(())
    }

    fn add(&mut self, counters: &mut [Counters; 2], interval: Interval) -> Result<(), engine::Error> {
        let counts = self.engine.counts(interval)?;
        for (direction, counts) in counts.iter().enumerate().take(2) {
            let from = &mut counters[direction];
            from.sent += counts.offered;
            from.sent_bytes += counts.offered_bytes;
            from.unsent += counts.unsent;
            let to = &mut counters[1 - direction];
            to.received += counts.forwarded;
            to.received_bytes += counts.forwarded_bytes;
        }
        Ok(())
    }
}
