//! `linerate compare`: repeats of several configurations enter; which is better, and what that rests
//! on, leaves.

mod setups;

use std::io::IsTerminal;
use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::ValueEnum;
use report::groups::{Group, Reader};
use report::json::comparison;
use report::judgement::{Compared, Judged};
use report::metric::{Metric, SPEED};
use report::sets::{self, Regressions, Set};
use report::terminal::compare as sentences;
use serde_json::{Value, json};
use stats::Confidence;
use stats::comparison::Question;
use stats::ministat::{self, Options, Version};
use wording::usage::misuse;

use crate::Exit;
use crate::args;

/// The schema of what `--json` prints.
const SCHEMA: &str = "linerate/compare/1";

#[derive(clap::Args)]
pub struct Args {
    /// What to compare, the first with all others: files of numbers as ministat reads them,
    /// directories of records (the repeats of one configuration), records, or ids of runs; or directories of the same
    /// bench, one from each machine, which are shown side by side
    #[arg(required = true, value_name = "GROUP")]
    groups: Vec<PathBuf>,
    /// The figure of each record: ndr, pdr or another goal, max_rate (of a ramp, at or below its loss
    /// threshold), max_forwarded, throughput, loss, latency_mean or latency_p99, with @LOAD if it is not to be that at half load
    /// [default: what reports name first]
    #[arg(long)]
    metric: Option<Metric>,
    /// Lower values are better, in files of numbers
    #[arg(long)]
    less_is_better: bool,
    /// Pair the n-th values of all groups, which were measured in the same round (paired test)
    #[arg(long)]
    by_round: bool,
    /// Compare even if strategies, profiles or the settings within a group differ
    #[arg(long)]
    force: bool,
    /// Directory in which run ids are looked up
    #[arg(long, value_name = "DIR", default_value = "runs")]
    runs: PathBuf,
    #[command(flatten)]
    verdict: VerdictArgs,
    #[command(flatten)]
    block: BlockArgs,
    /// Print all of it as JSON on standard output
    #[arg(long, conflicts_with = "ministat")]
    json: bool,
}

/// What is asked.
#[derive(clap::Args)]
#[command(next_help_heading = "Verdict")]
struct VerdictArgs {
    /// Confidence level in percent: 80, 90, 95, 98, 99 or 99.5
    #[arg(long, short, value_name = "PERCENT", default_value = "95")]
    confidence: Confidence,
    /// Differences up to this share count as equal
    #[arg(long, value_name = "SHARE", default_value = "1%", value_parser = band)]
    equal_within: f64,
    /// The group that all others are compared with; the exit status is 1 if one is proven worse
    #[arg(long, value_name = "GROUP")]
    baseline: Option<PathBuf>,
    /// Fail if a group is proven worse than --baseline by more than this share [default: any proven difference
    /// beyond --equal-within]
    #[arg(long, value_name = "SHARE", requires = "baseline", value_parser = args::share)]
    max_regression: Option<f64>,
}

/// How the block of ministat looks.
#[derive(clap::Args)]
#[command(next_help_heading = "As ministat")]
struct BlockArgs {
    /// Print what ministat prints, and nothing else
    #[arg(long, value_name = "VERSION", num_args = 0..=1, require_equals = true, default_missing_value = "freebsd")]
    ministat: Option<BlockVersion>,
    /// The column of the numbers, from 1
    #[arg(long, short = 'C', value_name = "COLUMN", default_value = "1", value_parser = column)]
    column: usize,
    /// The characters that divide columns
    #[arg(long, short, value_name = "CHARACTERS", default_value = " \t", value_parser = delimiter)]
    delimiter: String,
    /// Columns of the plot
    #[arg(long, short, value_name = "COLUMNS", default_value_t = ministat::DEFAULT_WIDTH)]
    width: usize,
    /// The bar of each group on a line of its own
    #[arg(long, short)]
    separate_bars: bool,
    /// No plot
    #[arg(long, short = 'A')]
    no_plot: bool,
    /// No plot and no comparison
    #[arg(long, short = 'n')]
    summary_only: bool,
    /// No names and no head
    #[arg(long, short = 'q')]
    no_names: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum BlockVersion {
    /// The percentage's error is that of a ratio, as FreeBSD's
    Freebsd,
    /// The difference's error over the reference, as in Debian's package
    Classic,
}

/// Reads the share within which values count as equal.
fn band(text: &str) -> Result<f64, String> {
    args::share(text).and_then(|share| match share > 0.0 {
        true => Ok(share),
        false => Err("nothing is equal within 0: write 1%".to_owned()),
    })
}

fn column(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|column| *column > 0).ok_or_else(|| "columns are counted from 1".to_owned())
}

fn delimiter(text: &str) -> Result<String, String> {
    if text.is_empty() { Err("name at least one character".to_owned()) } else { Ok(text.to_owned()) }
}

pub fn main(args: &Args) -> Result<Exit> {
    if let Some(loaded) = setups::loaded(&args.groups)? {
        return setups::show(&loaded, args);
    }
    let reader = Reader { column: args.block.column, delimiters: &args.block.delimiter, runs: &args.runs };
    let words: Vec<PathBuf> = args.verdict.baseline.iter().chain(&args.groups).cloned().collect();
    let mut warn = |what| eprintln!("linerate: passed over: {what}");
    let groups = reader.groups(&words, &mut warn)?;
    let notes = check(&groups, args)?;
    let sets = groups.iter().map(|group| group.set(args.metric.as_ref())).collect::<Result<Vec<_>>>()?;
    let [reference, others @ ..] = sets.as_slice() else { bail!("nothing to compare") };
    let block = block(&sets, args);
    if args.block.ministat.is_some() {
        print!("{}", block.map_err(|error| misuse(error.to_string()))?);
        return Ok(Exit::Done);
    }
    if others.is_empty() {
        return Err(misuse(format!(
            "there is only {}, with {} values: name another group to compare it with; single records of the \
             same configuration are one group",
            reference.name,
            reference.values.len()
        )));
    }
    let metric = metric(&groups, args);
    let question = question(&sets, metric.as_ref(), args);
    let judged = sets::judge(reference, others, &question, regressions(&args.verdict))
        .map_err(|unjudged| misuse(unjudged.to_string()))?;
    let what = Compared {
        metric: metric.as_ref().map_or_else(|| "values".to_owned(), Metric::words),
        words: metric.as_ref().map_or(SPEED, Metric::comparatives),
        reference: reference.name.clone(),
        family: judged.len(),
        confidence: question.confidence,
        equal_within: question.equal_within,
        resolution: question.resolution,
    };
    if args.json {
        let block = block.ok();
        let document =
            document(&what, metric.as_ref(), (&groups, &sets), &judged, (&notes, block.as_deref()));
        println!("{}", serde_json::to_string_pretty(&document)?);
    } else {
        match block {
            Ok(block) => println!("{block}"),
            Err(why) => println!("no ministat block: {why}\n"),
        }
        print!("{}", sentences(&what, &judged, colour()));
        notes.iter().for_each(|note| println!("  note: {note}"));
    }
    for warning in sets.iter().flat_map(Set::warnings) {
        eprintln!("linerate: {warning}");
    }
    let failed = judged.iter().any(|judged| judged.regresses == Some(true));
    Ok(if failed { Exit::Failed } else { Exit::Done })
}

/// Whether people read standard output on a terminal that shows colours.
fn colour() -> bool {
    std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none()
}

/// The metric of the records, if there are some.
fn metric(groups: &[Group], args: &Args) -> Option<Metric> {
    let first = groups.iter().find_map(|group| group.records().first());
    first.map(|record| args.metric.clone().unwrap_or_else(|| Metric::headline(record)))
}

fn question(sets: &[Set], metric: Option<&Metric>, args: &Args) -> Question {
    Question {
        confidence: args.verdict.confidence,
        equal_within: args.verdict.equal_within,
        resolution: sets.iter().map(|set| set.resolution).fold(0.0, f64::max),
        less_is_better: metric.map_or(args.less_is_better, Metric::less_is_better),
        by_round: args.by_round,
    }
}

/// Refuses what does not belong together, and says what else differs.
fn check(groups: &[Group], args: &Args) -> Result<Vec<String>> {
    let named: Vec<_> = groups.iter().map(|group| (group.name.as_str(), group.records())).collect();
    let mixed = sets::mixed(&named);
    if !mixed.is_empty() && !args.force {
        return Err(misuse(format!(
            "{}; compare what was measured alike, or use --force",
            mixed.join("; and ")
        )));
    }
    Ok([mixed, sets::notes(&named)].concat())
}

/// Which regressions the flags ask for.
fn regressions(args: &VerdictArgs) -> Regressions {
    match (&args.baseline, args.max_regression) {
        (None, _) => Regressions::Unasked,
        (Some(_), None) => Regressions::Any,
        (Some(_), Some(bound)) => Regressions::Beyond(bound),
    }
}

fn block(sets: &[Set], args: &Args) -> Result<String, ministat::Error> {
    let options = Options {
        version: match args.block.ministat {
            Some(BlockVersion::Classic) => Version::Classic,
            _ => Version::FreeBsd,
        },
        confidence: args.verdict.confidence,
        width: args.block.width,
        separate_bars: args.block.separate_bars,
        no_plot: args.block.no_plot,
        summary_only: args.block.summary_only,
        no_names: args.block.no_names,
    };
    let sets: Vec<(&str, &[f64])> =
        sets.iter().map(|set| (set.name.as_str(), set.values.as_slice())).collect();
    ministat::block(&sets, &options)
}

/// All of it, for machines.
fn document(
    what: &Compared,
    metric: Option<&Metric>,
    (groups, sets): (&[Group], &[Set]),
    judged: &[Judged],
    (notes, block): (&[String], Option<&str>),
) -> Value {
    let groups = groups.iter().zip(sets).map(|(group, set)| {
        let runs: Vec<&str> = group.records().iter().map(|record| record.id.as_str()).collect();
        let doubts: Vec<String> = set.warnings().collect();
        json!({"name": set.name, "values": set.values, "runs": runs, "doubts": doubts})
    });
    json!({
        "schema": SCHEMA,
        "metric": metric.map(ToString::to_string),
        "unit": metric.map(Metric::unit),
        "confidence_percent": what.confidence.percent(),
        "equal_within": what.equal_within,
        "resolution": what.resolution,
        "groups": groups.collect::<Vec<_>>(),
        "comparisons": judged.iter().map(|judged| comparison(what, judged)).collect::<Vec<_>>(),
        "notes": notes,
        "ministat": block,
    })
}
