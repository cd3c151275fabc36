//! Where a device of a bench file is: its entry and what it extends enter; a lab, two interfaces or two
//! ports of DPDK leave, or which line is wrong.

use std::str::FromStr;

use anyhow::Result;
use dut::DutSpec;
use dut::program::{Reach, reach};
use testbed::target::EngineName;
use toml::Spanned;

use super::document::DutEntry;
use super::{Site, Source};

impl Source<'_> {
    /// Where the device of `entry` is, which is `before` unless it says something else.
    pub(super) fn site(&self, entry: &DutEntry, before: Option<Site>) -> Result<Option<Site>> {
        let gateways = entry.gateways.as_ref();
        if let Some(devices) = self.devices(entry)? {
            self.refuse_gateways(gateways)?;
            return Ok(Some(devices));
        }
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

    /// The two ports of DPDK that `entry` names, if it does.
    fn devices(&self, entry: &DutEntry) -> Result<Option<Site>> {
        match (&entry.port0, &entry.port1) {
            (None, None) => Ok(None),
            (Some(port), None) | (None, Some(port)) => {
                Err(self.error(port.span().start, "a device is between two ports: write port0 and port1"))
            }
            (Some(zero), Some(one)) => match entry.dut.as_ref().or(entry.ports.as_ref()) {
                Some(_) => {
                    let reason = "port0 and port1 exclude dut and ports: keep the ones or the other";
                    Err(self.error(zero.span().start, reason))
                }
                None => Ok(Some(Site::Devices([zero.get_ref().clone(), one.get_ref().clone()]))),
            },
        }
    }

    /// The engine that the first of `chain` that names one asks for, and where it stands.
    pub(super) fn engine(&self, chain: &[&DutEntry]) -> Result<Option<(EngineName, usize)>> {
        let Some(written) = chain.iter().find_map(|entry| entry.engine.as_ref()) else { return Ok(None) };
        let at = written.span().start;
        let engine = written.get_ref().parse().map_err(|reason: String| self.error(at, reason))?;
        Ok(Some((engine, at)))
    }

    /// Whether the engine reaches the device; `at` is what is to blame otherwise.
    pub(super) fn check_engine(&self, engine: EngineName, site: &Site, at: usize) -> Result<()> {
        let is = |dut: &str, wanted: Reach| dut.parse::<DutSpec>().is_ok_and(|spec| reach(&spec) == wanted);
        let reason = match (engine.is_in_user_space(), site) {
            (true, Site::Ports(..)) => {
                "an engine in user space has ports of its own: write port0 and port1 in place of ports"
            }
            (true, Site::Lab(dut)) if is(dut, Reach::Kernel) => {
                "an engine in user space reaches no device of the lab but testpmd, vpp, fastpath and calibrated: \
                 write one of them, or port0 and port1"
            }
            (false, Site::Lab(dut)) if is(dut, Reach::UserSpace) => {
                "testpmd and vpp are in user space: write engine = \"memif\" or \"dpdk\" too"
            }
            (false, Site::Devices(_)) => {
                "port0 and port1 are of user space: write engine = \"dpdk\" or \"memif\" too"
            }
            _ => return Ok(()),
        };
        Err(self.error(at, reason))
    }
}
