//! What DPDK needs of this host: whether it is there leaves; or hugepages are reserved, which changes the host, so that
//! only `doctor --fix` does it, and says so.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use dut::program::testpmd;
use lab::{Check, Level};
use programs::is_installed;

/// Where the kernel keeps hugepages of 2 MiB.
pub const PAGES: &str = "/sys/kernel/mm/hugepages/hugepages-2048kB";
/// Pages that a load test over DPDK wants: 512 MiB.
const WANTED: u64 = 256;

/// Whether there is an engine in user space, and a device for it.
#[must_use]
pub fn check() -> Check {
    let told = |level, found: &str, remedy: Option<&str>| Check {
        name: "DPDK",
        level,
        found: found.to_owned(),
        remedy: remedy.map(str::to_owned),
    };
    match (cfg!(feature = "dpdk"), is_installed(testpmd::EXECUTABLE)) {
        (false, _) => told(
            Level::Degraded,
            "not built in: --engine dpdk is unavailable",
            Some("Build linerate with --features dpdk, where libdpdk-dev is installed"),
        ),
        (true, false) => told(
            Level::Degraded,
            "built in, but the device testpmd is not installed",
            Some("Install Debian's dpdk-dev"),
        ),
        (true, true) => told(Level::Good, "built in, and testpmd is installed", None),
    }
}

/// Reserves as many of the pages kept in `directory` as a load test wants, and says what it did.
///
/// # Errors
/// When the kernel has no such pages, does not let them be reserved, or has too little contiguous memory.
pub fn reserve(directory: &Path) -> Result<String> {
    let number = |name: &str| -> Result<u64> {
        let path = directory.join(name);
        let text = fs::read_to_string(&path).with_context(|| {
            format!(
                "cannot read {}: this kernel has no hugepages of 2 MiB (CONFIG_HUGETLBFS)",
                path.display()
            )
        })?;
        text.trim().parse().with_context(|| format!("{} is no number", path.display()))
    };
    let (total, free) = (number("nr_hugepages")?, number("free_hugepages")?);
    if free >= WANTED {
        return Ok(format!("{free} hugepages are free already: nothing changed"));
    }
    let path = directory.join("nr_hugepages");
    let target = total + WANTED - free;
    fs::write(&path, target.to_string())
        .with_context(|| format!("cannot write {}: run as root (sudo)", path.display()))?;
    let reserved = number("nr_hugepages")?;
    let undo = format!("'sysctl vm.nr_hugepages={total}' gives them back");
    if reserved < target {
        bail!("the kernel reserved {reserved} of {target} hugepages: not enough contiguous memory; {undo}");
    }
    Ok(format!("reserved {reserved} hugepages of 2 MiB, before {total}, until reboot; {undo}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_are_reserved_as_are_missing_and_no_more() {
        let directory = tempfile::tempdir().unwrap();
        let write =
            |name: &str, number: u64| fs::write(directory.path().join(name), number.to_string()).unwrap();
        let total = || fs::read_to_string(directory.path().join("nr_hugepages")).unwrap();
        assert!(reserve(directory.path()).unwrap_err().to_string().contains("CONFIG_HUGETLBFS"));
        for (before, free, after) in [(0, 0, 256), (300, 10, 546), (300, 256, 300)] {
            write("nr_hugepages", before);
            write("free_hugepages", free);
            let said = reserve(directory.path()).unwrap();
            assert_eq!(total(), after.to_string(), "{said}");
            assert_eq!(said.contains("nothing changed"), before == after);
            assert!(before == after || said.contains(&format!("nr_hugepages={before}")), "{said}");
        }
    }
}
