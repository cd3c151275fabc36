//! `linerate report`: records, certificates and flame graphs enter, one HTML page leaves.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use report::html::{Contents, FlameGraph};
use results::bench::Bench;
use results::store::{self, Document, Loaded};
use testbed::progress::colour;
use wording::usage::{in_one_line, misuse};

use crate::Exit;

#[derive(clap::Args)]
pub struct Args {
    /// Result files, or directories of them
    #[arg(required = true)]
    runs: Vec<PathBuf>,
    /// The page to write
    #[arg(long, short, value_name = "FILE", default_value = "report.html")]
    output: PathBuf,
    /// Page title
    #[arg(long, default_value = "Linerate load tests")]
    title: String,
    /// The device of a bench that its others are compared with, or the profile [default: what its file says]
    #[arg(long, value_name = "NAME")]
    baseline: Option<String>,
    /// A drawing of `linerate explain flamegraph` to show on the page; may be given many times
    #[arg(long, value_name = "FILE.svg")]
    flamegraph: Vec<PathBuf>,
}

pub fn main(args: &Args) -> Result<Exit> {
    let mut loaded = load_all(&args.runs)?;
    if loaded.records.is_empty() && loaded.certificates.is_empty() {
        bail!("found nothing to report on: {NAME_ONE}, or the result of `linerate verify --json`");
    }
    if let Some(baseline) = &args.baseline {
        set_baseline(&mut loaded.benches, baseline)?;
    }
    let Loaded { records, certificates, benches, .. } = &loaded;
    if !records.is_empty() {
        eprintln!("{}", report::terminal::matrix(records, colour()));
    }
    for bench in benches.iter().filter_map(|bench| report::bench::Bench::new(bench, records)) {
        eprintln!("{}\n\n{}", bench.description.title, report::terminal::bench(&bench, colour()));
    }
    for certificate in certificates {
        eprintln!("{}", report::terminal::certificate(certificate, colour()));
    }
    let flame_graphs = args.flamegraph.iter().map(|file| flame_graph(file)).collect::<Result<Vec<_>>>()?;
    let contents = Contents { records, benches, certificates, flame_graphs: &flame_graphs };
    write(&contents, &args.title, &args.output)?;
    Ok(Exit::Done)
}

/// Makes `name` the baseline of all benches that have such a device or profile.
fn set_baseline(benches: &mut [Bench], name: &str) -> Result<()> {
    // All of them, not only the first.
    let known = benches.iter_mut().map(|bench| usize::from(bench.compare_with(name))).sum::<usize>();
    if known > 0 {
        return Ok(());
    }
    let duts = benches.iter().flat_map(|bench| &bench.duts).map(|dut| dut.name.as_str());
    let profiles = benches.iter().flat_map(|bench| &bench.profiles).map(|profile| profile.name.as_str());
    let names: Vec<&str> = duts.chain(profiles).collect();
    Err(misuse(match names.as_slice() {
        [] => "--baseline is a device or a profile of a bench, and these records are of none".to_owned(),
        names => format!("there is nothing called '{name}' to compare with; there are: {}", names.join(", ")),
    }))
}

/// The drawing in `file`, called as the file.
fn flame_graph(file: &Path) -> Result<FlameGraph> {
    let svg = foreign::file::read_text(file, foreign::file::LONGEST)
        .with_context(|| format!("cannot read the flame graph {}", file.display()))?;
    if !svg.contains("<svg") {
        bail!(
            "{} is no SVG: name a drawing that `linerate explain flamegraph --output FILE.svg` made",
            file.display()
        );
    }
    let name = file.file_stem().unwrap_or(file.as_os_str()).to_string_lossy().into_owned();
    Ok(FlameGraph { name, svg })
}

const NAME_ONE: &str = "name a directory that `linerate ramp` or `linerate bench` wrote to";

/// All records of the directories and files in `paths`, and the benches that they are of.
pub fn load(paths: &[PathBuf]) -> Result<Loaded> {
    let loaded = load_all(paths)?;
    if loaded.records.is_empty() {
        bail!("no records found: {NAME_ONE}");
    }
    Ok(loaded)
}

/// All that the directories and files in `paths` hold; says what was passed over in directories.
fn load_all(paths: &[PathBuf]) -> Result<Loaded> {
    let mut all = Loaded::default();
    for path in paths {
        if path.is_dir() {
            let loaded = store::load_all(path)?;
            for warning in loaded.warnings {
                eprintln!("linerate: passed over: {}", in_one_line(&warning.into()));
            }
            all.records.extend(loaded.records);
            all.certificates.extend(loaded.certificates);
            all.benches.extend(loaded.benches);
        } else {
            match store::read(path)? {
                Document::Record(record) => all.records.push(*record),
                Document::Certificate(certificate) => all.certificates.push(*certificate),
                Document::Bench(bench) => all.benches.push(*bench),
            }
        }
    }
    all.benches = Bench::all(all.benches, &all.records);
    Ok(all)
}

/// Writes the page of `contents` to `file`.
pub fn write(contents: &Contents, title: &str, file: &Path) -> Result<()> {
    let written = File::create(file).map(BufWriter::new).and_then(|mut out| {
        report::html::write(contents, title, &mut out)?;
        out.flush()
    });
    written.with_context(|| format!("cannot write {}", file.display()))?;
    eprintln!("report: {}", file.display());
    Ok(())
}
