//! NAPI on threads of its own: an interface enters, the kernel thread that receives for it
//! leaves, pinned to a core.
//!
//! Without this, the thread that sends into a veth also does the receiver's work: the device under test
//! would run on the generator's core.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use genetlink::{Answers, Family, attribute, find};
use nix::errno::Errno;
use nix::unistd::Pid;
use scheduling::{Cores, Level, MOST_URGENT, Order, Policy, Slice};

use crate::error::{Error, Needs, Result};

/// A kernel thread that receives for one interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NapiThread {
    /// The interface.
    pub interface: String,
    /// The thread's process id.
    pub pid: i32,
    /// The core it is pinned to, if it is.
    pub core: Option<usize>,
}

/// Finds the threads of one lab's interfaces.
#[derive(Debug)]
pub(crate) struct ThreadFinder {
    /// Threads that were there before the lab: interfaces of another lab have the same names.
    strangers: BTreeSet<i32>,
}

impl ThreadFinder {
    /// Call this before any interface of the lab exists.
    pub fn new() -> Self {
        Self { strangers: threads_named("").into_iter().collect() }
    }

    /// The threads that receive for an interface of the calling thread's network namespace, queue by
    /// queue.
    ///
    /// The kernel tells since 6.8. Before, the name must do: `napi/INTERFACE-ID`.
    pub fn find(&self, interface: &str, index: u32) -> Vec<i32> {
        match ask_kernel(index) {
            Some(pids) if !pids.is_empty() => pids,
            _ => self.find_by_name(interface),
        }
    }

    fn find_by_name(&self, interface: &str) -> Vec<i32> {
        let mut pids = threads_named(interface);
        pids.retain(|pid| !self.strangers.contains(pid));
        pids
    }
}

/// Makes NAPI of `interface`, in the calling thread's network namespace, run on threads.
pub(crate) fn set_threaded(interface: &str) -> Result<()> {
    let path = threaded_path(interface);
    fs::write(&path, "1").map_err(|cause| {
        Error::kernel(
            format!("cannot set {}", path.display()),
            cause,
            Needs::RootsFiles,
            "Threaded NAPI needs Linux 5.12 or later and a driver with NAPI",
        )
    })
}

/// Whether NAPI of `interface`, in the calling thread's network namespace, runs on threads.
pub(crate) fn is_threaded(interface: &str) -> bool {
    fs::read_to_string(threaded_path(interface)).is_ok_and(|state| state.trim() != "0")
}

fn threaded_path(interface: &str) -> PathBuf {
    PathBuf::from(format!("/sys/class/net/{interface}/threaded"))
}

/// When a waking thread gets its core. All have precedence over ordinary work there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// At once: a device forwards in soft interrupts, which no process holds up, and must not wait
    /// for one here.
    AtOnce,
    /// At once, whichever thread runs, real-time threads included: for work of some microseconds only. Without the
    /// right to that, as any other thread.
    BeforeAll,
    /// When the thread that runs has had its slice: work gathers meanwhile and is done in full
    /// batches, as in a soft interrupt after another.
    AfterOthers,
    /// Whenever nobody else wants the core: for a thread that never sleeps.
    Meanwhile,
}

/// Gives a thread a core, and its turn there; 0 is the calling thread.
///
/// # Errors
/// [`Error`], without `CAP_SYS_NICE`, or when there is no such thread or core.
pub fn pin(pid: i32, core: usize, turn: Turn) -> Result<()> {
    let thread = Pid::from_raw(pid);
    Cores::of(&[core])
        .and_then(|cores| cores.keep(thread))
        .and_then(|()| match turn {
            // Where control groups share out real time, there may be none for this one.
            Turn::BeforeAll => {
                let taken = take_turn(thread, turn).or_else(|_| take_turn(thread, Turn::AtOnce));
                taken.or_else(|errno| if errno == Errno::EPERM { Ok(()) } else { Err(errno) })
            }
            Turn::AtOnce | Turn::AfterOthers | Turn::Meanwhile => take_turn(thread, turn),
        })
        .map_err(|errno| {
            Error::kernel(
                format!("cannot give the thread {pid} the core {core}"),
                errno,
                Needs::SysNice,
                "In a container, kernel threads can be out of reach: run on the machine itself",
            )
        })
}

fn take_turn(thread: Pid, turn: Turn) -> std::result::Result<(), Errno> {
    let nice = MOST_URGENT;
    let policy = match turn {
        Turn::BeforeAll => Policy::RealTime { level: Level::Watch, order: Order::FirstInFirstOut },
        Turn::AtOnce => Policy::Ordinary { nice, slice: Slice::Shortest },
        Turn::AfterOthers => Policy::Batch { nice, slice: Slice::Shortest },
        Turn::Meanwhile => Policy::Batch { nice, slice: Slice::Usual },
    };
    scheduling::set(thread, policy).map_err(|error| error.cause)
}

/// The core a thread is pinned to, if it is pinned to one.
#[must_use]
pub fn core_of(pid: i32) -> Option<usize> {
    let cores = Cores::of_thread(Pid::from_raw(pid)).ok()?;
    let mut numbers = cores.numbers();
    numbers.next().filter(|_| numbers.next().is_none())
}

/// The nice value of a thread.
pub(crate) fn nice_of(pid: i32) -> Option<i32> {
    parse_nice(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// Field 19 of `/proc/PID/stat` (proc(5)). Field 2, the name in parentheses, may hold anything.
fn parse_nice(stat: &str) -> Option<i32> {
    let (_, after_name) = stat.rsplit_once(')')?;
    after_name.split_ascii_whitespace().nth(16)?.parse().ok()
}

/// The kernel threads called `napi/INTERFACE-…`; of every interface if that is empty.
fn threads_named(interface: &str) -> Vec<i32> {
    let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
    processes
        .flatten()
        .filter_map(|process| process.file_name().to_str()?.parse().ok())
        .filter(|pid| {
            let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            // A kernel thread has no command line; anyone may take its name.
            is_napi_thread(&name, interface)
                && fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|command| command.is_empty())
        })
        .collect()
}

fn is_napi_thread(name: &str, interface: &str) -> bool {
    let Some((of, id)) = name.trim_end().strip_prefix("napi/").and_then(|rest| rest.rsplit_once('-')) else {
        return false;
    };
    (interface.is_empty() || of == interface)
        && !id.is_empty()
        && id.bytes().all(|byte| byte.is_ascii_digit())
}

// The numbers of linux/netdev.h.
const NAPI_GET: u8 = 11;
const NAPI_IFINDEX: u16 = 1;
const NAPI_ID: u16 = 2;
const NAPI_PID: u16 = 4;

/// The threads of interface `index` as the kernel tells them, in the order of its queues; `None` where it does not.
fn ask_kernel(index: u32) -> Option<Vec<i32>> {
    let interface = attribute(NAPI_IFINDEX, &index.to_ne_bytes());
    let answers = Family::open("netdev").ok()?.request(NAPI_GET, Answers::Each, &interface).ok()?;
    let number = |answer: &Vec<u8>, name| find(answer, name)?.try_into().ok().map(u32::from_ne_bytes);
    let thread = |answer: &Vec<u8>| Some((number(answer, NAPI_ID)?, number(answer, NAPI_PID)?.cast_signed()));
    let mut threads: Vec<(u32, i32)> = answers.iter().filter_map(thread).collect();
    // The kernel numbers them queue by queue.
    threads.sort_unstable();
    Some(threads.into_iter().map(|(_, pid)| pid).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_known_by_interface_and_number() {
        assert!(is_napi_thread("napi/dut0-8193\n", "dut0"));
        assert!(is_napi_thread("napi/dut0-8193\n", ""));
        assert!(!is_napi_thread("napi/dut0-8193", "dut"));
        assert!(!is_napi_thread("napi/dut0-x", "dut0"));
        assert!(!is_napi_thread("napi/dut0-", "dut0"));
        assert!(!is_napi_thread("ksoftirqd/0", ""));
    }

    #[test]
    fn the_nice_value_is_the_nineteenth_field() {
        let stat = "12 (napi/dut0-) 3) S 2 0 0 0 -1 69238848 0 0 0 0 0 13 0 0 0 -20 1 0 5 0 0";
        assert_eq!(parse_nice(stat), Some(-20));
        assert_eq!(parse_nice("12 (x) S 2"), None);
        assert!(nice_of(std::process::id().cast_signed()).is_some());
    }

    #[test]
    fn a_kernel_that_does_not_tell_is_not_missed() {
        if !nix::unistd::geteuid().is_root() {
            eprintln!("skipped: network namespaces need root");
            return;
        }
        let finder = ThreadFinder::new();
        let lab = crate::lab::tests::start();
        let link = lab.ports()[0].name.replace("port", "dut");
        let by_name = finder.find_by_name(&link);
        assert_eq!(by_name.len(), 1);
        let told = lab.dut_namespace().netlink(|netlink| Ok(ask_kernel(netlink.expect_link(&link)?.index)));
        match told.unwrap() {
            Some(pids) => assert_eq!(pids, by_name),
            None => eprintln!("this kernel does not tell, so there is nothing to compare with"),
        }
        assert!(ThreadFinder::new().find_by_name(&link).is_empty());
    }
}
