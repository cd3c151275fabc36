//! The bench file: TOML enters; a [`Bench`] whose names all stand for something leaves, or which line
//! is wrong, why, and what to write instead.

mod device;
mod document;
mod place;
mod remote;
mod traffic;

use std::collections::BTreeSet;
use std::fmt::Display;
use std::path::Path;

use anyhow::{Context, Result};
use results::bench::{Axis, Compare};
use testbed::bench::{Bench, Strategy};
use toml::Spanned;
use wording::usage::misuse;

use document::{AxisEntry, Comparing, Document, StrategyEntry};

/// Repeats where the file does not say how many: as many as comparisons ask for.
const REPEATS: u32 = stats::comparison::ADVISED as u32;
/// More repeats than anyone waits for are a slip of the hand.
const MAX_REPEATS: u32 = 10_000;

/// The bench in `file`.
///
/// # Errors
/// Misuse, with the line, the reason and the remedy; or that the file cannot be read.
pub fn load(file: &Path) -> Result<Bench> {
    let bytes = foreign::file::read(file, foreign::file::LONGEST_TEXT)
        .with_context(|| format!("cannot read the bench file {}: check its name", file.display()))?;
    let text = String::from_utf8(bytes).map_err(|_| {
        misuse(format!("{} is no bench file: it is not text; name one that is TOML", file.display()))
    })?;
    let source = Source { file, text: &text };
    let document = document::read(&text).map_err(|(at, reason)| source.error(at, reason))?;
    source.bench(document)
}

/// An error at `line` of the bench file `origin`.
pub fn error_at(origin: &str, line: usize, reason: impl Display) -> anyhow::Error {
    misuse(format!("{origin}:{line}: {reason}"))
}

/// The text that values come from.
struct Source<'a> {
    file: &'a Path,
    text: &'a str,
}

impl Source<'_> {
    /// An error at byte `offset` of the text.
    fn error(&self, offset: usize, reason: impl Display) -> anyhow::Error {
        error_at(&self.file.display().to_string(), self.line(offset), reason)
    }

    fn line(&self, offset: usize) -> usize {
        let before = self.text.as_bytes().get(..offset).unwrap_or(self.text.as_bytes());
        1 + before.iter().filter(|byte| **byte == b'\n').count()
    }

    fn bench(&self, document: Document) -> Result<Bench> {
        let Document { name, duts, profiles, strategy, .. } = &document;
        self.check_kebab_case(name)?;
        let repeats = document.repeats.as_ref().map_or(REPEATS, |repeats| *repeats.get_ref());
        if let Some(written) = document.repeats.as_ref().filter(|_| !(1..=MAX_REPEATS).contains(&repeats)) {
            return Err(self.error(
                written.span().start,
                format!("{repeats} repeats: give at least 1 and at most {MAX_REPEATS}"),
            ));
        }
        self.check_names("DUT", "[[duts]]", duts.iter().map(|entry| &entry.name))?;
        self.check_names("profile", "[[profiles]]", profiles.iter().map(|entry| &entry.name))?;
        let (compare, baseline) = self.compared(&document)?;
        Ok(Bench {
            origin: self.file.display().to_string(),
            source: self.text.to_owned(),
            axis: self.axis(&document)?,
            name: name.get_ref().clone(),
            title: document.title.clone().unwrap_or_else(|| name.get_ref().clone()),
            article_figure: document.article_figure.clone(),
            repeats,
            order: document.order,
            seed: document.seed.unwrap_or(1),
            compare,
            baseline,
            strategy: self.strategy(strategy)?,
            duts: duts.iter().map(|entry| self.dut(entry, duts)).collect::<Result<_>>()?,
            profiles: profiles
                .iter()
                .map(|entry| self.profile(entry, *strategy.subcommand.get_ref()))
                .collect::<Result<_>>()?,
        })
    }

    /// What is compared, and the one that all others are compared with: by default the first.
    fn compared(&self, document: &Document) -> Result<(Compare, Option<String>)> {
        let comparing =
            document.compare.as_ref().map_or(Ok(Comparing(Some(Compare::Devices))), |written| {
                Comparing::read(written.get_ref()).map_err(|reason| self.error(written.span().start, reason))
            })?;
        let compare = comparing.0.unwrap_or_default();
        let (what, names): (_, Vec<&str>) = match compare {
            Compare::Devices => {
                ("DUT", document.duts.iter().map(|entry| entry.name.get_ref().as_str()).collect())
            }
            Compare::Profiles => {
                ("profile", document.profiles.iter().map(|entry| entry.name.get_ref().as_str()).collect())
            }
        };
        let Some(written) = &document.baseline else {
            let first = names.first().filter(|_| comparing.0.is_some());
            return Ok((compare, first.map(|name| (*name).to_owned())));
        };
        let wanted = written.get_ref();
        let reason = if comparing.0.is_none() {
            format!("compare = false and a baseline, '{wanted}': leave one of both out")
        } else if !names.contains(&wanted.as_str()) {
            format!("there is no {what} '{wanted}' to compare with: {}", known(&names))
        } else {
            return Ok((compare, Some(wanted.clone())));
        };
        Err(self.error(written.span().start, reason))
    }

    /// What the numbers of the devices or profiles count; either all places are on an axis that has a
    /// name, or there is none.
    fn axis(&self, document: &Document) -> Result<Option<Axis>> {
        let duts: Vec<_> = document.duts.iter().filter_map(|entry| entry.at.as_ref()).collect();
        let profiles: Vec<_> = document.profiles.iter().filter_map(|entry| entry.at.as_ref()).collect();
        let places = || duts.iter().chain(&profiles);
        if let Some(at) = places().find(|at| !(at.get_ref().is_finite() && *at.get_ref() >= 0.0)) {
            let reason = format!("at = {}: write a number from zero on", at.get_ref());
            return Err(self.error(at.span().start, reason));
        }
        match (&document.axis, duts.first().or(profiles.first()), profiles.first()) {
            (None, Some(at), _) => {
                let reason = "at is a place on an axis, and there is none: write [axis] name = \"rules\"";
                Err(self.error(at.span().start, reason))
            }
            (Some(axis), None, _) => {
                let reason = "nothing has a place on the axis: write at = 10 in [[duts]] or [[profiles]]";
                Err(self.error(axis.span().start, reason))
            }
            (Some(_), _, Some(at)) if !duts.is_empty() => {
                let reason =
                    "devices have places on the axis already: write at in [[duts]] or in [[profiles]]";
                Err(self.error(at.span().start, reason))
            }
            (axis, _, _) => Ok(axis.as_ref().map(|axis| {
                let AxisEntry { name, linear } = axis.get_ref();
                Axis { name: name.clone(), linear: *linear }
            })),
        }
    }

    /// Names of benches are also names of directories.
    fn check_kebab_case(&self, name: &Spanned<String>) -> Result<()> {
        let sound = |word: &str| {
            let kept = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
            !word.is_empty() && word.chars().all(kept)
        };
        if name.get_ref().split('-').all(sound) {
            return Ok(());
        }
        let reason = format!(
            "'{}' is no name for a bench: write words of small letters and digits, joined by -, like \
             firewall-rules",
            name.get_ref()
        );
        Err(self.error(name.span().start, reason))
    }

    /// Whether there are some, each once, that can be told from the / and the commas between them.
    fn check_names<'n>(
        &self,
        what: &str,
        section: &str,
        names: impl Iterator<Item = &'n Spanned<String>>,
    ) -> Result<()> {
        let mut seen = BTreeSet::new();
        for name in names {
            let text = name.get_ref();
            let at = name.span().start;
            if text.trim().is_empty() || text.contains(|c: char| c == '/' || c.is_control()) {
                let reason = format!("'{text}' is no name for a {what}: write some letters, but no /");
                return Err(self.error(at, reason));
            }
            if !seen.insert(text) {
                let reason = format!("there are two {what}s '{text}': give each a name of its own");
                return Err(self.error(at, reason));
            }
        }
        if seen.is_empty() {
            let last = self.text.len();
            return Err(
                self.error(last, format!("the matrix is empty: name at least one {what}, in {section}"))
            );
        }
        Ok(())
    }

    fn strategy(&self, entry: &StrategyEntry) -> Result<Strategy> {
        let options = self.options(entry.options.as_ref())?;
        let at = entry.options.as_ref().map_or(entry.subcommand.span().start, |options| options.span().start);
        Ok(Strategy { subcommand: *entry.subcommand.get_ref(), options, line: self.line(at) })
    }

    /// Flags as typed, but those that other keys say.
    fn options(&self, written: Option<&Spanned<Vec<String>>>) -> Result<Vec<String>> {
        let Some(written) = written else { return Ok(Vec::new()) };
        let options = written.get_ref();
        match options.iter().find(|option| matches!(option.as_str(), "--bidirectional" | "-b")) {
            None => Ok(options.clone()),
            Some(option) => {
                let reason = format!("{option} belongs to a profile: write directions = [\"both\"] there");
                Err(self.error(written.span().start, reason))
            }
        }
    }
}

fn known(names: &[&str]) -> String {
    format!("there are {}", names.join(", "))
}

#[cfg(test)]
mod tests;
