//! A device of a bench file that is another computer: the entry and what it extends enter; how it is
//! reached and configured leaves, or which line is wrong.

use std::collections::BTreeMap;

use anyhow::Result;
use testbed::remote_device;
use testbed::target::Remote;
use toml::Spanned;
use wording::usage::in_one_line;

use super::Source;
use super::document::DutEntry;

impl Source<'_> {
    /// The other computer that the first of `chain`, an entry and what it extends, is on.
    pub(super) fn remote(&self, chain: &[&DutEntry]) -> Result<Option<Remote>> {
        let nearest =
            |key: fn(&DutEntry) -> Option<&Spanned<String>>| chain.iter().find_map(|entry| key(entry));
        let options = || chain.iter().filter_map(|entry| entry.driver_options.as_ref());
        let host = nearest(|entry| entry.host.as_ref());
        let driver = nearest(|entry| entry.driver.as_ref());
        let (host, driver) = match (host, driver) {
            (Some(host), Some(driver)) => (host, driver),
            (Some(part), None) | (None, Some(part)) => {
                let reason = "a device on another computer needs a host and a driver: write both";
                return Err(self.error(part.span().start, reason));
            }
            (None, None) => match options().next() {
                None => return Ok(None),
                Some(options) => {
                    let reason = "driver-options belong to a driver: write host and driver too";
                    return Err(self.error(options.span().start, reason));
                }
            },
        };
        let mut given = BTreeMap::new();
        for (name, value) in options().flat_map(Spanned::get_ref) {
            given.entry(name.clone()).or_insert_with(|| value.clone());
        }
        let remote = Remote {
            host: host.get_ref().clone(),
            driver: self.path(driver.get_ref()),
            options: given.into_iter().collect(),
            sudo: chain.iter().find_map(|entry| entry.sudo).unwrap_or(false),
        };
        let at = options().next().map_or(driver.span(), Spanned::span).start;
        remote_device::plan(&remote.driver, &remote.options, None)
            .map_err(|error| self.error(at, in_one_line(&error)))?;
        Ok(Some(remote))
    }
}
