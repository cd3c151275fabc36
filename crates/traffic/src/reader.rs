//! TOML with line numbers: a document enters; values that know their place leave.
//!
//! serde loses the place of a value inside an enum, and a profile's mistakes are to be reported
//! with their line and the known names, so the tree is read by hand.

use std::fmt::Display;
use std::time::Duration;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::Error;

/// The longest time.
const LONGEST_TIME: Duration = Duration::from_hours(24);

/// The text that values come from.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a> {
    /// The file, or whatever the text came from.
    pub origin: &'a str,
    /// The text.
    pub text: &'a str,
}

impl Source<'_> {
    /// An error at byte `offset` of the text.
    pub fn error(&self, offset: usize, reason: impl Display) -> Error {
        let before = self.text.as_bytes().get(..offset).unwrap_or(self.text.as_bytes());
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        Error::Document { origin: self.origin.to_owned(), line, reason: reason.to_string() }
    }
}

/// A table whose keys are all to be known.
pub(crate) struct Section<'a> {
    source: Source<'a>,
    table: &'a DeTable<'a>,
    name: String,
    offset: usize,
    known: Vec<&'static str>,
}

/// A value and its place.
#[derive(Clone, Copy)]
pub(crate) struct Node<'a> {
    source: Source<'a>,
    value: &'a DeValue<'a>,
    offset: usize,
}

impl<'a> Section<'a> {
    /// The whole document.
    pub fn root(source: Source<'a>, table: &'a DeTable<'a>) -> Self {
        Self { source, table, name: "a profile".to_owned(), offset: 0, known: Vec::new() }
    }

    /// The value of `key`, which is known from now on.
    pub fn get(&mut self, key: &'static str) -> Option<Node<'a>> {
        if !self.known.contains(&key) {
            self.known.push(key);
        }
        let (_, value) = self.table.iter().find(|(name, _)| name.get_ref() == key)?;
        Some(Node { source: self.source, value: value.get_ref(), offset: value.span().start })
    }

    /// The table under `key`.
    pub fn section(&mut self, key: &'static str) -> Result<Option<Section<'a>>, Error> {
        self.get(key).map(|node| node.section(key)).transpose()
    }

    /// The one of `keys` that is there, with its value.
    ///
    /// # Errors
    /// When several are there, or none.
    pub fn one_of(&mut self, keys: &[&'static str]) -> Result<(&'static str, Node<'a>), Error> {
        let mut found = None;
        for key in keys {
            let Some(node) = self.get(key) else { continue };
            if let Some((other, _)) = found {
                return Err(node.error(format!("{key} and {other} exclude each other: keep one")));
            }
            found = Some((*key, node));
        }
        found.ok_or_else(|| self.error(format!("{} needs one of {}", self.name, keys.join(", "))))
    }

    /// An error at the start of this table.
    pub fn error(&self, reason: impl Display) -> Error {
        self.source.error(self.offset, reason)
    }

    /// Ends reading.
    ///
    /// # Errors
    /// When a key was never asked for; names those that were.
    pub fn finish(self) -> Result<(), Error> {
        let unknown = self.table.keys().filter(|key| !self.known.contains(&key.get_ref().as_ref()));
        match unknown.min_by_key(|key| key.span().start) {
            None => Ok(()),
            Some(key) => Err(self.source.error(
                key.span().start,
                format!("unknown key '{}': {} has {}", key.get_ref(), self.name, self.known.join(", ")),
            )),
        }
    }
}

impl<'a> Node<'a> {
    /// An error at this value.
    pub fn error(&self, reason: impl Display) -> Error {
        self.source.error(self.offset, reason)
    }

    /// Whether this is a table.
    pub fn is_table(&self) -> bool {
        self.value.is_table()
    }

    /// This value as text.
    pub fn text(&self) -> Result<&'a str, Error> {
        self.value.as_str().ok_or_else(|| self.wrong("text in quotes"))
    }

    /// This value as true or false.
    pub fn boolean(&self) -> Result<bool, Error> {
        self.value.as_bool().ok_or_else(|| self.wrong("true or false"))
    }

    /// This value as a number from `min` to `max`.
    pub fn number(&self, min: u128, max: u128) -> Result<u128, Error> {
        let integer = self.value.as_integer().ok_or_else(|| self.wrong("a whole number"))?;
        u128::from_str_radix(integer.as_str(), integer.radix())
            .ok()
            .filter(|number| (min..=max).contains(number))
            .ok_or_else(|| self.error(format!("{integer} is out of range: it can be {min} to {max}")))
    }

    /// This value as a time of at most a day.
    pub fn duration(&self) -> Result<Duration, Error> {
        let text = self.text()?;
        let duration = humantime::parse_duration(text).ok().filter(|duration| *duration <= LONGEST_TIME);
        duration.ok_or_else(|| {
            self.error(format!("'{text}' is not a time: write 20us, 1ms or 2s, at most a day"))
        })
    }

    /// This value as a list.
    pub fn items(&self) -> Result<Vec<Node<'a>>, Error> {
        let items = self.value.as_array().ok_or_else(|| self.wrong("a list in brackets"))?;
        let node = |item: &'a Spanned<DeValue<'a>>| Node {
            value: item.get_ref(),
            offset: item.span().start,
            ..*self
        };
        Ok(items.iter().map(node).collect())
    }

    /// This value as a table, called `name` in messages.
    pub fn section(&self, name: impl Into<String>) -> Result<Section<'a>, Error> {
        let table = self.value.as_table().ok_or_else(|| self.wrong("a table"))?;
        Ok(Section { source: self.source, table, name: name.into(), offset: self.offset, known: Vec::new() })
    }

    /// The error of a value of another type.
    pub fn wrong(&self, expected: &str) -> Error {
        self.error(format!("expected {expected}, found {}", self.value.type_str()))
    }
}
