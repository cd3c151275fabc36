//! What the machine did beside a run: a monitor enters, its findings leave in words, for each
//! stretch and for the whole run.

use std::collections::BTreeMap;
use std::mem;

use engine::{Engine, Headway, Load, headway};
use monitor::{Bounds, Conditions, Disturbance, Mark, Monitor};
use trial::{Interruption, Noise};

use crate::Testbed;
use crate::kept::Kept;

/// Watches the cores of a run, stretch by stretch.
pub struct Machine {
    monitor: Monitor,
    mark: Mark,
    bounds: Bounds,
    headway: Headway,
    /// What that had counted when the stretch began.
    counted: headway::Reading,
    senders: Vec<usize>,
    dut_worker: Option<usize>,
    /// The cores in use, in words.
    cores: String,
    /// The worst of each kind on each core.
    worst: Vec<Disturbance>,
}

impl Machine {
    /// Watches from now on. The `engine` and the device must be running, since what is not known
    /// by now counts as other work. What is within `bounds` is no disturbance.
    pub fn watch(testbed: &Testbed, engine: &dyn Engine, bounds: Bounds) -> lab::Result<Self> {
        let monitor = testbed.monitor()?;
        let cores = testbed.cores_in_words();
        monitor.expect_handovers(&Kept::open().usual_handovers(&cores));
        let mark = monitor.mark();
        let (senders, dut_worker) = (testbed.senders(), testbed.only_dut_worker());
        let headway = engine.headway();
        let counted = headway.read();
        Ok(Self { monitor, mark, bounds, headway, counted, senders, dut_worker, cores, worst: Vec::new() })
    }

    /// The noise of the stretch since the last call, as far as it may have cost frames of this load. What happened while
    /// nothing was sent is not kept.
    pub fn noise(&mut self, load: Load) -> Noise {
        let mut conditions = self.monitor.renew(&mut self.mark);
        self.add_headway(&mut conditions);
        let conditions = if matches!(load, Load::Rate(_)) { conditions.paced() } else { conditions };
        let found = conditions.disturbances(&self.bounds);
        let words: Vec<String> = found.iter().map(ToString::to_string).collect();
        if load != Load::Idle {
            found.into_iter().for_each(|disturbance| self.keep(disturbance));
        }
        let disturbed = (!words.is_empty()).then(|| words.join("; "));
        let interruption = |it: monitor::Interruption| Interruption {
            start_ns: it.start_ns,
            end_ns: it.end_ns,
            taken_ns: it.taken_ns,
        };
        Noise {
            cost: conditions.cost(&self.bounds),
            lasting: conditions.lasting_cost(&self.bounds),
            interruptions: conditions
                .interruptions
                .map(|found| found.into_iter().map(interruption).collect()),
            disturbed,
        }
    }

    /// Adds what the engine counted in the stretch: how long its workers polled and found nothing, and whether a full
    /// queue of the device refused frames. What a core that only sends is too slow for is unsent.
    fn add_headway(&mut self, conditions: &mut Conditions) {
        let before = mem::replace(&mut self.counted, self.headway.read());
        let idle = self.counted.idle.iter().zip(before.idle.values());
        idle.for_each(|((core, now), then)| conditions.add_idle_polling(*core, now.saturating_sub(*then)));
        let refused_none = before.refused.is_some() && before.refused == self.counted.refused;
        let dut_worker = self.dut_worker.iter().filter(|_| refused_none);
        self.senders.iter().chain(dut_worker).for_each(|core| conditions.kept_up(*core));
    }

    fn keep(&mut self, disturbance: Disturbance) {
        let same = |known: &&mut Disturbance| {
            mem::discriminant(*known) == mem::discriminant(&disturbance) && known.core() == disturbance.core()
        };
        match self.worst.iter_mut().find(same) {
            Some(known) if known.severity() < disturbance.severity() => *known = disturbance,
            Some(_) => {}
            None => self.worst.push(disturbance),
        }
    }

    /// How long a cache line took from the first core in use to each other one and back, in nanoseconds, by core.
    pub fn core_to_core_ns(&self) -> BTreeMap<usize, u64> {
        let handovers = self.monitor.handovers().into_iter();
        handovers.map(|(core, took)| (core, took.as_nanos() as u64)).collect()
    }

    /// What a reader of the record should know; `None` if nothing happened.
    pub fn note(&self) -> Option<String> {
        let worst: Vec<String> = self.worst.iter().map(ToString::to_string).collect();
        (!worst.is_empty())
            .then(|| format!("interference from the host during this run (worst case): {}", worst.join("; ")))
    }
}

impl Drop for Machine {
    /// How far apart the cores were is kept for later runs, which may begin while they are farther apart than usual.
    /// Without a place to keep it they only learn it themselves.
    fn drop(&mut self) {
        _ = Kept::open().put_handovers(&self.cores, &self.core_to_core_ns());
    }
}
