//! What is compared: words of the command line enter; named groups of repeats leave.
//!
//! A word is a file of numbers, a directory of records, a record, or the id of one. A file of
//! numbers and a directory are a group each; single records of one configuration are one together.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use results::facts::{self, Facts};
use results::record::{Record, Status};
use results::store;
use stats::ministat::data;
use wording::usage::{in_one_line, misuse};

use crate::metric::Metric;
use crate::sets::Set;

/// How files of numbers are read, and where runs are looked for.
pub struct Reader<'a> {
    /// From 1.
    pub column: usize,
    /// What divides columns.
    pub delimiters: &'a str,
    /// The directory of the runs that are named by id.
    pub runs: &'a Path,
}

/// The repeats of one configuration.
pub struct Group {
    /// Its name.
    pub name: String,
    /// What it holds.
    pub content: Content,
}

/// What a group holds.
pub enum Content {
    /// Plain numbers.
    Numbers(Vec<f64>),
    /// Records, of which one figure each is taken.
    Records(Vec<Record>),
}

impl Group {
    /// Its records, if it has some.
    pub fn records(&self) -> &[Record] {
        match &self.content {
            Content::Numbers(_) => &[],
            Content::Records(records) => records,
        }
    }

    /// Its values, of records `metric`.
    ///
    /// # Errors
    /// Misuse, where a record does not have that figure.
    pub fn set(&self, metric: Option<&Metric>) -> Result<Set> {
        match &self.content {
            Content::Numbers(values) => Ok(Set::of_numbers(&self.name, values)),
            Content::Records(records) => {
                Set::of_records(&self.name, records, metric).map_err(|missing| misuse(missing.to_string()))
            }
        }
    }
}

/// One word, read.
enum Word {
    Group(Group),
    Record(Box<Record>),
}

impl Reader<'_> {
    /// The groups of `words`, in their order; a group of single records stands where its first does. `warn` hears
    /// what was passed over.
    ///
    /// # Errors
    /// What cannot be read, or has nothing to compare, with the remedy.
    pub fn groups(&self, words: &[PathBuf], warn: &mut dyn FnMut(String)) -> Result<Vec<Group>> {
        let mut groups: Vec<Group> = Vec::new();
        let mut singles: Vec<(usize, Facts)> = Vec::new();
        for word in words {
            let record = match self.read(word, warn)? {
                Word::Group(group) => {
                    groups.push(group);
                    continue;
                }
                Word::Record(record) => *record,
            };
            let facts = single_facts(&record);
            let known = singles.iter().find(|(_, known)| *known == facts).map(|(at, _)| *at);
            match known.and_then(|at| groups.get_mut(at)) {
                Some(Group { content: Content::Records(records), .. }) => records.push(record),
                _ => {
                    singles.push((groups.len(), facts));
                    groups.push(Group { name: record.name.clone(), content: Content::Records(vec![record]) });
                }
            }
        }
        distinguish(&mut groups);
        Ok(groups)
    }

    fn read(&self, word: &Path, warn: &mut dyn FnMut(String)) -> Result<Word> {
        let name = word.display().to_string();
        if name == "-" {
            let numbers = foreign::file::up_to(std::io::stdin(), foreign::file::LONGEST);
            let numbers = numbers.context("cannot read the numbers on standard input")?;
            return self.numbers("<stdin>".to_owned(), &String::from_utf8_lossy(&numbers));
        }
        if word.is_dir() {
            return directory(word, warn);
        }
        if !word.exists() {
            let file = self.runs.join(format!("{name}.json"));
            if file.is_file() {
                return record(&file);
            }
            return Err(misuse(format!(
                "'{name}' is not a file, a directory or the id of a run in {}: name a result file, a directory of \
                 result files, or a file of numbers. --runs says where ids are looked up",
                self.runs.display()
            )));
        }
        let bytes = foreign::file::read(word, foreign::file::LONGEST)
            .with_context(|| format!("cannot read {name}"))?;
        let text = String::from_utf8_lossy(&bytes);
        if text.trim_start().starts_with('{') { record(word) } else { self.numbers(name, &text) }
    }

    fn numbers(&self, name: String, text: &str) -> Result<Word> {
        let values = data::column(text, self.column, self.delimiters).map_err(|malformed| {
            misuse(format!("{name}: {malformed}; --column and --delimiter say where the numbers are"))
        })?;
        if values.is_empty() {
            return Err(misuse(format!(
                "{name} has no numbers in column {}: --column and --delimiter say where they are",
                self.column
            )));
        }
        Ok(Word::Group(Group { name, content: Content::Numbers(values) }))
    }
}

/// All that single records of one configuration share.
fn single_facts(record: &Record) -> Facts {
    let mut all = facts::measurement(record);
    all.extend(facts::configuration(record));
    all
}

fn record(file: &Path) -> Result<Word> {
    let record = store::load(file)?;
    if record.status != Status::Complete {
        bail!("{} did not come to its end: leave it out, or run it again", file.display());
    }
    Ok(Word::Record(Box::new(record)))
}

fn directory(path: &Path, warn: &mut dyn FnMut(String)) -> Result<Word> {
    let loaded = store::load_all(path)?;
    for warning in loaded.warnings {
        warn(in_one_line(&warning.into()));
    }
    let (records, unfinished): (Vec<Record>, Vec<Record>) =
        loaded.records.into_iter().partition(|record| record.status == Status::Complete);
    for record in unfinished {
        warn(format!("{} did not come to its end", record.id));
    }
    if records.is_empty() {
        return Err(misuse(format!(
            "{} has no complete records: name a directory that a run wrote to, with --runs",
            path.display()
        )));
    }
    Ok(Word::Group(Group { name: path.display().to_string(), content: Content::Records(records) }))
}

/// Gives groups of the same name a number.
fn distinguish(groups: &mut [Group]) {
    let names: Vec<String> = groups.iter().map(|group| group.name.clone()).collect();
    for (at, group) in groups.iter_mut().enumerate() {
        let before = names.iter().take(at).filter(|name| **name == group.name).count();
        if before > 0 {
            group.name = format!("{} ({})", group.name, before + 1);
        }
    }
}
