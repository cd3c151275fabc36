//! The file system that a test machine boots from. The modules of a kernel enter, and programs of this machine with
//! the shared libraries that `ldd` names; an archive in the form that the kernel unpacks into memory leaves ("newc"
//! of cpio, Documentation/driver-api/early-userspace/buffer-format.rst).

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::kernels::{Files, walk};
use crate::common::{PROGRAM, REPOSITORY, tool};

/// Programs that the machine has of this one, beside the program under test.
const PROGRAMS: [&str; 7] = ["busybox", "dash", "ethtool", "ip", "kmod", "nft", "tc"];
/// DPDK's drivers that `verify` needs for devices in user space: loaded when it starts, so that `ldd` does not name them.
const DRIVERS: [&str; 3] = ["librte_bus_vdev.so", "librte_mempool_ring.so", "librte_net_memif.so"];
/// What DPDK calls the directory that it loads all drivers from.
const OF_DRIVERS: &str = "pmds-";
/// Where programs are.
const PLACES: [&str; 4] = ["/usr/sbin", "/usr/bin", "/sbin", "/bin"];
const EMPTY: [&str; 12] =
    ["bin", "dev", "etc", "proc", "root", "run", "sbin", "sys", "tmp", "usr/bin", "usr/sbin", "var"];

/// What an archive holds, by path without the first slash.
#[derive(Default)]
struct Tree(BTreeMap<PathBuf, Entry>);

enum Entry {
    Directory,
    File { from: PathBuf, executable: bool },
    Link(PathBuf),
}

/// Whether all programs are here; the error names the first that is not.
pub fn check() -> Result<(), String> {
    PROGRAMS.iter().chain(&["depmod", "dpkg"]).try_for_each(|name| match find(name) {
        Some(_) => Ok(()),
        None => Err(format!("{name} is not installed (make setup installs it)")),
    })
}

/// Writes the archive for `kernel` to `file`.
pub fn write(kernel: &Files, file: &Path) -> io::Result<()> {
    // Debugging information is nine tenths of the program.
    let stripped = file.with_extension("program");
    tool(Command::new("strip").args(["--strip-debug", "-o"]).arg(&stripped).arg(PROGRAM));
    let mut tree = Tree::default();
    EMPTY.iter().for_each(|directory| tree.add(Path::new(directory), Entry::Directory));
    tree.file("init", Path::new(REPOSITORY).join("tests/vm/init"), true);
    for name in PROGRAMS {
        let path = find(name).unwrap_or_default();
        tree.program(&path, &Path::new("usr/bin").join(name));
    }
    tree.program(&stripped, Path::new("usr/bin/linerate"));
    if cfg!(feature = "dpdk") {
        DRIVERS.iter().filter_map(|name| driver(name)).for_each(|driver| tree.library(&driver));
    }
    // /init names the first two, the kernel the third.
    for (link, to) in [("bin/busybox", "/usr/bin/busybox"), ("bin/sh", "/usr/bin/dash")] {
        tree.add(Path::new(link), Entry::Link(to.into()));
    }
    for name in ["sbin/modprobe", "sbin/lsmod"] {
        tree.add(Path::new(name), Entry::Link("/usr/bin/kmod".into()));
    }
    tree.add(Path::new("var/run"), Entry::Link("/run".into()));
    let mut modules = Vec::new();
    walk(&kernel.modules, &mut modules);
    for module in modules {
        let name = module.strip_prefix(&kernel.modules).unwrap_or(&module).to_owned();
        tree.file(name, module, false);
    }
    for directory in ["benchmarks", "profiles"] {
        let mut files = Vec::new();
        walk(&Path::new(REPOSITORY).join(directory), &mut files);
        for file in files.into_iter().filter(|file| file.extension().is_some_and(|end| end == "toml")) {
            let name = file.strip_prefix(REPOSITORY).unwrap_or(&file).to_owned();
            tree.file(Path::new("root").join(name), file, false);
        }
    }
    let partial = file.with_extension("partial");
    tree.write(&mut BufWriter::new(File::create(&partial)?))?;
    fs::remove_file(stripped)?;
    fs::rename(partial, file)
}

fn find(program: &str) -> Option<PathBuf> {
    PLACES.iter().map(|place| Path::new(place).join(program)).find(|path| path.exists())
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

/// `path` without its first slash.
fn relative(path: &Path) -> &Path {
    path.strip_prefix("/").unwrap_or(path)
}

impl Tree {
    /// Adds an entry, and the directories above it.
    fn add(&mut self, path: &Path, entry: Entry) {
        for above in path.ancestors().skip(1).filter(|above| *above != Path::new("")) {
            self.0.entry(above.to_owned()).or_insert(Entry::Directory);
        }
        self.0.insert(path.to_owned(), entry);
    }

    fn file(&mut self, path: impl AsRef<Path>, from: PathBuf, executable: bool) {
        self.add(path.as_ref(), Entry::File { from, executable });
    }

    /// Adds a program, and what it is linked with under the names that it knows.
    fn program(&mut self, from: &Path, path: &Path) {
        self.file(path, from.to_owned(), true);
        let linked = Command::new("ldd").arg(from).output().unwrap();
        let linked = String::from_utf8_lossy(&linked.stdout).into_owned();
        for library in linked.split_whitespace().filter(|word| word.starts_with('/')) {
            let library = Path::new(library.trim_end_matches(':'));
            match fs::canonicalize(library) {
                // In the one place that DPDK loads it from: from two, it would be there twice.
                Ok(driver) if is_driver(&driver) => {
                    self.add(relative(library), Entry::Link(driver.clone()));
                    self.file(relative(&driver), driver.clone(), true);
                }
                _ => self.file(relative(library), library.to_owned(), true),
            }
        }
    }

    /// Adds a library where it is, and what it is linked with.
    fn library(&mut self, from: &Path) {
        self.program(from, relative(from));
    }

    fn write(&self, archive: &mut impl Write) -> io::Result<()> {
        for (path, entry) in &self.0 {
            let name = path.to_string_lossy();
            match entry {
                Entry::Directory => member(archive, &name, 0o040_755, &[])?,
                Entry::Link(to) => member(archive, &name, 0o120_777, to.to_string_lossy().as_bytes())?,
                Entry::File { from, executable } => {
                    let mode = if *executable { 0o100_755 } else { 0o100_644 };
                    member(archive, &name, mode, &fs::read(from)?)?;
                }
            }
        }
        member(archive, "TRAILER!!!", 0, &[])?;
        archive.flush()
    }
}

/// Writes one file, directory or link: thirteen numbers, the name and the content, each to a boundary of four bytes.
fn member(archive: &mut impl Write, name: &str, mode: u32, content: &[u8]) -> io::Result<()> {
    let (size, name_size) = (content.len(), name.len() + 1);
    // Number of the inode, mode, owner, group, links, time, size, four of devices, size of the name, check sum.
    let numbers = [0, mode as usize, 0, 0, 1, 0, size, 0, 0, 0, 0, name_size, 0];
    write!(archive, "070701")?;
    numbers.iter().try_for_each(|number| write!(archive, "{number:08X}"))?;
    write!(archive, "{name}\0")?;
    pad(archive, 110 + name_size)?;
    archive.write_all(content)?;
    pad(archive, size)
}

/// Fills up what has `length` bytes to a multiple of four.
fn pad(archive: &mut impl Write, length: usize) -> io::Result<()> {
    archive.write_all(&[0; 3][..length.next_multiple_of(4) - length])
}
