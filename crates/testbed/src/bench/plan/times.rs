//! How long the runs of a bench take: what those took that are done enters; what is expected of the others leaves.

use std::time::Duration;

use super::{Kept, Run};

/// What setting up a run takes beside what its record says.
const SET_UP: Duration = Duration::from_secs(1);

/// How long a run takes, and how that is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Expected {
    /// All of it, set-up included.
    pub time: Duration,
    /// How that is known.
    pub basis: Basis,
}

/// How an expected time is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// Runs of the same cell took so long.
    Measured,
    /// The strategy says so.
    Planned,
}

/// What runs of each cell took, and what is expected of those to come.
#[derive(Debug)]
pub struct Times {
    /// By cell, in seconds.
    took: Vec<Vec<f64>>,
    planned: Duration,
}

impl Times {
    /// From what is `kept` of a plan with so many cells, and what the strategy plans for a run.
    #[must_use]
    pub fn new(cells: usize, kept: &Kept, planned: Duration) -> Self {
        let mut times = Self { took: vec![Vec::new(); cells], planned };
        for (run, record) in &kept.complete {
            let elapsed = Duration::try_from_secs_f64(record.elapsed_s).unwrap_or_default();
            times.add(*run, elapsed.saturating_add(SET_UP));
        }
        times
    }

    /// `run` took so long.
    pub fn add(&mut self, run: Run, time: Duration) {
        if let Some(took) = self.took.get_mut(run.cell) {
            took.push(time.as_secs_f64());
        }
    }

    /// How long `run` takes: the median of the runs of its cell.
    #[must_use]
    pub fn of(&self, run: Run) -> Expected {
        let mut took = self.took.get(run.cell).cloned().unwrap_or_default();
        took.sort_by(f64::total_cmp);
        match took.get(took.len() / 2) {
            Some(median) => {
                let time = Duration::try_from_secs_f64(*median).unwrap_or(Duration::MAX);
                Expected { time, basis: Basis::Measured }
            }
            None => Expected { time: self.planned.saturating_add(SET_UP), basis: Basis::Planned },
        }
    }

    /// How long `runs` take together.
    #[must_use]
    pub fn all(&self, runs: &[Run]) -> Duration {
        runs.iter().map(|run| self.of(*run).time).fold(Duration::ZERO, Duration::saturating_add)
    }
}
