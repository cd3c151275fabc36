//! The file system that a test machine boots from. The modules of a kernel enter, and programs of this machine; an
//! archive leaves, as the crate `machine` writes it.

use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::process::Command;

use machine::Archive;
use machine::archive::find;

use super::kernels::{Files, walk};
use crate::common::{PROGRAM, REPOSITORY, tool};

/// Programs that the machine has of this one, beside the program under test.
const PROGRAMS: [&str; 7] = ["busybox", "dash", "ethtool", "ip", "kmod", "nft", "tc"];
/// DPDK's drivers that `verify` needs for devices in user space: loaded when it starts, so that `ldd` does not name them.
const DRIVERS: [&str; 3] = ["librte_bus_vdev.so", "librte_mempool_ring.so", "librte_net_memif.so"];
/// What DPDK calls the directory that it loads all drivers from.
const OF_DRIVERS: &str = "pmds-";
const EMPTY: [&str; 12] =
    ["bin", "dev", "etc", "proc", "root", "run", "sbin", "sys", "tmp", "usr/bin", "usr/sbin", "var"];

/// Whether all programs are here; the error names the first that is not.
pub fn check() -> Result<(), String> {
    PROGRAMS.iter().chain(&["depmod", "dpkg"]).try_for_each(|name| match find(name) {
        Some(_) => Ok(()),
        None => Err(format!("{name} is not installed (make setup installs it)")),
    })
}

/// Writes the archive for `kernel` to `file`.
pub fn write(kernel: &Files, file: &Path) -> io::Result<()> {
    // Symbols and debugging information are two thirds of the program, which the machine has in its memory.
    let stripped = file.with_extension("program");
    tool(Command::new("strip").arg("-o").arg(&stripped).arg(PROGRAM));
    let mut archive = Archive::default();
    EMPTY.iter().for_each(|directory| archive.directory(directory));
    archive.file("init", Path::new(REPOSITORY).join("tests/vm/init"), true);
    let mut program = |from: &Path, to: &Path| archive.program(from, to).map_err(io::Error::other);
    for name in PROGRAMS {
        let path = find(name).unwrap_or_default();
        program(&path, &Path::new("usr/bin").join(name))?;
    }
    program(&stripped, Path::new("usr/bin/linerate"))?;
    if cfg!(feature = "dpdk") {
        for driver in DRIVERS.iter().filter_map(|name| driver(name)) {
            program(&driver, driver.strip_prefix("/").unwrap_or(&driver))?;
        }
    }
    // /init names the first two, the kernel the third.
    for (link, to) in [("bin/busybox", "/usr/bin/busybox"), ("bin/sh", "/usr/bin/dash")] {
        archive.link(link, to);
    }
    for name in ["sbin/modprobe", "sbin/lsmod"] {
        archive.link(name, "/usr/bin/kmod");
    }
    archive.link("var/run", "/run");
    let mut modules = Vec::new();
    walk(&kernel.modules, &mut modules);
    for module in modules {
        let name = module.strip_prefix(&kernel.modules).unwrap_or(&module).to_owned();
        archive.file(name, module, false);
    }
    for directory in ["benchmarks", "profiles"] {
        let mut files = Vec::new();
        walk(&Path::new(REPOSITORY).join(directory), &mut files);
        for file in files.into_iter().filter(|file| file.extension().is_some_and(|end| end == "toml")) {
            let name = file.strip_prefix(REPOSITORY).unwrap_or(&file).to_owned();
            archive.file(Path::new("root").join(name), file, false);
        }
    }
    let partial = file.with_extension("partial");
    archive.write(&mut BufWriter::new(File::create(&partial)?))?;
    fs::remove_file(stripped)?;
    fs::rename(partial, file)
}

/// A driver of DPDK's, where it is installed.
fn driver(name: &str) -> Option<PathBuf> {
    let libraries = fs::read_dir("/usr/lib").ok()?.flatten().map(|entry| entry.path().join(name));
    libraries.filter_map(|library| fs::canonicalize(library).ok()).find(|library| is_driver(library))
}

fn is_driver(library: &Path) -> bool {
    let directory = library.parent().and_then(Path::file_name).unwrap_or_default();
    directory.to_string_lossy().starts_with(OF_DRIVERS)
}
