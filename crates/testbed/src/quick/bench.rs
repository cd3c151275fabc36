//! One cell of the quick bench: a test and a device enter; a lab is made for them, and the record of a first run or of a
//! second search leaves.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result};
use dut::DutSpec;
use live::Board;
use results::Record;
use results::record::{LimitedBy, RateInterval};
use results::store;
use trial::Strategy;

use super::spread::found;
use super::{Plan, Test};
use crate::Testbed;
use crate::run::{Labels, Traffic, run};
use crate::target::Target;

/// Where records of second searches are kept in the directory of a bench: reports on that do not take them for repeats.
const SECOND: &str = "second";
/// Where the runs are kept in it that others stand for, since host interference may have changed them.
const SUPERSEDED: &str = "superseded";

/// What all cells have in common.
pub struct Bench<'a> {
    /// How runs measure.
    pub plan: Plan,
    /// Where records are kept.
    pub directory: &'a Path,
    /// Where runs are shown while they go on.
    pub board: Option<Board>,
    /// Set by someone else to end the run that goes on.
    pub stop: &'a Arc<AtomicBool>,
}

impl Bench<'_> {
    /// `test` on `dut`: a ramp, and a search for the limit that it shows.
    ///
    /// # Errors
    /// When the lab cannot be made, or the record cannot be kept.
    pub fn first(&self, test: &Test, dut: &DutSpec) -> Result<Record> {
        self.measure(test, dut, self.directory, |frame_size| self.plan.ramp(frame_size))
    }

    /// Searches for the limit that `first` found once more, in a lab of its own, and says where it is; `None` where `first`
    /// found none, or this search did not.
    ///
    /// # Errors
    /// See [`Self::first`].
    pub fn second(&self, test: &Test, dut: &DutSpec, first: &Record) -> Result<Option<RateInterval>> {
        let mean_frame_size = first.profile.mean_frame_size;
        let Some(search) = limit(first).and_then(|limit| self.plan.second(mean_frame_size, limit)) else {
            return Ok(None);
        };
        let record = self.measure(test, dut, &self.directory.join(SECOND), |_| search)?;
        Ok(found(&record))
    }

    /// Keeps a run that another one stands for where reports on the directory do not take it for a repeat.
    ///
    /// # Errors
    /// When the file cannot be moved.
    pub fn set_aside(&self, superseded: &Record) -> Result<()> {
        let aside = self.directory.join(SUPERSEDED);
        let name = format!("{}.json", superseded.id);
        let moved = fs::create_dir_all(&aside)
            .and_then(|()| fs::rename(self.directory.join(&name), aside.join(&name)));
        moved.with_context(|| format!("cannot move {name} to {}", aside.display()))
    }

    /// Keeps `record` as it is now, in place of what was kept of it.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn replace(&self, record: &Record) -> Result<()> {
        Ok(store::replace(self.directory, record)?)
    }

    /// Carries out in a lab what `strategy` makes of the mean size of the frames.
    fn measure<S: Strategy>(
        &self,
        test: &Test,
        dut: &DutSpec,
        directory: &Path,
        strategy: impl FnOnce(f64) -> S,
    ) -> Result<Record> {
        let profile = test.profile()?;
        let target = Target::lab(dut.clone(), self.plan.line_rate_bps);
        let mut testbed = Testbed::open(&target, usize::from(profile.largest_size()))?;
        testbed.show_on(self.board.clone());
        testbed.prepare()?;
        let sent = Traffic::new(&testbed, &profile, test.directions);
        let strategy = strategy(sent.table.mean_frame_size());
        let name = format!("{dut} {}", test.label);
        let labels = Labels { name, test: test.label.to_owned(), given: BTreeMap::new() };
        run(&mut testbed, &sent, labels, &strategy, directory, self.stop)
    }
}

/// Between which rates the limit of the weakest direction lies; `None` where the device was not the limit.
#[must_use]
pub fn limit(record: &Record) -> Option<RateInterval> {
    if record.directions.iter().all(|it| it.limited_by != LimitedBy::Dut) {
        return None;
    }
    let limits: Option<Vec<RateInterval>> = record.directions.iter().map(|it| it.evidence?.limit).collect();
    limits?.into_iter().min_by(|one, other| one.lower_pps.total_cmp(&other.lower_pps))
}
