//! Debian's stock kernels. Which one is wanted enters; its image and the modules that a test machine needs leave,
//! as files under `target/vm`. What is not there is downloaded by apt-get, into lists and a directory of our own: no
//! setting of this machine changes, and no right is needed.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::Kernel;
use crate::common::{REPOSITORY, tool};

/// Where the archive is.
const ARCHIVE: &str = "http://deb.debian.org";
/// The keys of the archive, in package debian-archive-keyring.
const KEYS: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
/// The modules that are kept: what Linux calls networking, and the cards.
const KEPT: [&str; 18] = [
    "net/8021q",
    "net/802",
    "net/bridge",
    "net/core",
    "net/ipv4",
    "net/ipv6",
    "net/llc",
    "net/netfilter",
    "net/sched",
    "lib",
    "crypto",
    "drivers/virtio",
    "drivers/char/virtio_console",
    "drivers/net/virtio_net",
    "drivers/net/net_failover",
    "drivers/net/veth",
    "drivers/net/vmxnet3",
    "drivers/net/ethernet/intel/e1000",
];
/// What the cards' drivers stand on.
const BELOW: [&str; 2] = ["drivers/ptp/ptp", "drivers/pps/pps_core"];

/// A kernel as files.
#[derive(Clone)]
pub struct Files {
    /// What `uname -r` says.
    pub version: String,
    pub image: PathBuf,
    /// A directory with `lib/modules/VERSION`.
    pub modules: PathBuf,
}

/// The directory where downloaded kernels stay.
pub fn directory() -> PathBuf {
    let target = Path::new(crate::common::PROGRAM).parent().and_then(Path::parent);
    target.map_or_else(|| Path::new(REPOSITORY).join("target"), Path::to_owned).join("vm")
}

/// The files of `kernel`; the error says why it is unavailable.
pub fn find(kernel: Kernel) -> Result<Files, String> {
    fs::create_dir_all(directory()).map_err(|error| format!("cannot make {:?}: {error}", directory()))?;
    // One process downloads, others wait for it.
    let lock = File::create(directory().join("lock")).map_err(|error| error.to_string())?;
    lock.lock().map_err(|error| error.to_string())?;
    let home = directory().join(kernel.name());
    if !home.join("version").exists() {
        download(kernel, &home)?;
    }
    let version = fs::read_to_string(home.join("version")).map_err(|error| error.to_string())?;
    Ok(Files { image: home.join("vmlinuz"), modules: home.join("modules"), version })
}

/// Downloads `kernel` into `home`. The version is written last: without it all is done anew.
fn download(kernel: Kernel, home: &Path) -> Result<(), String> {
    let _ = fs::remove_dir_all(home);
    for part in ["lists/partial", "cache/archives/partial", "sources", "package"] {
        fs::create_dir_all(home.join(part)).map_err(|error| error.to_string())?;
    }
    let apt = Apt::new(kernel, home)?;
    let meta = apt.run("apt-cache", &["depends", "linux-image-amd64"])?;
    let package = meta.lines().find_map(|line| line.trim().strip_prefix("Depends: "));
    let package = package.ok_or_else(|| format!("{} has no linux-image-amd64", kernel.suites()[0]))?;
    let version = package.strip_prefix("linux-image-").ok_or_else(|| format!("{package} is no kernel"))?;
    apt.run("apt-get", &["-q", "download", package])?;

    let packages = fs::read_dir(home).map_err(|error| error.to_string())?.flatten();
    let mut packages = packages.map(|entry| entry.path());
    let package = packages.find(|path| path.extension().is_some_and(|end| end == "deb"));
    let package = package.ok_or("apt-get downloaded nothing")?;
    let unpacked = home.join("package");
    tool(Command::new("dpkg").arg("-x").args([&package, &unpacked]));
    fs::rename(unpacked.join("boot").join(format!("vmlinuz-{version}")), home.join("vmlinuz"))
        .map_err(|error| error.to_string())?;
    keep_modules(&unpacked, &home.join("modules"), version)?;
    for part in ["lists", "cache", "sources", "package"] {
        let _ = fs::remove_dir_all(home.join(part));
    }
    let _ = fs::remove_file(package);
    fs::write(home.join("version"), version).map_err(|error| error.to_string())
}

/// Moves the modules that are needed, and lists what depends on what.
fn keep_modules(unpacked: &Path, kept: &Path, version: &str) -> Result<(), String> {
    let below = |root: &Path| root.join("lib/modules").join(version);
    let (from, to) = (below(unpacked), below(kept));
    let mut files = Vec::new();
    walk(&from, &mut files);
    for file in files {
        let Ok(name) = file.strip_prefix(&from) else { continue };
        let path = name.to_string_lossy();
        let module = path.strip_prefix("kernel/");
        let wanted = |part: &&str| module.is_some_and(|module| module.starts_with(*part));
        // Lists of what is built in have no directory.
        if name.components().count() > 1 && !KEPT.iter().chain(&BELOW).any(wanted) {
            continue;
        }
        let target = to.join(name);
        let parent = target.parent().unwrap_or(&to);
        fs::create_dir_all(parent)
            .and_then(|()| fs::rename(&file, &target))
            .map_err(|error| error.to_string())?;
    }
    tool(Command::new("depmod").arg("-b").arg(kept).arg(version));
    Ok(())
}

/// Adds all files below `directory`.
pub fn walk(directory: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => walk(&entry.path(), files),
            _ => files.push(entry.path()),
        }
    }
}

/// apt-get with lists of its own.
struct Apt {
    home: PathBuf,
}

impl Apt {
    /// With the lists that `kernel` is in.
    fn new(kernel: Kernel, home: &Path) -> Result<Self, String> {
        let mut sources = String::new();
        for suite in kernel.suites() {
            let archive = if suite.ends_with("-security") { "debian-security" } else { "debian" };
            sources += &format!("deb [signed-by={KEYS}] {ARCHIVE}/{archive} {suite} main\n");
        }
        fs::write(home.join("sources/debian.list"), sources).map_err(|error| error.to_string())?;
        let apt = Self { home: home.to_owned() };
        apt.run("apt-get", &["-q", "update", "-o", "APT::Update::Error-Mode=any"])?;
        Ok(apt)
    }

    /// What `program` prints; the error names what it said last.
    fn run(&self, program: &str, words: &[&str]) -> Result<String, String> {
        let mut command = Command::new(program);
        command.current_dir(&self.home).env("LC_ALL", "C").env("DEBIAN_FRONTEND", "noninteractive");
        let at = |part: &str| self.home.join(part).display().to_string();
        for option in [
            "Dir::Etc::sourcelist=/dev/null".to_owned(),
            format!("Dir::Etc::sourceparts={}", at("sources")),
            format!("Dir::State::lists={}", at("lists")),
            format!("Dir::Cache={}", at("cache")),
            "APT::Sandbox::User=".to_owned(),
            "Acquire::Retries=2".to_owned(),
            "Acquire::http::Timeout=20".to_owned(),
        ] {
            command.args(["-o", &option]);
        }
        let output = command.args(words).output().map_err(|error| format!("no {program}: {error}"))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let last = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("nothing").to_owned();
        Err(format!("{program} {} failed and said: {last}", words.join(" ")))
    }
}
