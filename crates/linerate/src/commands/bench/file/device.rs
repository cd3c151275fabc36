//! The devices of a bench file: an entry and what it extends enter; the device with all that it takes
//! over leaves, or which line is wrong.

use anyhow::Result;
use testbed::bench::{Configuration, Dut};
use testbed::target::{EngineName, Place};

use super::document::DutEntry;
use super::{Source, known};

impl Source<'_> {
    /// The device of `entry` with what it takes over from those that it extends.
    pub(super) fn dut(&self, entry: &DutEntry, all: &[DutEntry]) -> Result<Dut> {
        let chain = self.chain(entry, all)?;
        let remote = self.remote(&chain)?;
        let engine = self.engine(&chain)?;
        let at = engine.map_or(entry.name.span().start, |(_, at)| at);
        let engine = engine.map_or(EngineName::Auto, |(engine, _)| engine);
        let (mut place, mut options, mut denies) = (None, Vec::new(), Vec::new());
        let mut configuration = Configuration::default();
        for entry in chain.into_iter().rev() {
            place = self.place(entry, engine, place)?;
            options.extend(self.options(entry.options.as_ref())?);
            denies.extend(entry.denies.iter().copied());
            configuration.commands.extend(entry.commands.iter().cloned());
            // What was done last is undone first.
            configuration.undo.splice(0..0, entry.undo.iter().cloned());
            configuration.requires.extend(entry.requires.iter().cloned());
        }
        let name = entry.name.get_ref().clone();
        let mut place = place.ok_or_else(|| {
            let reason = format!(
                "the DUT '{name}' needs one of: dut = \"linux-router\", ports = \"eth1,eth2\", or extends = …"
            );
            self.error(entry.name.span().start, reason)
        })?;
        self.check_engine(engine, &place, at)?;
        match &mut place {
            Place::Ports(ports) => ports.remote = remote,
            _ if remote.is_none() => {}
            _ => {
                let reason = "a device with a host is between two ports: write ports = \"eth1,eth2\"";
                return Err(self.error(entry.name.span().start, reason));
            }
        }
        let line = self.line(entry.name.span().start);
        let at = entry.at.as_ref().map(|at| *at.get_ref());
        Ok(Dut { name, place, engine, options, line, configuration, denies, at })
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
                    format!("circular \"extends\": {}: let one of them extend nothing", names.join(" → "));
                return Err(self.error(at, reason));
            }
            extended = base.extends.as_ref();
        }
        Ok(chain)
    }
}
