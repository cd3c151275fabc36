//! What the nodes of a device did that is a graph of them: a run's phases enter; their counters before the first
//! measured load and after the last one leave, with the time between the two.

use std::time::Instant;

use anyhow::Result;
use results::record::{Node, NodeRuntimes, Phase, Record};

use crate::testbed::Testbed;

/// The two readings.
pub struct NodeMeter {
    before: Result<Reading>,
    after: Option<Result<Reading>>,
    /// The phase that goes on; none before the first that is measured.
    measured: Option<Phase>,
}

struct Reading {
    at: Instant,
    nodes: NodeRuntimes,
}

impl NodeMeter {
    /// Counts from now on, until a measured phase begins.
    pub fn new(testbed: &Testbed) -> Self {
        Self { before: read(testbed), after: None, measured: None }
    }

    /// A phase begins.
    pub fn phase(&mut self, phase: Phase, testbed: &Testbed) {
        if phase == Phase::WarmUp {
            return;
        }
        if self.measured.is_none() {
            self.before = read(testbed);
        }
        self.measured = Some(phase);
    }

    /// A load has ended. Trials are short and many: of these it is enough to know when all have ended.
    pub fn drain(&mut self, testbed: &Testbed) {
        if matches!(self.measured, Some(Phase::Ramp | Phase::Hold)) {
            self.after = Some(read(testbed));
        }
    }

    /// Writes into `record` what they did.
    pub fn finish(self, testbed: &Testbed, record: &mut Record) {
        let after = self.after.unwrap_or_else(|| read(testbed));
        match self.before.and_then(|before| Ok((before, after?))) {
            Ok((before, after)) => {
                record.nodes = Node::since(&before.nodes, after.nodes);
                let seconds = after.at.duration_since(before.at).as_secs_f64();
                record.nodes_s = (!record.nodes.is_empty()).then_some(seconds);
            }
            Err(error) => record.notes.push(format!("what the device's nodes did is not known: {error}")),
        }
    }
}

fn read(testbed: &Testbed) -> Result<Reading> {
    let nodes = testbed.nodes()?;
    Ok(Reading { at: Instant::now(), nodes })
}
