//! The profiles of a bench file: an entry enters; the flags that say what is sent leave, or which line is
//! wrong.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::path::Path;
use std::str::FromStr;

use anyhow::Result;
use testbed::bench::{Direction, Profile, Subcommand};
use wording::usage::{in_one_line, misuse};

use super::Source;
use super::document::ProfileEntry;
use crate::args::{Traffic, is_file};

impl Source<'_> {
    /// What `entry` says to send.
    pub(super) fn profile(&self, entry: &ProfileEntry, subcommand: Subcommand) -> Result<Profile> {
        let at = entry.name.span().start;
        let directions = match &entry.directions {
            None => vec![Direction::One],
            Some(written) => {
                let directions = written.get_ref();
                let distinct: BTreeSet<&Direction> = directions.iter().collect();
                if distinct.is_empty() || distinct.len() < directions.len() {
                    let reason = "write directions = [\"one\"], [\"both\"] or [\"one\", \"both\"]";
                    return Err(self.error(written.span().start, reason));
                }
                directions.clone()
            }
        };
        let flags = match subcommand {
            Subcommand::Generator => entry.datagram_flags(),
            _ => self.traffic_flags(entry),
        };
        let flags = flags.map_err(|error| self.error(at, in_one_line(&error)))?;
        let at = entry.at.as_ref().map(|at| *at.get_ref());
        let configuration = entry.configuration();
        Ok(Profile { name: entry.name.get_ref().clone(), flags, directions, configuration, at })
    }

    /// The flags that say what load tests send.
    fn traffic_flags(&self, entry: &ProfileEntry) -> Result<Vec<(&'static str, String)>> {
        if entry.datagram.is_some() {
            return Err(misuse("datagram is for the strategy generator: write size, the frame's"));
        }
        let profile = self.path(entry.profile.as_deref().unwrap_or("bench"));
        self.check_traffic(entry, &profile)?;
        let mut flags = vec![("--profile", profile)];
        let tunables = entry.tunables().into_iter();
        flags.extend(tunables.filter_map(|(flag, value)| Some((flag, value.clone()?))));
        Ok(flags)
    }

    /// Files are named relative to the bench file; runs get the whole path, so that the same bench
    /// has the same commands wherever it is started.
    pub(super) fn path(&self, name: &str) -> String {
        if !is_file(name) {
            return name.to_owned();
        }
        let path = self.file.parent().unwrap_or(Path::new("")).join(name);
        path.canonicalize().unwrap_or(path).display().to_string()
    }

    /// Whether there is such traffic.
    fn check_traffic(&self, entry: &ProfileEntry, profile: &str) -> Result<()> {
        fn parsed<T: FromStr>(value: Option<&String>) -> Result<Option<T>>
        where
            T::Err: Display,
        {
            let parsed = value.map(|value| value.parse::<T>().map_err(|error| misuse(error.to_string())));
            parsed.transpose()
        }
        let traffic = Traffic {
            profile: profile.to_owned(),
            size: parsed(entry.size.as_ref())?,
            flows: parsed(entry.flows.as_ref())?,
            ip: parsed(entry.ip.as_ref())?,
            vlan: parsed(entry.vlan.as_ref())?,
            bidirectional: false,
        };
        traffic.profile().map(drop)
    }
}
