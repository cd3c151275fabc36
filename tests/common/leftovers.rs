//! What a program left behind: the mark of its processes and the number of the first one enter; processes, interfaces,
//! sockets and files that are still there leave.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use super::holdings::Holdings;
use super::namespace::Namespace;
use super::wait_until;

/// In the environment of a program and of all that it starts: which one it is.
pub const MARK: &str = "LINERATE_TEST_MARK";
/// Directories of the machine in which a program may leave something by its name or its number.
const PLACES: [&str; 7] =
    ["/sys/fs/bpf", "/sys/fs/cgroup", "/dev/hugepages", "/dev/shm", "/run", "/run/dpdk", "/tmp"];
/// How long the kernel may take to remove what nobody holds.
const PATIENCE: Duration = Duration::from_secs(20);

/// What must be as before once a program is dead: what the namespace that it began in has, and the machine in [`PLACES`].
#[derive(Debug, PartialEq)]
pub struct Surroundings {
    links: String,
    sockets: Vec<String>,
    files: BTreeSet<PathBuf>,
}

impl Surroundings {
    /// Those of `home`, with the files that bear the number `pid`.
    pub fn of(home: &Namespace, pid: Option<u32>) -> Self {
        let links = home.run("ip -o link; ip -o -br address; ip route; ip -6 route show proto static");
        Self { links, sockets: home.abstract_sockets(), files: named(pid) }
    }

    /// Why they are not these again, and what `holdings` are still there, once the processes that bear `mark` have ended,
    /// of which `pid` was the first.
    pub fn left_by(&self, mark: &str, pid: u32, home: &Namespace, holdings: &Holdings) -> Result<(), String> {
        let mut left = String::new();
        let is_gone = wait_until(PATIENCE, || {
            left = what_is_left(self, mark, pid, home, holdings);
            left.is_empty()
        });
        if is_gone { Ok(()) } else { Err(format!("left behind: {left}")) }
    }
}

fn what_is_left(
    before: &Surroundings,
    mark: &str,
    pid: u32,
    home: &Namespace,
    holdings: &Holdings,
) -> String {
    let processes = marked(mark);
    if !processes.is_empty() {
        return format!("processes {:?}", processes.into_iter().map(command_of).collect::<Vec<_>>());
    }
    let now = Surroundings::of(home, Some(pid));
    let files: Vec<_> = now.files.difference(&before.files).collect();
    if !files.is_empty() {
        return format!("{files:?}");
    }
    if now != *before { format!("{now:?}, not {before:?}") } else { holdings.remaining().join(" ") }
}

/// The processes that bear this mark.
pub fn marked(mark: &str) -> Vec<u32> {
    let mark = format!("{MARK}={mark}");
    let bears = |pid: &u32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
    };
    let names = fs::read_dir("/proc").unwrap().flatten();
    names.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(bears).collect()
}

/// The command line of a process.
pub fn command_of(pid: u32) -> String {
    let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    format!("{pid}: {}", String::from_utf8_lossy(&words).replace('\0', " "))
}

/// What the machine has in [`PLACES`] by the number `pid` or, where a name tells no number, by our names.
fn named(pid: Option<u32>) -> BTreeSet<PathBuf> {
    let is_its = |place: &str, name: &str| {
        let ours = place.starts_with("/sys/fs") && (name.contains("linerate") || name.contains("fastpath"));
        let mut words = name.split(|c: char| !c.is_ascii_alphanumeric());
        ours || pid.is_some_and(|pid| words.any(|word| word == pid.to_string()))
    };
    let entries = |place: &'static str| {
        let entries = fs::read_dir(place).into_iter().flatten().flatten();
        entries
            .filter(move |entry| is_its(place, &entry.file_name().to_string_lossy()))
            .map(|entry| entry.path())
    };
    PLACES.into_iter().flat_map(entries).collect()
}
