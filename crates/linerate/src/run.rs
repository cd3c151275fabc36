//! A command that makes one run: its flags enter; the verdict is shown, and the exit status leaves.

use anyhow::Result;
use results::record::{Record, Status};
use testbed::run::{Labels, Strategy, run};
use testbed::{Testbed, progress, stop};

use crate::Exit;
use crate::args::{Device, Output, Traffic};

/// A command that makes one run: opens the testbed, runs the strategy that `plan` makes for it
/// and the profile's mean frame size, and shows the verdict.
pub fn single(
    traffic: &Traffic,
    device: &Device,
    output: &Output,
    plan: impl FnOnce(&Testbed, f64) -> Result<Box<dyn Strategy>>,
) -> Result<Exit> {
    let profile = traffic.profile()?;
    let directions = traffic.directions();
    let given = output.labels()?;
    let stop = stop::flag()?;
    let mut testbed = Testbed::open(&device.target(), usize::from(profile.largest_size()))?;
    testbed.prepare()?;
    let mean = profile.table(&testbed.endpoints(), directions).mean_frame_size();
    let strategy = plan(&testbed, mean)?;
    let name = output.name.as_deref();
    let labels = Labels::new(testbed.dut_name(), &profile, traffic.bidirectional, name, given);
    let record = run(&mut testbed, &profile, directions, labels, &*strategy, &output.runs, &stop)?;
    show(&record, output)?;
    if let Some(remote) = testbed.remote() {
        remote.undo()?;
    }
    Ok(ending(&record))
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
