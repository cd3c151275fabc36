//! A load test as a subcommand: its flags enter; the verdict is shown, and the exit status leaves.
//!
//! [`LoadTest`] has the flags that all load tests take, and the one way from them to a record. What is left to
//! each is a [`Plan`]: its own flags, and the strategy that they describe.

use std::time::Duration;

use anyhow::Result;
use results::record::{Record, Status};
use testbed::port::FALLBACK_LINE_RATE;
use testbed::run::{Labels, Traffic as Sent, run};
use testbed::{Testbed, progress, stop};
use traffic::{Endpoint, Endpoints, Profile};
use trial::Strategy;
use wire::MacAddress;
use wording::usage::misuse;

use crate::Exit;
use crate::args::{Device, Output, Traffic};
use crate::line::Line;
use crate::live::{Live, Showing};

/// More rows than this are not built only to know their mean size.
const MAX_ROWS: usize = 4096;
/// Where frames go that are only counted.
const NOWHERE: Endpoints = {
    let address = MacAddress([0; 6]);
    Endpoints([Endpoint { source: address, destination: address }; 2])
};

/// The flags of a load test.
#[derive(clap::Args)]
pub struct LoadTest<Own: clap::Args> {
    #[command(flatten)]
    traffic: Traffic,
    #[command(flatten)]
    device: Device,
    #[command(flatten)]
    own: Own,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    live: Live,
}

/// The flags that only one load test has.
pub trait Plan {
    /// The strategy that they describe on `line`.
    ///
    /// # Errors
    /// When a rate is none, or is too low.
    fn strategy(&self, line: &Line) -> Result<Box<dyn Strategy>>;

    /// What resets a device that is not the lab's.
    fn reset_command(&self) -> Option<String> {
        None
    }
}

impl<Own: clap::Args + Plan> LoadTest<Own> {
    /// Runs it.
    ///
    /// # Errors
    /// Why it cannot be run, with the remedy.
    pub fn main(&self) -> Result<Exit> {
        let profile = self.traffic.profile()?;
        self.device.target()?;
        if let Some(line) = self.line(&profile) {
            check(&*self.own.strategy(&line)?)?;
        }
        let plan = |testbed: &mut Testbed, line: &Line| {
            testbed.reset_by(self.own.reset_command());
            self.own.strategy(line)
        };
        single(&profile, &self.traffic, &self.device, &self.output, self.live, plan)
    }

    /// How long it takes at most by its flags, which line and frames do not change.
    ///
    /// # Errors
    /// Misuse, where flags do not go together.
    pub fn planned(&self) -> Result<Duration> {
        self.device.target()?;
        let line = Line { rate_bps: FALLBACK_LINE_RATE, mean_frame_size: 64.0 };
        Ok(self.own.strategy(&line).map_or(Duration::ZERO, |strategy| strategy.planned()))
    }

    /// The line, where it is known before ports are opened: a real one says its speed only then.
    fn line(&self, profile: &Profile) -> Option<Line> {
        let is_real = self.device.ports.is_some() || !self.device.engine.testers.is_empty();
        let virtual_rate = (!is_real).then_some(FALLBACK_LINE_RATE);
        let rate_bps = self.device.line_rate.or(virtual_rate)?;
        let table = profile.table_up_to(&NOWHERE, self.traffic.directions(), MAX_ROWS);
        (table.rows.len() < MAX_ROWS).then(|| Line { rate_bps, mean_frame_size: table.mean_frame_size() })
    }
}

/// Makes one run: opens the testbed, runs the strategy that `plan` makes for it and its line, and shows the
/// verdict.
///
/// # Errors
/// Why it cannot be run, with the remedy.
pub fn single(
    profile: &Profile,
    traffic: &Traffic,
    device: &Device,
    output: &Output,
    live: Live,
    plan: impl FnOnce(&mut Testbed, &Line) -> Result<Box<dyn Strategy>>,
) -> Result<Exit> {
    let given = output.labels()?;
    let stop = stop::flag()?;
    let showing = live.start()?;
    let mut testbed = Testbed::open(&output.metered(device.target()?), usize::from(profile.largest_size()))?;
    testbed.show_on(showing.as_ref().map(Showing::board));
    testbed.prepare()?;
    let sent = Sent::new(&testbed, profile, traffic.directions());
    let line = Line { rate_bps: testbed.line_rate_bps(), mean_frame_size: sent.table.mean_frame_size() };
    let strategy = plan(&mut testbed, &line)?;
    check(&*strategy)?;
    let name = output.name.as_deref();
    let labels = Labels::new(testbed.dut_name(), profile, traffic.bidirectional, name, given);
    let record = run(&mut testbed, &sent, labels, &*strategy, &output.runs, &stop)?;
    show(&record, output)?;
    if let Some(remote) = testbed.remote() {
        remote.undo()?;
    }
    Ok(ending(&record))
}

/// Refuses a strategy that cannot be carried out, as wrong use.
///
/// # Errors
/// Misuse, with cause and remedy.
pub fn check(strategy: &dyn Strategy) -> Result<()> {
    strategy.check().map_err(|refused| misuse(refused.to_string()))
}

/// Shows a finished run: its verdict to people, its record to machines.
pub fn show(record: &Record, output: &Output) -> Result<()> {
    let colour = progress::colour();
    eprintln!("{}", report::terminal::plot(record, 72, 14, colour));
    eprintln!("{}", report::terminal::verdict(record, colour));
    eprintln!("record: {}", output.runs.join(format!("{}.json", record.id)).display());
    if output.json {
        println!("{}", serde_json::to_string_pretty(record)?);
    }
    Ok(())
}

/// Whether a run did what was asked.
pub fn ending(record: &Record) -> Exit {
    if record.status == Status::Complete { Exit::Done } else { Exit::Failed }
}
