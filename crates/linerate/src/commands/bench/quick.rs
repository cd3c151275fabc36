//! `linerate bench --quick`: the eight usual load tests against several devices, as one table and one page. Each cell is
//! measured; again, if something disturbed it; and its limit is searched for a second time at the end.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;
use dut::DutSpec;
use report::html::Contents;
use results::Record;
use results::record::{RateInterval, Status};
use testbed::progress::colour;
use testbed::quick::{Bench, DEVICES, Plan, TESTS, Test, limit};
use testbed::stop;
use wire::human;

use super::Output;
use crate::Exit;
use crate::args;
use crate::commands::report as report_command;
use crate::live::Showing;

/// Where records are kept, and the page, if nothing else is asked for.
const DIRECTORY: &str = "runs/quick";
const PAGE: &str = "report.html";

#[derive(clap::Args)]
#[command(next_help_heading = "The quick bench")]
#[group(id = "quick-flags", multiple = true, conflicts_with = "file")]
pub struct Args {
    /// The eight load tests (1514 bytes, IMIX, 64 bytes, 64 bytes in one flow; one direction and
    /// both), each as a short ramp and a short search
    #[arg(long)]
    quick: bool,
    /// Devices to test, one --dut each
    #[arg(long = "dut", value_name = "DUT", default_values = DEVICES)]
    duts: Vec<DutSpec>,
    /// Line rate (L1) that percentages refer to; a readable curve needs one that the device
    /// reaches with large frames, not with small ones
    #[arg(long, value_name = "RATE", default_value = "2.5gbps", value_parser = args::line_rate)]
    line_rate: f64,
    /// The share of line rate that ramps rise to
    #[arg(long, value_name = "SHARE", default_value = "97%", value_parser = args::share_to_100)]
    rate: f64,
    /// How long the load rises
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = args::duration)]
    duration: Duration,
    /// How long the search after a ramp may take, which narrows the interval of the limit; a second one at the end
    /// takes half as long. 0s for none
    #[arg(long, value_name = "TIME", default_value = "3s", value_parser = args::duration)]
    search: Duration,
    /// How often a run is measured again at the end if host interference may have changed its result
    #[arg(long, value_name = "N", default_value_t = 2)]
    retries: usize,
}

impl Args {
    /// Whether this bench is asked for.
    pub fn is_asked(&self) -> bool {
        self.quick
    }

    fn plan(&self) -> Plan {
        let Self { line_rate: line_rate_bps, rate: share, duration: rise, search, .. } = *self;
        Plan { line_rate_bps, share, rise, search }
    }
}

/// A cell of the bench that was measured.
struct Run<'a> {
    test: &'a Test,
    dut: &'a DutSpec,
    record: Record,
    /// Where a second search placed its limit, in each direction.
    second: Option<RateInterval>,
}

pub fn main(args: &Args, output: &Output) -> Result<Exit> {
    let directory = output.runs.as_deref().unwrap_or(Path::new(DIRECTORY));
    let stop = stop::flag()?;
    let cells: Vec<(&Test, &DutSpec)> =
        TESTS.iter().flat_map(|test| args.duts.iter().map(move |dut| (test, dut))).collect();
    // What is impossible for all is said once, not for each.
    drop(lab::Namespace::create()?);
    announce(args)?;
    let began = Instant::now();

    let showing = output.live.start()?;
    let board = showing.as_ref().map(Showing::board);
    let bench = Bench { plan: args.plan(), directory, board, stop: &stop };
    let (mut runs, failures) = measure(&bench, &cells);
    let each = began.elapsed() / cells.len().max(1) as u32;
    let longest = bench.plan.longest(cells.len());
    let is_over = |next: Duration| stop::is_set(&stop) || began.elapsed() + next > longest;
    let second = bench.plan.planned_second();
    // The second searches go before: they tell more than another try.
    let searches = runs.iter().filter(|run| limit(&run.record).is_some()).count() as u32;
    measure_again(&bench, &mut runs, args.retries, &|| is_over(each + second * searches))?;
    let records = search_again(&bench, runs, &|| is_over(second))?;
    finish(&records, directory, output)?;
    if failures > 0 {
        eprintln!("{failures} of {} load tests failed", cells.len());
    }
    let complete = failures == 0 && records.len() == cells.len();
    Ok(if complete { Exit::Done } else { Exit::Failed })
}

/// Measures `cells` one after the other, and says how many failed.
fn measure<'a>(bench: &Bench, cells: &[(&'a Test, &'a DutSpec)]) -> (Vec<Run<'a>>, usize) {
    let (mut runs, mut failures) = (Vec::new(), 0);
    for (number, (test, dut)) in cells.iter().enumerate() {
        if stop::is_set(bench.stop) {
            break;
        }
        let count = format!("[{:2}/{}]", number + 1, cells.len());
        match bench.first(test, dut) {
            Ok(record) => {
                eprintln!("{count} {}", summary(&record));
                failures += usize::from(record.status == Status::Failed);
                runs.push(Run { test, dut, record, second: None });
            }
            Err(error) => {
                eprintln!("{count} {dut} {}: {error:#}", test.label);
                failures += 1;
            }
        }
    }
    (runs, failures)
}

/// Measures those again whose results other activity on the host may have changed, and keeps the clearer ones.
fn measure_again(bench: &Bench, runs: &mut [Run], retries: usize, is_over: &dyn Fn() -> bool) -> Result<()> {
    for attempt in 1..=retries {
        let count = format!("[again {attempt}/{retries}]");
        for run in runs.iter_mut().filter(|run| report::may_have_changed(&run.record)) {
            if is_over() {
                return Ok(());
            }
            let Run { test, dut, record, .. } = run;
            let again = match bench.first(test, dut) {
                Ok(again) => again,
                Err(error) => {
                    eprintln!("{count} {dut} {}: {error:#}; its first result stands", test.label);
                    continue;
                }
            };
            eprintln!("{count} {}", summary(&again));
            let superseded =
                if report::is_clearer(&again, record) { std::mem::replace(record, again) } else { again };
            bench.set_aside(&superseded)?;
        }
    }
    Ok(())
}

/// Searches for every limit once more, in two tries, and widens the intervals by how far such pairs differ.
fn search_again(bench: &Bench, mut runs: Vec<Run>, is_over: &dyn Fn() -> bool) -> Result<Vec<Record>> {
    for _ in 0..2 {
        for Run { test, dut, record, second } in runs.iter_mut().filter(|run| run.second.is_none()) {
            let found = if is_over() { Ok(None) } else { bench.second(test, dut, record) };
            let said = match &found {
                Ok(Some(found)) => Some(report::bounds(found.times(record.directions.len()))),
                Ok(None) => None,
                Err(error) => Some(format!("{error:#}; its first result stands")),
            };
            said.inspect(|said| eprintln!("[second search] {:42} {said}", record.name));
            *second = found.unwrap_or_default();
        }
    }
    let mut pairs: Vec<_> = runs.into_iter().map(|run| (run.record, run.second)).collect();
    if let Some(pooled) = testbed::quick::settle(&mut pairs) {
        eprintln!("{}", report::second_searches(&pooled));
    }
    pairs.iter().filter(|(_, second)| second.is_some()).try_for_each(|(record, _)| bench.replace(record))?;
    Ok(pairs.into_iter().map(|(record, _)| record).collect())
}

/// Says what will be measured where, and how long that takes.
fn announce(args: &Args) -> Result<()> {
    eprintln!("{}", args.plan().in_words(args.duts.len(), args.retries));
    let placement = lab::Placement::choose(&lab::placement::host()?, &lab::placement::Wishes::default())?;
    eprintln!("lab: port0 → device → port1 over veth pairs; {}", placement.in_words());
    placement.notes.iter().for_each(|note| eprintln!("{note}"));
    eprintln!(
        "line rate {} (virtual, --line-rate), so that large frames reach it and small ones show the device's limit; \
         ramps end at {:.0} % of it (--rate), because a real link at 100 % loses frames merely by the difference of \
         its ends' clocks",
        human::bps(args.line_rate),
        args.rate * 100.0
    );
    Ok(())
}

/// A finished run in one line, directions added up.
fn summary(record: &Record) -> String {
    match record.status {
        Status::Failed => format!("{}: {}", record.name, record.reason.as_deref().unwrap_or("failed")),
        _ => format!("{:42} {}", record.name, report::terminal::headline(record)),
    }
}

/// Shows what was measured: tables to people, records to machines, and the page.
fn finish(records: &[Record], directory: &Path, output: &Output) -> Result<()> {
    if records.is_empty() {
        return Ok(());
    }
    eprintln!(
        "\n{}\n{}",
        report::terminal::matrix(records, colour()),
        report::terminal::table(records, colour())
    );
    eprintln!("records: {}", directory.display());
    let page = output.output.as_deref().unwrap_or(Path::new(PAGE));
    let contents = Contents { records, ..Contents::default() };
    report_command::write(&contents, "Linerate quick bench", page)?;
    if output.json {
        println!("{}", serde_json::to_string(records)?);
    }
    Ok(())
}
