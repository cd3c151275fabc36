//! What a process holds in the kernel, noted while it lives and looked for when it is dead.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use nix::sched::{CloneFlags, setns};
use nix::sys::socket::getsockopt;
use nix::{getsockopt_impl, libc, sockopt_impl};
use serde_json::Value;

use super::namespace::Namespace;
use super::wait_until;

/// As in asm-generic/socket.h.
const SO_NETNS_COOKIE: libc::c_int = 71;

sockopt_impl!(
    /// The number of the socket's network namespace, which no other one ever has.
    NetnsCookie,
    GetOnly,
    libc::SOL_SOCKET,
    SO_NETNS_COOKIE,
    u64
);

/// Namespaces by inode, with the cookie where they could be entered: the kernel gives the inode of one that is gone to
/// the next. BPF programs, maps and links by number.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Holdings {
    namespaces: BTreeMap<u64, Option<u64>>,
    pub programs: BTreeSet<u64>,
    pub maps: BTreeSet<u64>,
    links: BTreeSet<u64>,
}

impl Holdings {
    /// What process `pid` holds now, but for the namespace `home` that it was started in.
    pub fn of(pid: u32, home: &Namespace) -> Self {
        let process = format!("/proc/{pid}");
        let namespaces = namespaces(Path::new(&process)).into_iter();
        let namespaces = namespaces.map(|(inode, link)| (inode, link.as_deref().and_then(cookie)));
        let mut found = Self { namespaces: namespaces.collect(), ..Self::default() };
        found.namespaces.remove(&home.inode());
        for file in entries(&format!("{process}/fdinfo")) {
            let text = fs::read_to_string(file).unwrap_or_default();
            let number =
                |key: &str| text.lines().find_map(|line| line.strip_prefix(key)?.trim().parse::<u64>().ok());
            // A link names its program too.
            found.links.extend(number("link_id:"));
            found.programs.extend(number("prog_id:"));
            found.maps.extend(number("map_id:"));
        }
        found
    }

    /// What these processes hold, likewise.
    pub fn of_all(pids: &[u32], home: &Namespace) -> Self {
        let mut all = Self::default();
        for found in pids.iter().map(|pid| Self::of(*pid, home)) {
            all.namespaces.extend(found.namespaces);
            all.programs.extend(found.programs);
            all.maps.extend(found.maps);
            all.links.extend(found.links);
        }
        all
    }

    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Those that are still there, by kind and number.
    pub fn remaining(&self) -> Vec<String> {
        let mut remaining = Vec::new();
        for (kind, ours) in [("prog", &self.programs), ("map", &self.maps), ("link", &self.links)] {
            let there: BTreeSet<u64> = bpf(kind).iter().filter_map(|object| object["id"].as_u64()).collect();
            remaining.extend(ours.intersection(&there).map(|id| format!("{kind} {id}")));
        }
        let mut used: BTreeMap<u64, Option<PathBuf>> = BTreeMap::new();
        for (inode, link) in entries("/proc").iter().flat_map(|process| namespaces(process)) {
            let known = used.entry(inode).or_default();
            *known = known.take().or(link);
        }
        let is_there = |(inode, ours): &(&u64, &Option<u64>)| {
            used.get(inode).is_some_and(|link| {
                let there = link.as_deref().and_then(cookie);
                ours.zip(there).is_none_or(|(ours, there)| ours == there)
            })
        };
        remaining
            .extend(self.namespaces.iter().filter(is_there).map(|(inode, _)| format!("namespace {inode}")));
        remaining
    }

    /// Bytes of kernel memory that the maps take.
    pub fn map_memory(&self) -> u64 {
        let ours = |map: &&Value| map["id"].as_u64().is_some_and(|id| self.maps.contains(&id));
        bpf("map").iter().filter(ours).filter_map(|map| map["bytes_memlock"].as_u64()).sum()
    }
}

/// All BPF objects of this kind, as bpftool lists them. It is asked again when it gives up because one of
/// them, no matter whose, went away while it looked.
fn bpf(kind: &str) -> Vec<Value> {
    let mut list = Err("bpftool was not asked".to_owned());
    wait_until(Duration::from_secs(10), || {
        let output = Command::new("bpftool").args(["--json", kind, "show"]).output().unwrap();
        let said = serde_json::from_slice(&output.stdout).map_err(|error| error.to_string());
        list = if output.status.success() { said } else { Err(format!("{} {said:?}", output.status)) };
        list.is_ok()
    });
    list.unwrap()
}

/// The network namespaces that a process uses, with a link to each: its threads are in them, or it has them open. Those
/// that are mounted where it can see them have no link.
fn namespaces(process: &Path) -> BTreeMap<u64, Option<PathBuf>> {
    let process = process.display();
    let inode = |link: &str| link.strip_prefix("net:[")?.strip_suffix(']')?.parse().ok();
    let mounts = fs::read_to_string(format!("{process}/mountinfo")).unwrap_or_default();
    let mut found: BTreeMap<u64, Option<PathBuf>> =
        mounts.split_whitespace().filter_map(inode).map(|inode| (inode, None)).collect();
    let threads = entries(&format!("{process}/task")).into_iter().map(|thread| thread.join("ns/net"));
    let links = threads.chain(entries(&format!("{process}/fd")));
    found.extend(links.filter_map(|link| Some((inode(fs::read_link(&link).ok()?.to_str()?)?, Some(link)))));
    found
}

/// The cookie of the network namespace behind a link; `None` if it cannot be entered, or is gone.
fn cookie(link: &Path) -> Option<u64> {
    let namespace = File::open(link).ok()?;
    let entered = thread::spawn(move || {
        setns(namespace, CloneFlags::CLONE_NEWNET).ok()?;
        getsockopt(&UnixDatagram::unbound().ok()?, NetnsCookie).ok()
    });
    entered.join().unwrap()
}

fn entries(directory: &str) -> Vec<std::path::PathBuf> {
    fs::read_dir(directory)
        .map(|entries| entries.flatten().map(|entry| entry.path()).collect())
        .unwrap_or_default()
}
