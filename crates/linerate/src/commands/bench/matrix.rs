//! `linerate bench FILE`: the plan of a bench file is carried out, or only shown.
//!
//! What is done is what the records say that are there: a bench that was interrupted or killed goes
//! on where it was, and one that is complete is only shown again. Records of runs that did not come
//! to their end stay on disk; tables and pages leave them out once a repeat has come to its end.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::slice;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result};
use clap::Parser;
use report::html::Contents;
use results::Record;
use results::bench::Bench as Description;
use results::store;
use serde_json::{Value, json};
use testbed::bench::plan::{Basis, Cell, Plan, Run, Times};
use testbed::bench::{Bench, requirement};
use testbed::progress::colour;
use testbed::target::Place;
use testbed::{stop, user_space};
use wording::command_line::said;
use wording::usage::{in_one_line, misuse};

use super::Output;
use super::figures::headline;
use super::file;
use super::part::{Part, Shard};
use super::run::{self, Ended, Sharing};
use super::view::{View, rounded};
use crate::Exit;
use crate::commands::{Cli, Command, report as report_command};

/// The page's name among the records.
const PAGE: &str = "report.html";

#[derive(clap::Args)]
#[command(next_help_heading = "Bench files")]
#[group(skip)]
pub struct Args {
    /// Print the runs in their order, with their commands and how long they take, and run nothing
    #[arg(long, conflicts_with = "quick")]
    dry_run: bool,
    #[command(flatten)]
    part: Part,
}

/// What is to be done, and what is not and why.
struct Work<'a> {
    plan: &'a Plan<'a>,
    directory: PathBuf,
    /// The part of the bench that these runs are.
    shard: Option<Shard>,
    /// The runs to make, in their order.
    runs: Vec<Run>,
    /// Runs that are asked for and complete.
    complete: usize,
    /// Cells that cannot be run here, by name, and why.
    unable: BTreeMap<String, String>,
    times: Times,
}

pub fn main(file: &Path, args: &Args, output: &Output) -> Result<Exit> {
    let bench = file::load(file)?;
    let plan = Plan::new(&bench);
    let checked = check(&plan)?;
    let directory = output.runs.clone().unwrap_or_else(|| Path::new("runs").join(&bench.name));
    if args.dry_run {
        let work = Work::new(&plan, directory, args, checked)?;
        if output.json {
            println!("{}", serde_json::to_string_pretty(&work.document())?);
        } else {
            print!("{}", work.listing());
        }
        return Ok(Exit::Done);
    }
    let shown = output.live.pass_on(bench.strategy.subcommand.to_string().as_str())?;
    fs::create_dir_all(&directory).with_context(|| format!("cannot make {}", directory.display()))?;
    let sharing = if args.part.shard.is_some() { Sharing::Shards } else { Sharing::Nobody };
    let lock = run::lock(&directory, sharing)?;
    let mut work = Work::new(&plan, directory, args, checked)?;
    let description = plan.description(vec!["linerate".to_owned(), "bench".to_owned(), bench.origin.clone()]);
    store::keep_bench(&work.directory, &description)?;
    let tally = work.carry_out(&lock, &shown)?;
    let missing = work.show(&description, args, output)?;
    Ok(work.conclude(&tally, missing))
}

/// What is known of the commands of all cells.
struct Checked {
    /// How long a run is planned to take.
    planned: Duration,
    /// Cells that cannot be run here, by name, and why.
    unable: BTreeMap<String, String>,
}

/// Whether this program takes the commands of all cells.
fn check(plan: &Plan) -> Result<Checked> {
    let bench = plan.bench;
    let mut planned = Duration::ZERO;
    let mut unable = BTreeMap::new();
    for cell in 0..plan.cells.len() {
        let words = plan.command(Run { cell, repeat: 1 }, Path::new("runs"));
        let cli = Cli::try_parse_from(["linerate".to_owned()].into_iter().chain(words)).map_err(|error| {
            let said = said(&error);
            let Cell { dut, .. } = plan.cells[cell];
            let is_own = dut.options.iter().any(|option| said.contains(option.as_str()));
            let line = if is_own { dut.line } else { bench.strategy.line };
            file::error_at(&bench.origin, line, format!("{}: {said}", plan.cells[cell].label()))
        })?;
        let takes = match &cli.command {
            Command::Ramp(test) => test.planned(),
            Command::Saturate(test) => test.planned(),
            Command::Search(test) => test.planned(),
            Command::Latency(test) => test.planned(),
            Command::Soak(test) => test.planned(),
            Command::Stall(test) => test.planned(),
            Command::Generator(args) => args.measurement().map(|wanted| wanted.planned()),
            _ => Ok(Duration::ZERO),
        };
        let takes = takes.map_err(|error| {
            let Cell { dut, .. } = plan.cells[cell];
            let reason = format!("{}: {}", plan.cells[cell].label(), in_one_line(&error));
            file::error_at(&bench.origin, dut.line, reason)
        })?;
        planned = planned.max(takes);
        let described = &plan.cells[cell];
        let missing = requirement::missing(&described.configuration().requires)
            .or_else(|| {
                let through = match &described.dut.place {
                    Place::Lab(dut) | Place::Started(dut) => Some(dut),
                    Place::Ports(_) | Place::Named(_) | Place::Testers(_) => None,
                };
                user_space::refusal(described.dut.engine, through, &described.dut.options)
            })
            .or_else(|| {
                if let Command::Generator(args) = &cli.command {
                    args.measurement().ok()?.refusal()
                } else {
                    None
                }
            });
        if let Some(reason) = missing {
            let reason = format!("{reason}, or leave these cells out with --only or in the file");
            unable.insert(described.label(), reason);
        }
    }
    Ok(Checked { planned, unable })
}

/// The records in `directory`; says what was passed over.
fn load(directory: &Path) -> Result<Vec<Record>> {
    if !directory.is_dir() {
        return Ok(Vec::new());
    }
    let loaded = store::load_all(directory)?;
    for warning in loaded.warnings {
        eprintln!("linerate: passed over: {}", in_one_line(&warning.into()));
    }
    Ok(loaded.records)
}

impl<'a> Work<'a> {
    fn new(plan: &'a Plan<'a>, directory: PathBuf, args: &Args, checked: Checked) -> Result<Self> {
        args.part.check(plan)?;
        let chosen = args.part.chosen(plan);
        let records = load(&directory)?;
        let kept = plan.kept(&records);
        if let Some((run, record)) = plan.outdated(&kept) {
            return Err(misuse(format!(
                "{} has a record of '{}' that was made with other settings ({}): give another --runs, or \
                 move the old records away",
                directory.display(),
                plan.name(run),
                record.id
            )));
        }
        let asked_for = plan.missing(&BTreeMap::new(), &chosen);
        let missing = plan.missing(&kept.complete, &chosen);
        let Checked { planned, mut unable } = checked;
        let (runs, not_run): (Vec<Run>, Vec<Run>) = missing
            .iter()
            .copied()
            .partition(|run: &Run| !unable.contains_key(&plan.cells[run.cell].label()));
        let concerned: BTreeSet<String> = not_run.iter().map(|run| plan.cells[run.cell].label()).collect();
        unable.retain(|cell, _| concerned.contains(cell));
        let times = Times::new(plan.cells.len(), &kept, planned);
        let complete = asked_for.len() - missing.len();
        Ok(Self { plan, directory, shard: args.part.shard, runs, complete, unable, times })
    }

    /// What there is to do, in a few lines.
    fn summary(&self) -> String {
        let Bench { title, repeats, article_figure, .. } = self.plan.bench;
        let order = self.plan.order();
        let shard = self.shard.map_or(String::new(), |shard| format!("shard {shard} of "));
        let follows = article_figure.as_ref().map_or(String::new(), |figure| format!("follows {figure}\n"));
        let text = format!(
            "{title}\n{follows}{shard}{} cells, {repeats} repeats of each, {order}; {} runs are complete, {} to do, about {}\n\
             records: {}\n",
            self.plan.cells.len(),
            self.complete,
            self.runs.len(),
            rounded(self.times.all(&self.runs)),
            self.directory.display(),
        );
        text + &self.not_run()
    }

    /// The cells that cannot be run here, a line for each reason.
    fn not_run(&self) -> String {
        let reasons: BTreeSet<&String> = self.unable.values().collect();
        let line = |reason: &String| {
            let cells = self.unable.iter().filter(|(_, why)| *why == reason).map(|(cell, _)| cell.as_str());
            format!("{}: not run: {reason}\n", cells.collect::<Vec<_>>().join(", "))
        };
        reasons.into_iter().map(line).collect()
    }

    /// The plan for people.
    fn listing(&self) -> String {
        let mut text = self.summary();
        let width = self.runs.len().to_string().len();
        for (number, run) in self.runs.iter().enumerate() {
            let expected = self.times.of(*run);
            let basis = match expected.basis {
                Basis::Measured => "as before",
                Basis::Planned => "as planned",
            };
            let command = self.plan.command(*run, &self.directory);
            text += &format!(
                "\n[{:width$}/{}] {}, {} {basis}\nlinerate {}\n",
                number + 1,
                self.runs.len(),
                self.plan.name(*run),
                rounded(expected.time),
                report::html::command_line(&command)
            );
        }
        text
    }

    /// The plan for machines.
    fn document(&self) -> Value {
        let runs = self.runs.iter().map(|run| {
            json!({
                "cell": self.plan.cells[run.cell].label(),
                "repeat": run.repeat,
                "command": self.plan.command(*run, &self.directory),
                "expected_s": self.times.of(*run).time.as_secs_f64(),
                "measured_before": self.times.of(*run).basis == Basis::Measured,
            })
        });
        json!({
            "bench": self.plan.bench.name,
            "complete": self.complete,
            "runs": runs.collect::<Vec<_>>(),
            "expected_s": self.times.all(&self.runs).as_secs_f64(),
            "not_run": self.unable,
        })
    }

    /// Makes the runs; a failed one does not keep the others from being made.
    fn carry_out(&mut self, lock: &fs::File, shown: &[String]) -> Result<Tally> {
        let stop = stop::flag()?;
        eprint!("{}", self.summary());
        let mut tally = Tally::default();
        // What is impossible for all is said once, not for each.
        let is_lab =
            |run: &Run| matches!(self.plan.cells[run.cell].dut.place, Place::Lab(_) | Place::Started(_));
        if self.runs.iter().any(is_lab) {
            drop(lab::Namespace::create()?);
        }
        let mut view = View::new(self.runs.len());
        for (at, next) in self.runs.clone().iter().enumerate() {
            if stop::is_set(&stop) {
                tally.interrupted = true;
                break;
            }
            let name = self.plan.name(*next);
            view.begin(&name, self.times.all(self.runs.get(at..).unwrap_or_default()));
            let (began, since) = (Instant::now(), SystemTime::now());
            let directory = &self.directory;
            let mut watch = || view.watch(|| store::growing(directory, since));
            let words = [self.plan.command(*next, directory).as_slice(), shown].concat();
            let ended = run::run(&words, lock, &stop, &mut watch);
            for command in &self.plan.cells[next.cell].configuration().undo {
                if let Err(error) = run::undo(command) {
                    view.say(&format!("{name}: {}", in_one_line(&error)));
                    tally.failures += 1;
                }
            }
            match ended? {
                Ended::Complete(record) => {
                    self.times.add(*next, began.elapsed());
                    view.end(&name, &headline(&record));
                }
                Ended::Failed(reason) => {
                    tally.failures += 1;
                    view.end(&name, &format!("failed: {reason}"));
                }
                Ended::Interrupted => tally.interrupted = true,
            }
        }
        view.finish();
        Ok(tally)
    }

    /// Shows what all records of the bench say: tables to people, all of it to machines, and the page.
    /// How many of the runs that were asked for are still missing.
    fn show(&self, description: &Description, args: &Args, output: &Output) -> Result<usize> {
        let mut records = load(&self.directory)?;
        let kept = self.plan.kept(&records);
        let missing = self.plan.missing(&kept.complete, &args.part.chosen(self.plan)).len();
        let shown = kept.complete.values().chain(kept.incomplete.values());
        let ids: BTreeSet<String> = shown.map(|record| record.id.clone()).collect();
        records.retain(|record| ids.contains(&record.id));
        let bench = report::bench::Bench::new(description, &records);
        if let Some(bench) = &bench {
            eprintln!("\n{}", report::terminal::bench(bench, colour()));
        }
        if let Some(shard) = self.shard {
            let directory = self.directory.display();
            eprintln!(
                "shard {shard} draws no page: linerate report {directory} draws what all shards kept there"
            );
        } else if !records.is_empty() {
            let page = output.output.clone().unwrap_or_else(|| self.directory.join(PAGE));
            let benches = slice::from_ref(description);
            let contents = Contents { records: &records, benches, ..Contents::default() };
            report_command::write(&contents, &self.plan.bench.title, &page)?;
        }
        if output.json {
            println!("{}", report::json::bench(&self.plan.bench.name, bench.as_ref(), missing, &records));
        }
        Ok(missing)
    }

    /// Says what is not done, and how to do it.
    fn conclude(&self, tally: &Tally, missing: usize) -> Exit {
        eprint!("{}", self.not_run());
        if tally.failures > 0 {
            eprintln!("{} failed, for the reasons above", tally.failures);
        }
        if tally.interrupted {
            eprint!("interrupted: ");
        }
        match missing {
            0 => eprintln!("all runs are complete"),
            _ => eprintln!("{missing} runs are missing; the same command makes them, and no others again"),
        }
        if missing == 0 && tally.failures == 0 { Exit::Done } else { Exit::Failed }
    }
}

/// How the runs ended.
#[derive(Default)]
struct Tally {
    failures: usize,
    interrupted: bool,
}
