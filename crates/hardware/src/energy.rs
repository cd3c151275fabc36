//! The energy that processors take, as they count it themselves (RAPL): `/sys/class/powercap` enters,
//! joules leave. It is of whole packages: the device, the tester and all else there.

use std::fs;
use std::path::{Path, PathBuf};

const POWERCAP: &str = "/sys/class/powercap";

/// Counts the energy of all packages.
#[derive(Clone, Debug)]
pub struct Energy {
    packages: Vec<Package>,
}

#[derive(Clone, Debug)]
struct Package {
    counter: PathBuf,
    /// The value at which the counter wraps around, in microjoules.
    range: u64,
    last: u64,
}

impl Energy {
    /// Counts on this machine from now on.
    ///
    /// # Errors
    /// Why there is nothing to count, with the remedy.
    pub fn start() -> Result<Self, String> {
        Self::at(Path::new(POWERCAP))
    }

    /// The same, of the packages in `directory`.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn at(directory: &Path) -> Result<Self, String> {
        let zones = fs::read_dir(directory).map_err(|_| {
            format!("this machine does not tell its energy ({POWERCAP}); give --watts or --watts-command")
        })?;
        let package = |zone: PathBuf| {
            let read = |file: &str| fs::read_to_string(zone.join(file));
            if !read("name").is_ok_and(|name| name.starts_with("package")) {
                return None;
            }
            let range = read("max_energy_range_uj").ok()?.trim().parse().ok()?;
            let counter = zone.join("energy_uj");
            Some(number(&counter).map(|last| Package { counter, range, last }))
        };
        let packages = zones.flatten().filter_map(|zone| package(zone.path()));
        let packages: Vec<_> = packages.collect::<Result<_, String>>()?;
        if packages.is_empty() {
            return Err(format!(
                "no processor counts its energy in {POWERCAP}; give --watts or --watts-command"
            ));
        }
        Ok(Self { packages })
    }

    /// Joules since the last call, or since the start; `None` when they cannot be read any more. To be called at least
    /// once a minute, since the counters begin anew.
    pub fn step(&mut self) -> Option<f64> {
        let mut sum = 0;
        for package in &mut self.packages {
            let now = number(&package.counter).ok()?;
            let passed = match now >= package.last {
                true => now - package.last,
                false => now.saturating_add(package.range).saturating_sub(package.last),
            };
            package.last = now;
            sum += passed;
        }
        Some(sum as f64 / 1e6)
    }
}

fn number(path: &Path) -> Result<u64, String> {
    let text = fs::read_to_string(path).map_err(|cause| {
        format!(
            "{} cannot be read ({cause}); run as root, or give --watts or --watts-command",
            path.display()
        )
    })?;
    text.trim()
        .parse()
        .map_err(|_| format!("{} holds no number; give --watts or --watts-command", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_add_up_and_counters_wrap_around() {
        let directory = tempfile::tempdir().unwrap();
        let zone = |zone: &str, name: &str, energy: u64| {
            let path = directory.path().join(zone);
            fs::create_dir_all(&path).unwrap();
            fs::write(path.join("name"), format!("{name}\n")).unwrap();
            fs::write(path.join("max_energy_range_uj"), "10000000\n").unwrap();
            fs::write(path.join("energy_uj"), format!("{energy}\n")).unwrap();
        };
        zone("intel-rapl:0", "package-0", 9_000_000);
        zone("intel-rapl:1", "package-1", 1_000_000);
        zone("intel-rapl:0:0", "core", 5); // a part of its package
        let mut energy = Energy::at(directory.path()).unwrap();
        assert_eq!(energy.step(), Some(0.0));
        zone("intel-rapl:0", "package-0", 500_000);
        zone("intel-rapl:1", "package-1", 3_000_000);
        assert_eq!(energy.step(), Some(3.5));
        zone("intel-rapl:1", "package-1", 3_250_000);
        assert_eq!(energy.step(), Some(0.25));
        fs::remove_file(directory.path().join("intel-rapl:1/energy_uj")).unwrap();
        assert_eq!(energy.step(), None);
    }

    #[test]
    fn a_machine_without_counters_is_an_error_with_a_remedy() {
        let empty = tempfile::tempdir().unwrap();
        assert!(Energy::at(empty.path()).unwrap_err().contains("--watts"));
        assert!(Energy::at(&empty.path().join("none")).unwrap_err().contains("--watts"));
    }
}
