//! The bench file as it is written: TOML enters; its entries leave, or what is wrong with it, where,
//! and what to write instead, without words that only programmers know.

use std::collections::BTreeMap;
use std::net::IpAddr;

use anyhow::Result;
use results::bench::Compare;
use serde::Deserialize;
use testbed::bench::{Configuration, Direction, Order, Subcommand};
use toml::Spanned;
use wording::toml::in_plain_words;
use wording::usage::misuse;

/// The file as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Document {
    pub name: Spanned<String>,
    pub title: Option<String>,
    pub article_figure: Option<String>,
    pub repeats: Option<Spanned<u32>>,
    #[serde(default)]
    pub order: Order,
    pub seed: Option<u64>,
    pub baseline: Option<Spanned<String>>,
    pub compare: Option<Spanned<toml::Value>>,
    pub axis: Option<Spanned<AxisEntry>>,
    pub strategy: StrategyEntry,
    #[serde(default)]
    pub duts: Vec<DutEntry>,
    #[serde(default)]
    pub profiles: Vec<ProfileEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct StrategyEntry {
    #[serde(rename = "use")]
    pub subcommand: Spanned<Subcommand>,
    pub options: Option<Spanned<Vec<String>>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct AxisEntry {
    pub name: String,
    #[serde(default)]
    pub linear: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct DutEntry {
    pub name: Spanned<String>,
    pub extends: Option<Spanned<String>>,
    pub dut: Option<Spanned<String>>,
    pub ports: Option<Spanned<String>>,
    pub gateways: Option<Spanned<String>>,
    pub engine: Option<Spanned<String>>,
    pub port0: Option<Spanned<String>>,
    pub port1: Option<Spanned<String>>,
    pub options: Option<Spanned<Vec<String>>>,
    pub host: Option<Spanned<String>>,
    pub driver: Option<Spanned<String>>,
    pub driver_options: Option<Spanned<BTreeMap<String, String>>>,
    pub sudo: Option<bool>,
    #[serde(default)]
    pub denies: Vec<IpAddr>,
    #[serde(default)]
    pub commands: Vec<String>,
    #[serde(default)]
    pub undo: Vec<String>,
    #[serde(default)]
    pub requires: Vec<String>,
    pub at: Option<Spanned<f64>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct ProfileEntry {
    pub name: Spanned<String>,
    pub profile: Option<String>,
    pub size: Option<String>,
    pub flows: Option<String>,
    pub ip: Option<String>,
    pub vlan: Option<String>,
    pub datagram: Option<u32>,
    pub directions: Option<Spanned<Vec<Direction>>>,
    #[serde(default)]
    pub commands: Vec<String>,
    #[serde(default)]
    pub undo: Vec<String>,
    #[serde(default)]
    pub requires: Vec<String>,
    pub at: Option<Spanned<f64>>,
}

/// What `compare` asks for: devices or profiles, or neither.
pub(super) struct Comparing(pub Option<Compare>);

impl Comparing {
    /// Reads `true`, `false`, `"devices"` or `"profiles"`.
    pub fn read(written: &toml::Value) -> Result<Self, String> {
        let compared = written.as_bool().map(|compares| compares.then_some(Compare::Devices));
        let named = match written.as_str() {
            Some("devices") => Some(Some(Compare::Devices)),
            Some("profiles") => Some(Some(Compare::Profiles)),
            _ => None,
        };
        let wrong = || format!("compare = {written}: write \"devices\", \"profiles\" or false");
        compared.or(named).map(Self).ok_or_else(wrong)
    }
}

impl ProfileEntry {
    /// What configures devices for it.
    pub fn configuration(&self) -> Configuration {
        let Self { commands, undo, requires, .. } = self;
        Configuration { commands: commands.clone(), undo: undo.clone(), requires: requires.clone() }
    }

    pub fn tunables(&self) -> [(&'static str, &Option<String>); 4] {
        [("--size", &self.size), ("--flows", &self.flows), ("--ip", &self.ip), ("--vlan", &self.vlan)]
    }

    /// The flags that say what generators send.
    pub fn datagram_flags(&self) -> Result<Vec<(&'static str, String)>> {
        let others = self.profile.is_some() || self.tunables().iter().any(|(_, value)| value.is_some());
        match self.datagram {
            Some(bytes) if !others => Ok(vec![("--datagram", bytes.to_string())]),
            Some(_) => Err(misuse("datagram replaces profile, size, flows, ip and vlan: leave these out")),
            None => Err(misuse("generators send datagrams: write datagram = 64, the bytes of its payload")),
        }
    }
}

/// What `text` holds; else where it is wrong, by its bytes, and why.
pub(super) fn read(text: &str) -> Result<Document, (usize, String)> {
    toml::from_str(text).map_err(|error| {
        let span = error.span().unwrap_or_default();
        (span.start, in_plain_words(error.message(), text.get(span).unwrap_or_default()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> (usize, String) {
        read(text).err().unwrap()
    }

    #[test]
    fn what_the_parser_says_is_said_so_that_people_know_what_to_write() {
        assert_eq!(refused("").1, "`name` is missing: write name = …");
        let (at, twice) = refused("name = \"x\"\nname = \"y\"\n");
        assert_eq!((at, twice.as_str()), (11, "`name` is there twice: keep one"));
        for (line, clue) in [
            ("repeats = \"3\"", "a whole number without quotes"),
            ("title = 3", "text in quotes"),
            ("duts = 3", "a list, like [\"one\", \"two\"]"),
        ] {
            let said = refused(&format!("name = \"x\"\n{line}\n")).1;
            assert!(said.ends_with(&format!("expected {clue}")), "{said}");
        }
    }
}
