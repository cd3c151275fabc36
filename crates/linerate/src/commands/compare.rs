//! `linerate compare`: repeats of several configurations enter; which is better, and what that rests
//! on, leaves.

mod group;

use std::io::IsTerminal;
use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::ValueEnum;
use report::judgement::{Compared, Judged, verdict_word};
use report::metric::{Metric, Reading};
use report::terminal::compare as sentences;
use results::facts;
use serde_json::{Value, json};
use stats::comparison::{Outlook, Question, Verdict, compare, regresses};
use stats::ministat::{self, Options, Version};
use stats::{Confidence, ranks};
use wording::usage::misuse;

use crate::Exit;
use crate::args;
use group::{Group, Reader};

/// The schema of what `--json` prints.
const SCHEMA: &str = "linerate/compare/1";

#[derive(clap::Args)]
pub struct Args {
    /// What to compare, the first with all others: files of numbers as ministat reads them,
    /// directories of records (the repeats of one configuration), records, or ids of runs
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
    let reader = Reader { column: args.block.column, delimiters: &args.block.delimiter, runs: &args.runs };
    let words: Vec<PathBuf> = args.verdict.baseline.iter().chain(&args.groups).cloned().collect();
    let groups = reader.groups(&words)?;
    let notes = check(&groups, args)?;
    let sets = groups.iter().map(|group| Set::new(group, args)).collect::<Result<Vec<_>>>()?;
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
    let judged = judge(reference, others, &question, args)?;
    let what = Compared {
        metric: metric.as_ref().map_or_else(|| "values".to_owned(), Metric::words),
        is_loss: metric == Some(Metric::Loss),
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
            Err(why) => println!("no block as ministat's: {why}\n"),
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

/// A group's values.
struct Set {
    name: String,
    values: Vec<f64>,
    /// The coarsest of its readings.
    resolution: f64,
    /// Whose figures are doubtful, and why.
    doubts: Vec<(String, Vec<String>)>,
}

impl Set {
    fn new(group: &Group, args: &Args) -> Result<Self> {
        let readings = group.readings(args.metric.as_ref())?;
        let doubtful = |(record, reading): (&results::Record, &Reading)| {
            (!reading.doubts.is_empty()).then(|| (record.id.clone(), reading.doubts.clone()))
        };
        Ok(Self {
            name: group.name.clone(),
            resolution: readings.iter().map(|reading| reading.resolution).fold(0.0, f64::max),
            doubts: group.records().iter().zip(&readings).filter_map(doubtful).collect(),
            values: readings.into_iter().map(|reading| reading.value).collect(),
        })
    }

    fn warnings(&self) -> impl Iterator<Item = String> {
        self.doubts.iter().map(|(id, doubts)| format!("{id} is doubtful: {}", doubts.join("; ")))
    }
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
    let mut mixed = Vec::new();
    for group in groups {
        let facts = group.records().iter().map(|record| {
            let mut facts = facts::measurement(record);
            facts.extend(facts::configuration(record));
            (record.id.as_str(), facts)
        });
        let differences = facts::differences(facts);
        if !differences.is_empty() {
            mixed.push(format!("the records of {} differ in {}", group.name, differences.join("; ")));
        }
    }
    let firsts = || groups.iter().filter_map(|group| Some((group.name.as_str(), group.records().first()?)));
    let measured = facts::differences(firsts().map(|(name, record)| (name, facts::measurement(record))));
    if !measured.is_empty() {
        mixed.push(format!("the groups were not measured alike: {}", measured.join("; ")));
    }
    if !mixed.is_empty() && !args.force {
        return Err(misuse(format!(
            "{}; compare what was measured alike, or use --force",
            mixed.join("; and ")
        )));
    }
    let configured = facts::differences(firsts().map(|(name, record)| (name, facts::configuration(record))));
    let mut notes = mixed;
    if !configured.is_empty() {
        notes.push(format!("they differ in {}", configured.join("; ")));
    }
    notes.extend(one_after_another(groups));
    Ok(notes)
}

/// Whether all runs of a group ended before those of the next began: then what else changed with
/// time looks like a difference.
fn one_after_another(groups: &[Group]) -> Option<String> {
    let times = groups.iter().filter_map(|group| {
        let started = || group.records().iter().map(|record| record.started.as_str());
        Some((started().min()?, started().max()?))
    });
    let mut times: Vec<(&str, &str)> = times.collect();
    times.sort_unstable();
    let apart = times.len() > 1 && times.windows(2).all(|pair| matches!(pair, [one, next] if one.1 < next.0));
    apart.then(|| {
        "the groups were measured one after the other: what changed meanwhile looks like a difference; take \
         turns where it matters"
            .to_owned()
    })
}

fn judge(reference: &Set, others: &[Set], question: &Question, args: &Args) -> Result<Vec<Judged>> {
    if let Some(odd) = others.iter().find(|set| args.by_round && set.values.len() != reference.values.len()) {
        return Err(misuse(format!(
            "{} has {} values and {} has {}: by round, each needs one of every round",
            reference.name,
            reference.values.len(),
            odd.name,
            odd.values.len()
        )));
    }
    let sets: Vec<&[f64]> = others.iter().map(|set| set.values.as_slice()).collect();
    let comparisons = compare(&reference.values, &sets, question);
    let regressions = match (&args.verdict.baseline, args.verdict.max_regression) {
        (None, _) => vec![None; sets.len()],
        (Some(_), bound) => {
            others.iter().try_for_each(|set| can_tell(reference, set, question.confidence))?;
            let worse = || comparisons.iter().map(|one| one.verdict == Verdict::Worse).collect();
            let found =
                bound.map_or_else(worse, |bound| regresses(&reference.values, &sets, bound, question));
            found.into_iter().map(Some).collect()
        }
    };
    let judged = others.iter().zip(comparisons).zip(regressions);
    Ok(judged
        .map(|((set, comparison), regresses)| Judged {
            regresses,
            ..Judged::new(&set.name, comparison, &reference.values, &set.values, question)
        })
        .collect())
}

/// Refuses a check that could never fail.
fn can_tell(reference: &Set, set: &Set, confidence: Confidence) -> Result<()> {
    let [before, now] = [reference, set].map(|set| set.values.len());
    if ranks::least_p(before, now) <= confidence.error() {
        return Ok(());
    }
    let enough =
        (2..).find(|count| ranks::least_p(*count, *count) <= confidence.error()).unwrap_or(usize::MAX);
    Err(misuse(format!(
        "{before} values of {} and {now} of {} can prove nothing at {confidence} confidence, so no regression \
         either: measure each at least {enough} times",
        reference.name, set.name
    )))
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

/// One comparison, for machines; changes are shares of the reference.
pub fn comparison(what: &Compared, judged: &Judged) -> Value {
    let found = &judged.comparison;
    let more = match found.verdict {
        Verdict::NotProven(Outlook::Repeats(more)) => Some(more),
        _ => None,
    };
    json!({
        "group": judged.name,
        "reference": what.reference,
        "verdict": verdict_word(found.verdict, what.is_loss),
        "differs": found.differs,
        "more_repeats": more,
        "change": found.change,
        "interval": found.interval,
        "t_test": if found.signed_rank_p.is_some() { "student_by_round" } else { "welch" },
        "t_p": found.t_p,
        "t_p_adjusted": found.t_p_adjusted,
        "equality_p_adjusted": found.equality_p_adjusted,
        "mann_whitney_p": found.rank_p,
        "wilcoxon_p": found.signed_rank_p,
        "hodges_lehmann": found.shift.map(|(shift, interval)| json!({"change": shift, "interval": interval})),
        "medians": judged.medians.map(|medians| json!({"ratio": medians.ratio, "interval": medians.interval})),
        "ministat_differs": found.ministat,
        "practices_disagree": found.disagrees_with_ministat(),
        "regresses": judged.regresses,
    })
}
