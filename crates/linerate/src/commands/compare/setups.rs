//! The same bench on several machines: directories of records enter; a table for each comparison, with a line for each
//! directory, leaves.

use std::path::PathBuf;

use anyhow::Result;
use report::setups::{document, tables};
use report::terminal;
use results::store::{self, Loaded};
use wording::usage::misuse;

use super::{Args, colour};
use crate::Exit;

/// What `words` hold, if each is a directory beside whose records stands what their bench is; `None` otherwise.
pub fn loaded(words: &[PathBuf]) -> Result<Option<Vec<(String, Loaded)>>> {
    let mut setups = Vec::new();
    for word in words {
        if !results::bench::Bench::path(word).is_file() {
            return Ok(None);
        }
        setups.push((word.display().to_string(), store::load_all(word)?));
    }
    Ok(Some(setups))
}

/// Shows the `setups` side by side.
pub fn show(setups: &[(String, Loaded)], args: &Args) -> Result<Exit> {
    if args.metric.is_some() || args.verdict.baseline.is_some() || args.block.ministat.is_some() {
        return Err(misuse(
            "--metric, --baseline and --ministat are for repeats of single configurations, and these directories hold \
             benches: leave the flags out, or name directories of records",
        ));
    }
    let mut benches = Vec::new();
    for (name, loaded) in setups {
        let found =
            loaded.benches.iter().filter_map(|bench| report::bench::Bench::new(bench, &loaded.records));
        benches.extend(found.map(|bench| (name.as_str(), bench)));
    }
    let named: Vec<_> = benches.iter().map(|(name, bench)| (*name, bench)).collect();
    let tables = tables(&named);
    if tables.is_empty() {
        return Err(misuse(
            "these benches compare nothing that was measured: run them to their end, or write compare in their files",
        ));
    }
    if args.json {
        println!("{}", serde_json::to_string_pretty(&document(&tables))?);
    } else {
        print!("{}", terminal::setups(&tables, colour()));
    }
    Ok(Exit::Done)
}
