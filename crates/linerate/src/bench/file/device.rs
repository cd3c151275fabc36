//! The devices of a bench file: an entry and what it extends enter; the device with all that it takes
//! over leaves, or which line is wrong.

use std::str::FromStr;

use anyhow::Result;
use lab::DutSpec;
use toml::Spanned;

use super::document::DutEntry;
use super::{Dut, Site, Source, known};

impl Source<'_> {
    /// The device of `entry` with what it takes over from those that it extends.
    pub(super) fn dut(&self, entry: &DutEntry, all: &[DutEntry]) -> Result<Dut> {
        let mut dut = Dut {
            name: entry.name.get_ref().clone(),
            site: Site::Lab(String::new()),
            options: Vec::new(),
            line: self.line(entry.name.span().start),
            remote: None,
            commands: Vec::new(),
            undo: Vec::new(),
            requires: Vec::new(),
            at: entry.at.as_ref().map(|at| *at.get_ref()),
        };
        let mut site = None;
        let chain = self.chain(entry, all)?;
        dut.remote = self.remote(&chain)?;
        for entry in chain.into_iter().rev() {
            site = self.site(entry, site)?;
            dut.options.extend(self.options(entry.options.as_ref())?);
            dut.commands.extend(entry.commands.iter().cloned());
            // What was done last is undone first.
            dut.undo.splice(0..0, entry.undo.iter().cloned());
            dut.requires.extend(entry.requires.iter().cloned());
        }
        dut.site = site.ok_or_else(|| {
            let reason = format!(
                "the DUT '{}' is nowhere: write dut = \"linux-router\", ports = \"eth1,eth2\", or extends = …",
                dut.name
            );
            self.error(entry.name.span().start, reason)
        })?;
        if dut.remote.is_some() && matches!(dut.site, Site::Lab(_)) {
            let reason = "a device with a host is between two ports: write ports = \"eth1,eth2\"";
            return Err(self.error(entry.name.span().start, reason));
        }
        Ok(dut)
    }

    /// `entry`, what it extends, what that extends, and so on.
    fn chain<'e>(&self, entry: &'e DutEntry, all: &'e [DutEntry]) -> Result<Vec<&'e DutEntry>> {
        let mut chain = vec![entry];
        let mut extended = entry.extends.as_ref();
        while let Some(name) = extended {
            let wanted = |entry: &&DutEntry| entry.name.get_ref() == name.get_ref();
            let at = name.span().start;
            let Some(base) = all.iter().find(wanted) else {
                let names: Vec<&str> = all.iter().map(|entry| entry.name.get_ref().as_str()).collect();
                let reason = format!("there is no DUT '{}' to extend: {}", name.get_ref(), known(&names));
                return Err(self.error(at, reason));
            };
            let is_cycle = chain.iter().any(wanted);
            chain.push(base);
            if is_cycle {
                let names: Vec<String> =
                    chain.iter().map(|entry| format!("'{}'", entry.name.get_ref())).collect();
                let reason =
                    format!("{} is a circle: let one of them extend nothing", names.join(" extends "));
                return Err(self.error(at, reason));
            }
            extended = base.extends.as_ref();
        }
        Ok(chain)
    }

    /// Where the device of `entry` is, which is `before` unless it says something else.
    fn site(&self, entry: &DutEntry, before: Option<Site>) -> Result<Option<Site>> {
        let gateways = entry.gateways.as_ref();
        match (&entry.dut, &entry.ports) {
            (Some(_), Some(ports)) => {
                Err(self.error(ports.span().start, "dut and ports exclude each other: keep one"))
            }
            (Some(dut), None) => {
                let spec = DutSpec::from_str(dut.get_ref());
                spec.map_err(|error| self.error(dut.span().start, error))?;
                self.refuse_gateways(gateways)?;
                Ok(Some(Site::Lab(dut.get_ref().clone())))
            }
            (None, Some(ports)) => {
                self.check_pair(ports, "two interfaces, as in \"eth1,eth2\"")?;
                let gateways = self.gateways(gateways)?;
                Ok(Some(Site::Ports(ports.get_ref().clone(), gateways)))
            }
            (None, None) => match before {
                Some(Site::Ports(ports, kept)) => {
                    let gateways = self.gateways(gateways)?.or(kept);
                    Ok(Some(Site::Ports(ports, gateways)))
                }
                before => self.refuse_gateways(gateways).map(|()| before),
            },
        }
    }

    fn gateways(&self, written: Option<&Spanned<String>>) -> Result<Option<String>> {
        let Some(gateways) = written else { return Ok(None) };
        self.check_pair(gateways, "two addresses, the device's at each port, as in \"10.0.1.1,10.0.2.1\"")?;
        Ok(Some(gateways.get_ref().clone()))
    }

    /// Whether there are two words with a comma between.
    fn check_pair(&self, written: &Spanned<String>, what: &str) -> Result<()> {
        let words: Vec<&str> = written.get_ref().split(',').collect();
        match words.as_slice() {
            [one, two] if !one.is_empty() && !two.is_empty() => Ok(()),
            _ => {
                let reason = format!("'{}' does not name {what}", written.get_ref());
                Err(self.error(written.span().start, reason))
            }
        }
    }

    fn refuse_gateways(&self, gateways: Option<&Spanned<String>>) -> Result<()> {
        match gateways {
            None => Ok(()),
            Some(gateways) => {
                Err(self.error(gateways.span().start, "gateways belong to ports: the lab knows its own"))
            }
        }
    }
}
