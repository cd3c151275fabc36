//! The engine behind the ports: plans enter, and what was sent and came back since the start leaves.
//!
//! An engine serves one frame table. When another is to be sent, the old engine is drained and its counts are
//! kept, so that counters go on.

use std::any::Any;
use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use engine::replay::Carrier;
use engine::{Engine, Interval, Load, Others, Part};
use traffic::FrameTable;
use traffic::timeline::Stretch;
use wire::MacAddress;

use crate::groups::{Groups, Key, Totals};
use crate::plan::{Ranges, Shape};
use crate::statistics::Counters;

/// How long the last frames of an engine may take to come back.
const DRAIN: Duration = Duration::from_millis(100);
/// Intervals whose counts may still change.
const OPEN: usize = 256;

/// What is between the ports, and what sends.
pub trait Tester {
    /// The two ports.
    fn ports(&self) -> &[PortFacts; 2];

    /// An idle engine that sends `table`.
    ///
    /// # Errors
    /// Why there is none.
    fn start(&mut self, table: &FrameTable) -> Result<Box<dyn Engine>, String>;

    /// A port beside the engine, for single frames as they are, both ways.
    ///
    /// # Errors
    /// Why there is none.
    fn open(&mut self, port: usize) -> Result<Box<dyn Carrier>, String> {
        Err(format!("port {port} has no room for single packets beside its streams"))
    }

    /// Whether ports can take frames for others.
    fn can_take_others(&self) -> bool {
        false
    }

    /// Has a port take frames for `others` until what it returns is dropped.
    ///
    /// # Errors
    /// Why it cannot.
    fn take_others(&mut self, port: usize, others: Others) -> Result<Box<dyn Any>, String> {
        let _ = others;
        Err(format!("port {port} takes frames for its own address only"))
    }
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

/// The engine that sends now, if any, and what those before it counted.
#[derive(Default)]
pub struct Sending {
    engine: Option<Running>,
    before: [Counters; 2],
    /// What is counted apart.
    pub groups: Groups,
}

struct Running {
    engine: Box<dyn Engine>,
    shape: Shape,
    ranges: Ranges,
    /// The group of each stream that is counted apart, and the port that it leaves by.
    groups: Vec<(Key, usize)>,
    /// When it was told to send nothing, by its own clock.
    idle_since: Option<Duration>,
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
        (table, ranges): (FrameTable, Ranges),
        groups: &[(u32, usize)],
    ) -> Result<Duration, String> {
        let begun = Instant::now();
        self.end()?;
        let engine = tester.start(&table)?;
        let groups = groups.iter().map(|(id, port)| (self.groups.key(*id), *port)).collect();
        let running = Running { engine, shape, ranges, groups, idle_since: None, open: VecDeque::new() };
        self.engine = Some(running);
        Ok(begun.elapsed())
    }

    /// Ends the engine when its last frames are back; its counts stay.
    pub fn end(&mut self) -> Result<(), String> {
        let Some(mut running) = self.engine.take() else { return Ok(()) };
        let drained = running.begin(&mut self.before, Load::Idle).and_then(|()| {
            // Told to stop meanwhile, it is counted all the same.
            let _ = running.engine.wait(DRAIN);
            running.settle(&mut self.before, 0)?;
            self.groups.keep(&running.groups(true)?);
            Ok(())
        });
        drained.map_err(|error| error.to_string())
    }

    /// Drops an engine that has failed; what can still be counted is.
    pub fn abandon(&mut self) {
        if let Some(mut running) = self.engine.take() {
            let _ = running.settle(&mut self.before, 0);
            if let Ok(counted) = running.groups(true) {
                self.groups.keep(&counted);
            }
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

    /// The time of the engine's clock.
    pub fn now(&self) -> Duration {
        self.engine.as_ref().map_or(Duration::ZERO, |running| running.engine.now())
    }

    /// Announces what is sent from a time to come of the engine's clock.
    pub fn begin_stretch(&mut self, stretch: &Stretch, at: Duration) -> Result<(), String> {
        let Some(running) = &mut self.engine else { return Err("nothing is ready to be sent".to_owned()) };
        let part = running.ranges.part(stretch).ok_or_else(|| {
            "streams send at the same time that did not in the first 10,000 changes: use lengths that have more in \
             common"
                .to_owned()
        })?;
        running.begin_part(&mut self.before, &part, at).map_err(|error| error.to_string())
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

    /// What was sent and came back of each group since it was made.
    pub fn group_totals(&mut self) -> Result<BTreeMap<u32, Totals>, String> {
        let counted = match &mut self.engine {
            Some(running) => {
                let all_are_back = running
                    .idle_since
                    .is_some_and(|since| running.engine.now().saturating_sub(since) >= DRAIN);
                running.groups(all_are_back).map_err(|error| error.to_string())?
            }
            None => BTreeMap::new(),
        };
        Ok(self.groups.totals(&counted))
    }
}

impl Running {
    fn begin(&mut self, before: &mut [Counters; 2], load: Load) -> Result<(), engine::Error> {
        self.settle(before, OPEN)?;
        let interval = self.engine.begin(load)?;
        self.idle_since = (load == Load::Idle).then(|| self.idle_since.unwrap_or(self.engine.now()));
        self.open.push_back(interval);
        Ok(())
    }

    fn begin_part(
        &mut self,
        before: &mut [Counters; 2],
        part: &Part,
        at: Duration,
    ) -> Result<(), engine::Error> {
        self.settle(before, OPEN)?;
        let interval = self.engine.begin_part(part, at)?;
        self.idle_since = None;
        self.open.push_back(interval);
        Ok(())
    }

    /// What its streams of each group counted. Where `all_are_back`, what has not come back is lost.
    fn groups(&mut self, all_are_back: bool) -> Result<BTreeMap<Key, Totals>, engine::Error> {
        let mut groups: BTreeMap<Key, Totals> = BTreeMap::new();
        if self.groups.is_empty() {
            return Ok(groups);
        }
        let streams = self.engine.streams()?;
        for (number, (key, port)) in self.groups.iter().enumerate() {
            let stream = streams.get(*port).and_then(|streams| streams.get(number));
            let stream = stream.ok_or_else(|| {
                engine::Error::Refused("this engine does not count streams apart: choose another".to_owned())
            })?;
            groups.entry(*key).or_default().add_stream(*port, stream, all_are_back);
        }
        Ok(groups)
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
