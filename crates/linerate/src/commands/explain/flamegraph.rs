//! `linerate explain flamegraph`: in which functions the device's core spends its time.
//!
//! A device is loaded steadily, and its core is sampled meanwhile: never in a run that measures, since
//! sampling takes time of the same core. Or two files of folded stacks enter. An SVG leaves, with the
//! folded stacks beside it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use dut::DutSpec;
use explain::flame::{self, Captions, Folded};
use serde_json::json;
use testbed::core_profile::{self, CoreProfile, Request, SteadyLoad};
use testbed::stop;
use testbed::target::Target;
use wire::human;
use wording::usage::misuse;

use crate::Exit;
use crate::args::{self, Device, Traffic};

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    traffic: Traffic,
    #[command(flatten)]
    device: Device,
    /// Another device: draw --dut, red where it spends a larger share than this one
    #[arg(long, value_name = "DUT", conflicts_with = "ports", help_heading = "Measurement")]
    against: Option<DutSpec>,
    /// Two files of folded stacks, without any load: draw the shares of B, red where they are larger
    /// than A's
    #[arg(long, num_args = 2, value_names = ["A", "B"], conflicts_with_all = ["against", "dut", "ports"], help_heading = "Stacks from files")]
    difference: Option<Vec<PathBuf>>,
    /// A file of stacks from elsewhere, without any load: folded ones, or what `perf script` prints
    #[arg(long, value_name = "FILE", conflicts_with_all = ["against", "difference", "dut", "ports"], help_heading = "Stacks from files")]
    stacks: Option<PathBuf>,
    /// The load in each direction: a rate (500kpps), a share of what the device forwards at most (50%),
    /// or max, as much as the tester can
    #[arg(long, value_name = "RATE|SHARE", default_value = "max", value_parser = load, help_heading = "Measurement")]
    rate: SteadyLoad,
    /// How long the core is sampled
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = args::duration, help_heading = "Measurement")]
    duration: Duration,
    /// The drawing; the folded stacks are kept beside it
    #[arg(long, short, value_name = "FILE.svg", default_value = "flamegraph.svg", help_heading = "Output")]
    output: PathBuf,
    /// Print the facts of the drawing (samples, core, load) as JSON on standard output
    #[arg(long, help_heading = "Output")]
    json: bool,
}

/// Reads a load such as `500kpps`, `50%` or `max`.
fn load(text: &str) -> Result<SteadyLoad, String> {
    if text.ends_with('%') {
        return args::share_to_100(text).map(SteadyLoad::Share);
    }
    args::rate(text).map(SteadyLoad::Rate)
}

pub fn main(args: &Args) -> Result<Exit> {
    if args.output.extension().is_none_or(|ending| ending != "svg") {
        return Err(misuse(format!(
            "{} does not end in .svg: the drawing does, and the folded stacks beside it in .folded",
            args.output.display()
        )));
    }
    if let Some([before, after]) = args.difference.as_deref() {
        return between_files(args, before, after);
    }
    if let Some(file) = &args.stacks {
        return from_elsewhere(args, file);
    }
    let stop = stop::flag()?;
    let target = args.device.target_or("linux-router")?;
    let profile = args.traffic.profile()?;
    let request = Request {
        profile: &profile,
        directions: args.traffic.directions(),
        load: args.rate,
        duration: args.duration,
    };
    let take = |target: &Target| -> Result<CoreProfile> { core_profile::take(&request, target, &stop) };
    let taken = take(&target)?;
    let folded = args.output.with_extension("folded");
    write(&folded, &taken.folded.to_string())?;
    let Some(against) = &args.against else {
        let svg = flame::single(&taken.folded, &taken.captions()).map_err(|reason| anyhow!(reason))?;
        write(&args.output, &svg)?;
        show(args, &[&folded], &taken.captions(), json!([taken.json()]));
        return Ok(Exit::Done);
    };
    let against = target.with_dut(against.clone());
    let other = take(&against)?;
    let others = args.output.with_extension("against.folded");
    write(&others, &other.folded.to_string())?;
    let mut captions = Captions::of_difference(
        (&format!("{} ({})", other.name, other.load), &other.folded),
        (&format!("{} ({})", taken.name, taken.load), &taken.folded),
    );
    for taken in [&other, &taken] {
        let basis = format!("{}: {}", taken.name, taken.basis);
        let new = taken.notes.iter().filter(|note| !captions.notes.contains(note)).cloned();
        let new: Vec<String> = std::iter::once(basis).chain(new).collect();
        captions.notes.extend(new);
    }
    draw_difference(args, &other.folded, &taken.folded, &captions)?;
    show(args, &[&folded, &others], &captions, json!([taken.json(), other.json()]));
    Ok(Exit::Done)
}

/// The stacks in a file: folded, or as `perf script` prints them.
fn read(path: &Path) -> Result<Folded> {
    let text = foreign::file::read_text(path, foreign::file::LONGEST)
        .with_context(|| format!("cannot read {}", path.display()))?;
    let folded = Folded::parse(&text).or_else(|reason| Folded::of_perf_script(&text).map_err(|_| reason));
    let folded = folded.map_err(|reason| misuse(format!("{}: {reason}", path.display())))?;
    if folded.samples() == 0 {
        return Err(misuse(format!("{} has no samples", path.display())));
    }
    Ok(folded)
}

/// Draws the stacks in a file.
fn from_elsewhere(args: &Args, file: &Path) -> Result<Exit> {
    let stacks = read(file)?;
    let captions = Captions {
        title: format!("Where the time goes by {}", file.display()),
        basis: format!("{} samples; this drawing knows nothing of the load", human::count(stacks.samples())),
        notes: Vec::new(),
    };
    write(&args.output, &flame::single(&stacks, &captions).map_err(|reason| anyhow!(reason))?)?;
    show(args, &[], &captions, json!([]));
    Ok(Exit::Done)
}

/// Draws how two files of folded stacks differ.
fn between_files(args: &Args, before: &Path, after: &Path) -> Result<Exit> {
    let (one, other) = (read(before)?, read(after)?);
    let name = |path: &Path| path.display().to_string();
    let captions = Captions::of_difference((&name(before), &one), (&name(after), &other));
    draw_difference(args, &one, &other, &captions)?;
    show(args, &[], &captions, json!([]));
    Ok(Exit::Done)
}

fn draw_difference(args: &Args, before: &Folded, after: &Folded, captions: &Captions) -> Result<()> {
    write(&args.output, &flame::difference(before, after, captions).map_err(|reason| anyhow!(reason))?)
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// Says what was drawn, and what it rests on.
fn show(args: &Args, folded: &[&Path], captions: &Captions, profiles: serde_json::Value) {
    eprintln!("{}\n  {}", captions.title, captions.basis);
    captions.notes.iter().for_each(|note| eprintln!("  note: {note}"));
    eprintln!("drawing: {}", args.output.display());
    folded.iter().for_each(|path| eprintln!("folded stacks: {}", path.display()));
    if args.json {
        let files: Vec<_> = folded.iter().map(|path| path.display().to_string()).collect();
        println!(
            "{}",
            json!({
                "svg": args.output.display().to_string(),
                "folded": files,
                "title": captions.title,
                "basis": captions.basis,
                "notes": captions.notes,
                "profiles": profiles,
            })
        );
    }
}

#[cfg(test)]
mod tests {
    use wire::rate::Rate;

    use super::*;

    #[test]
    fn loads_are_read() {
        assert_eq!(load("max"), Ok(SteadyLoad::Rate(Rate::Max)));
        assert_eq!(load("50%"), Ok(SteadyLoad::Share(0.5)));
        assert_eq!(load("100%"), Ok(SteadyLoad::Share(1.0)));
        assert_eq!(load("500kpps"), Ok(SteadyLoad::Rate(Rate::Pps(500_000.0))));
        for text in ["", "%", "0%", "101%", "half", "-1kpps"] {
            assert!(load(text).is_err(), "{text}");
        }
    }
}
