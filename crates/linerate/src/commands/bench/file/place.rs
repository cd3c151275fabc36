//! Where a device of a bench file is: its entry and what it extends enter; the place that the target of its runs
//! has leaves, or which line is wrong.

use std::net::IpAddr;
use std::str::FromStr;

use anyhow::Result;
use dut::DutSpec;
use dut::program::{Reach, reach};
use testbed::target::{EngineName, Named, Place, Ports};
use toml::Spanned;

use super::Source;
use super::document::DutEntry;

impl Source<'_> {
    /// Where the device of `entry` is, which is `before` unless it says something else; `engine` is what sends to it.
    pub(super) fn place(
        &self,
        entry: &DutEntry,
        engine: EngineName,
        before: Option<Place>,
    ) -> Result<Option<Place>> {
        let gateways = entry.gateways.as_ref();
        if let Some(named) = self.named(entry)? {
            self.refuse_gateways(gateways)?;
            return Ok(Some(named));
        }
        match (&entry.dut, &entry.ports) {
            (Some(_), Some(ports)) => {
                Err(self.error(ports.span().start, "dut and ports exclude each other: keep one"))
            }
            (Some(dut), None) => {
                let spec = DutSpec::from_str(dut.get_ref());
                let spec = spec.map_err(|error| self.error(dut.span().start, error))?;
                self.refuse_gateways(gateways)?;
                Ok(Some(if engine.is_in_user_space() { Place::Started(spec) } else { Place::Lab(spec) }))
            }
            (None, Some(ports)) => {
                let names = self.pair(ports, "two interfaces, as in \"eth1,eth2\"")?;
                let gateways = self.gateways(gateways)?;
                Ok(Some(Place::Ports(Ports { names, gateways, force: 0, remote: None })))
            }
            (None, None) => match before {
                Some(Place::Ports(ports)) => {
                    let gateways = self.gateways(gateways)?.or(ports.gateways);
                    Ok(Some(Place::Ports(Ports { gateways, ..ports })))
                }
                before => self.refuse_gateways(gateways).map(|()| before),
            },
        }
    }

    fn gateways(&self, written: Option<&Spanned<String>>) -> Result<Option<[IpAddr; 2]>> {
        let Some(gateways) = written else { return Ok(None) };
        self.pair(gateways, "two addresses, the device's at each port, as in \"10.0.1.1,10.0.2.1\"").map(Some)
    }

    /// The two values with a comma between.
    fn pair<T: FromStr>(&self, written: &Spanned<String>, what: &str) -> Result<[T; 2]> {
        let value = |word: &str| word.parse().ok().filter(|_| !word.is_empty());
        let values: Option<Vec<T>> = written.get_ref().split(',').map(value).collect();
        values.and_then(|values| values.try_into().ok()).ok_or_else(|| {
            let reason = format!("'{}' does not name {what}", written.get_ref());
            self.error(written.span().start, reason)
        })
    }

    fn refuse_gateways(&self, gateways: Option<&Spanned<String>>) -> Result<()> {
        match gateways {
            None => Ok(()),
            Some(gateways) => {
                Err(self.error(gateways.span().start, "gateways belong to ports: the lab knows its own"))
            }
        }
    }

    /// The two ports of user space that `entry` names, if it does.
    fn named(&self, entry: &DutEntry) -> Result<Option<Place>> {
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
                None => {
                    let ports = [zero.get_ref().clone(), one.get_ref().clone()];
                    Ok(Some(Place::Named(Named { ports, next_hops: None, force: 0 })))
                }
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
    pub(super) fn check_engine(&self, engine: EngineName, place: &Place, at: usize) -> Result<()> {
        let reason = match place {
            Place::Ports(_) if engine.is_in_user_space() => {
                "an engine in user space has ports of its own: write port0 and port1 in place of ports"
            }
            Place::Started(dut) if reach(dut) == Reach::Kernel => {
                "an engine in user space reaches no device of the lab but testpmd, vpp, fastpath and calibrated: \
                 write one of them, or port0 and port1"
            }
            Place::Lab(dut) if reach(dut) == Reach::UserSpace => {
                "testpmd and vpp are in user space: write engine = \"memif\" or \"dpdk\" too"
            }
            Place::Named(_) if !engine.is_in_user_space() => {
                "port0 and port1 name ports in user space: write engine = \"dpdk\" or \"memif\" too"
            }
            _ => return Ok(()),
        };
        Err(self.error(at, reason))
    }
}
