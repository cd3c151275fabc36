//! The configuration as it is written: TOML enters; its entries leave, each read by itself, so that one
//! that is wrong does not hide what is wrong with the others.

use std::collections::HashSet;
use std::ops::Range;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};
use wording::toml::in_plain_words;

use super::{Idle, Precedence, Problem};
use crate::dataplane::acl::Action;

/// The file as it is written.
#[derive(Default)]
pub(super) struct Document {
    pub control: Option<ControlEntry>,
    pub workers: Option<WorkersEntry>,
    /// Whether it says something of the workers, even if that cannot be read.
    pub names_workers: bool,
    pub routes_from_kernel: Option<Spanned<bool>>,
    pub routes_file: Option<Spanned<String>>,
    pub metrics: Option<Spanned<String>>,
    pub interfaces: Vec<InterfaceEntry>,
    /// The names of those that cannot be read.
    pub misread: HashSet<String>,
    pub bridges: Vec<BridgeEntry>,
    pub access_lists: Vec<AccessListEntry>,
    pub states: Option<StatesEntry>,
    /// The names of all of them, of those that cannot be read, too.
    pub named_lists: HashSet<String>,
    pub routes: Vec<RouteEntry>,
    pub neighbours: Vec<NeighbourEntry>,
    /// The length of its text: where what is missing would stand.
    pub end: usize,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct ControlEntry {
    pub socket: Spanned<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct WorkersEntry {
    pub cores: Spanned<Vec<Spanned<usize>>>,
    #[serde(default)]
    pub idle: Idle,
    #[serde(default)]
    pub precedence: Precedence,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct InterfaceEntry {
    pub name: Spanned<String>,
    pub device: Spanned<String>,
    pub mac: Option<Spanned<String>>,
    pub mtu: Option<Spanned<u32>>,
    pub up: Option<bool>,
    pub tap: Option<Spanned<bool>>,
    #[serde(default)]
    pub rss: bool,
    #[serde(default)]
    pub addresses: Vec<Spanned<String>>,
    pub bridge: Option<Spanned<String>>,
    pub cross_connect: Option<Spanned<String>>,
    pub access_list_in: Option<Spanned<String>>,
    pub access_list_out: Option<Spanned<String>>,
    #[serde(default)]
    pub vlan: Vec<VlanEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct VlanEntry {
    pub id: Spanned<u32>,
    pub mtu: Option<Spanned<u32>>,
    pub up: Option<bool>,
    pub tap: Option<Spanned<bool>>,
    #[serde(default)]
    pub addresses: Vec<Spanned<String>>,
    pub bridge: Option<Spanned<String>>,
    pub cross_connect: Option<Spanned<String>>,
    pub access_list_in: Option<Spanned<String>>,
    pub access_list_out: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct BridgeEntry {
    pub name: Spanned<String>,
    pub ageing: Option<Spanned<u32>>,
    pub stations: Option<Spanned<u32>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct AccessListEntry {
    pub name: Spanned<String>,
    #[serde(default)]
    pub rules: Vec<RuleEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct RuleEntry {
    pub action: Action,
    pub source: Option<Spanned<String>>,
    pub destination: Option<Spanned<String>>,
    pub protocol: Option<Spanned<String>>,
    pub source_port: Option<Spanned<String>>,
    pub destination_port: Option<Spanned<String>>,
    pub icmp_type: Option<Spanned<u32>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct StatesEntry {
    pub maximum: Option<Spanned<u32>>,
    pub tcp_opening: Option<Spanned<u32>>,
    pub tcp_established: Option<Spanned<u32>>,
    pub tcp_closing: Option<Spanned<u32>>,
    pub udp: Option<Spanned<u32>>,
    pub icmp: Option<Spanned<u32>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct RouteEntry {
    pub prefix: Spanned<String>,
    pub via: Option<Vec<HopEntry>>,
    #[serde(default)]
    pub drop: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct HopEntry {
    pub gateway: Spanned<String>,
    pub interface: Option<Spanned<String>>,
    pub weight: Option<Spanned<u32>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct NeighbourEntry {
    pub interface: Spanned<String>,
    pub address: Spanned<String>,
    pub mac: Spanned<String>,
}

/// The most problems that are told at once: who mends so many asks again.
pub(super) const MOST_PROBLEMS: usize = 100;

/// What is wrong, by the place in the text: the first ones that were found.
#[derive(Default)]
pub(super) struct Problems(Vec<(usize, String)>);

impl Problems {
    /// Notes one at byte `at` of the text.
    pub fn add(&mut self, at: usize, reason: impl Into<String>) {
        if self.0.len() < MOST_PROBLEMS {
            self.0.push((at, reason.into()));
        }
    }

    /// All without their places.
    pub fn reasons(self) -> Vec<String> {
        self.0.into_iter().map(|(_, reason)| reason).collect()
    }

    /// The value, or `None` and a note of what is wrong with what stands at `at`.
    pub fn check<T>(&mut self, at: usize, value: Result<T, impl ToString>) -> Option<T> {
        value.map_err(|error| self.add(at, error.to_string())).ok()
    }

    /// All, in the order of lines.
    pub fn in_lines_of(mut self, text: &str) -> Vec<Problem> {
        self.0.sort_by_key(|(at, _)| *at);
        let (mut line, mut counted) = (1, 0);
        let problem = |(at, reason): (usize, String)| {
            let between = text.as_bytes().get(counted..at).unwrap_or_default();
            line += between.iter().filter(|byte| **byte == b'\n').count();
            counted = at;
            Problem { line, reason }
        };
        self.0.into_iter().map(problem).collect()
    }
}

/// What `text` holds, as far as it can be read; `None` if it is no TOML.
pub(super) fn read(text: &str, problems: &mut Problems) -> Option<Document> {
    let (table, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        note(text, error, problems);
    }
    if !errors.is_empty() {
        return None;
    }
    let mut document = Document { end: text.trim_end().len(), ..Document::default() };
    for (key, value) in table.into_inner() {
        let at = key.span();
        match key.get_ref().as_ref() {
            "control" => document.control = entry(text, value, problems),
            "workers" => {
                document.names_workers = true;
                document.workers = entry(text, value, problems);
            }
            "interface" => {
                let named = names(&value);
                document.interfaces = entries(text, "interface", value, problems);
                let read =
                    |name: &String| document.interfaces.iter().any(|entry| entry.name.get_ref() == name);
                document.misread = named.into_iter().filter(|name| !read(name)).collect();
            }
            "routes-from-kernel" => document.routes_from_kernel = entry(text, value, problems),
            "routes-file" => document.routes_file = entry(text, value, problems),
            "metrics" => document.metrics = entry(text, value, problems),
            "access-list" => {
                document.named_lists = names(&value).into_iter().collect();
                document.access_lists = entries(text, "access-list", value, problems);
            }
            "states" => document.states = entry(text, value, problems),
            "bridge" => document.bridges = entries(text, "bridge", value, problems),
            "route" => document.routes = entries(text, "route", value, problems),
            "neighbour" => document.neighbours = entries(text, "neighbour", value, problems),
            unknown => problems.add(
                at.start,
                format!(
                    "unknown key `{unknown}`: there are routes-from-kernel, routes-file, metrics, [control], [workers], \
                     [[interface]], [[bridge]], [[access-list]], [states], [[route]] and [[neighbour]]"
                ),
            ),
        }
    }
    Some(document)
}

/// The names in a list of tables.
fn names(value: &Spanned<DeValue>) -> Vec<String> {
    let tables = value.get_ref().as_array().into_iter().flatten();
    let names = tables.filter_map(|table| table.get_ref().get("name")?.get_ref().as_str());
    names.map(str::to_owned).collect()
}

fn entries<T: DeserializeOwned>(
    text: &str,
    name: &str,
    value: Spanned<DeValue>,
    problems: &mut Problems,
) -> Vec<T> {
    let at = value.span().start;
    match value.into_inner() {
        DeValue::Array(list) => list.into_iter().filter_map(|value| entry(text, value, problems)).collect(),
        _ => {
            problems.add(at, format!("there may be several: write [[{name}]]"));
            Vec::new()
        }
    }
}

fn entry<T: DeserializeOwned>(text: &str, value: Spanned<DeValue>, problems: &mut Problems) -> Option<T> {
    let whole = value.span();
    match T::deserialize(ValueDeserializer::from(value)) {
        Ok(entry) => Some(entry),
        Err(error) => {
            note_at(text, error.message(), error.span().unwrap_or(whole), problems);
            None
        }
    }
}

fn note(text: &str, error: &toml::de::Error, problems: &mut Problems) {
    note_at(text, error.message(), error.span().unwrap_or_default(), problems);
}

fn note_at(text: &str, message: &str, span: Range<usize>, problems: &mut Problems) {
    let part = text.get(span.clone()).unwrap_or_default();
    problems.add(span.start, in_plain_words(message, part));
}
