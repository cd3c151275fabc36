//! The journal of a run that goes on: samples, trials and distributions enter one by one, each a line of JSON in
//! a file beside the record; leaves the record as far as it got, even if its writer was killed.
//!
//! A line costs microseconds and waits for no disk. The record itself is only replaced at the end:
//! to write and sync all of it in the middle of a load held up a generator on the same core for
//! milliseconds, and the device lost what then came at once.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::record::{GoalResult, LatencyTest, LoadLatency, Record, Sample, Trial};

/// What a run adds while it goes on.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Entry<'a> {
    /// A sample, with the counts of when its frames had time to return.
    Sample(Cow<'a, Sample>),
    /// A trial of a search, and what is found so far.
    Trial(Cow<'a, Trial>, Cow<'a, BTreeMap<String, GoalResult>>),
    /// A load of a latency test, with its distributions, and what all its loads have in common: a
    /// test without loads.
    Latency(Cow<'a, LoadLatency>, LatencyTest),
}

impl Entry<'_> {
    fn add_to(self, record: &mut Record) {
        match self {
            Self::Sample(sample) => {
                record.elapsed_s = record.elapsed_s.max(sample.at_s + sample.duration_s);
                record.samples.push(sample.into_owned());
            }
            Self::Trial(trial, results) => {
                record.finding.add_trial(trial.into_owned(), results.into_owned());
            }
            Self::Latency(load, common) => {
                record.finding.add_latency(load.into_owned(), common);
            }
        }
    }
}

/// How the names of journals end.
pub(super) const EXTENSION: &str = "journal";

/// Where the journal of the record in `path` is.
pub(super) fn path(record: &Path) -> PathBuf {
    record.with_extension(EXTENSION)
}

/// Adds a line to a journal, which is made if none is open. A file or a link of that name is
/// not of this run: it is refused.
pub(super) fn append(journal: &mut Option<File>, path: &Path, entry: &Entry) -> io::Result<()> {
    let file = match journal {
        Some(file) => file,
        None => journal.insert(OpenOptions::new().create_new(true).append(true).open(path)?),
    };
    let mut line = serde_json::to_vec(entry)?;
    line.push(b'\n');
    file.write_all(&line)
}

/// Adds what the journal in `path` holds, if there is one, to its record. A line that was cut off
/// ends it.
pub(super) fn complete(record: &mut Record, path: &Path) {
    let lines = foreign::file::read_text(path, foreign::file::LONGEST).unwrap_or_default();
    let entries = lines.lines().map_while(|line| serde_json::from_str::<Entry>(line).ok());
    entries.for_each(|entry| entry.add_to(record));
}
