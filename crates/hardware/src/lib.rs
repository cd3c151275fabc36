//! What a machine is: `/sys` and `/proc` below a root directory enter; how its cores are arranged, the settings that
//! decide how fast they are, and where its network cards are leave, as the record keeps them.
//!
//! Nothing is changed, and nothing is guessed: what the kernel does not tell is absent.

mod card;
mod clock;
mod energy;
mod list;
mod sensors;
mod topology;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use results::record::{Host, Topology};

pub use card::Card;
pub use energy::Energy;
pub use list::parse as parse_list;

/// A system, by the directory that holds its `/sys` and `/proc`.
#[derive(Clone, Debug)]
pub struct System {
    root: PathBuf,
}

impl System {
    /// This machine.
    #[must_use]
    pub fn here() -> Self {
        Self::at(Path::new("/"))
    }

    /// The system whose `sys` and `proc` are in `root`.
    #[must_use]
    pub fn at(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    /// How its cores are arranged.
    #[must_use]
    pub fn topology(&self) -> Topology {
        topology::read(self)
    }

    /// The network card behind an interface.
    #[must_use]
    pub fn card(&self, interface: &str) -> Card {
        card::read(self, interface)
    }

    /// The NUMA node of the device at a PCI address, like `0000:01:00.0`, as DPDK takes it: without the domain where
    /// that is 0, or with arguments. What is no such address has none.
    #[must_use]
    pub fn node_of_pci(&self, device: &str) -> Option<usize> {
        let address = device.split(',').next()?;
        let is_address = address.chars().all(|c| c.is_ascii_hexdigit() || c == ':' || c == '.');
        let domain = if address.matches(':').count() == 1 { "0000:" } else { "" };
        if is_address { self.node(&format!("sys/bus/pci/devices/{domain}{address}")) } else { None }
    }

    /// All that decides how fast its cores are, but for the rate of the time stamp counter.
    #[must_use]
    pub fn host(&self) -> Host {
        Host {
            topology: self.topology(),
            command_line: self.command_line(),
            governors: self.governors(),
            microcode: self
                .text("sys/devices/system/cpu/cpu0/microcode/version")
                .or_else(|| self.cpu_info("microcode")),
            mitigations: self.mitigations(),
            tsc_hz: None,
            core_to_core_ns: BTreeMap::new(),
            max_hz: self
                .number("sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq")
                .map(|khz| khz as f64 * 1e3),
        }
    }

    /// What follows ` -- ` is for the first process, and of no interest.
    fn command_line(&self) -> Option<String> {
        let text = self.text("proc/cmdline")?;
        let kernel = text.split(" -- ").next().unwrap_or_default().trim_end();
        (!kernel.is_empty()).then(|| kernel.to_owned())
    }

    fn governors(&self) -> BTreeSet<String> {
        let policies = self.entries("sys/devices/system/cpu/cpufreq");
        let governor =
            |policy: String| self.text(&format!("sys/devices/system/cpu/cpufreq/{policy}/scaling_governor"));
        policies.into_iter().filter_map(governor).collect()
    }

    fn mitigations(&self) -> BTreeMap<String, String> {
        const DIRECTORY: &str = "sys/devices/system/cpu/vulnerabilities";
        let told = |name: String| Some((self.text(&format!("{DIRECTORY}/{name}"))?, name));
        let all = self.entries(DIRECTORY).into_iter().filter_map(told);
        all.filter(|(what, _)| what != "Not affected").map(|(what, name)| (name, what)).collect()
    }

    /// The value of the first line of `/proc/cpuinfo` of this name.
    fn cpu_info(&self, key: &str) -> Option<String> {
        let text = self.text("proc/cpuinfo")?;
        let mut lines = text.lines().filter_map(|line| line.split_once(':'));
        lines.find(|(name, _)| name.trim() == key).map(|(_, value)| value.trim().to_owned())
    }

    /// The NUMA node that the device in this directory belongs to; the kernel says −1 where it belongs to none.
    fn node(&self, directory: &str) -> Option<usize> {
        self.text(&format!("{directory}/numa_node"))?.parse().ok()
    }

    /// A file's text without white space around it; `None` where it is empty or cannot be read.
    fn text(&self, path: &str) -> Option<String> {
        let text = fs::read_to_string(self.root.join(path)).ok()?;
        Some(text.trim().to_owned()).filter(|text| !text.is_empty())
    }

    fn number(&self, path: &str) -> Option<u64> {
        self.text(path)?.parse().ok()
    }

    /// The cores that a file lists, like `0-3,8`.
    fn list(&self, path: &str) -> Vec<usize> {
        self.text(path).map(|text| parse_list(&text)).unwrap_or_default()
    }

    /// The names in a directory, in order; none where it cannot be read.
    fn entries(&self, path: &str) -> Vec<String> {
        let entries = fs::read_dir(self.root.join(path)).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

/// This machine, with the rate of its time stamp counter. That takes 10 ms once.
#[must_use]
pub fn host() -> Host {
    Host { tsc_hz: clock::tsc_hz(), ..System::here().host() }
}

#[cfg(test)]
mod tests;
