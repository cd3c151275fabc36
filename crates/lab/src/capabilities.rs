//! What this machine can do: nothing enters, one [`Check`] for each thing that Linerate needs
//! or likes to have leaves, with the remedy where it is missing.
//!
//! What can be tried is tried, in namespaces that are gone afterwards: a list of kernel options
//! would only say what should work.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::{collections::BTreeMap, fmt};

use nix::sys::resource::{Resource, getrlimit};
use nix::sys::utsname::uname;
use results::record::Topology;
use rights::Capability;

use crate::device::{Addressing, Device, Running, Site};
use crate::error::{Error, Result};
use crate::lab::{Config, Lab};
use crate::namespace::Namespace;
use crate::netlink::VethEnd;
use crate::pass;
use crate::placement::{self, Placement, Wishes};
use crate::plan;

/// How serious a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// All is well.
    Good,
    /// Something is missing that only some tests need.
    Degraded,
    /// Nothing works without it.
    Missing,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// What was looked at.
    pub name: &'static str,
    /// How serious the finding is.
    pub level: Level,
    /// What was found.
    pub found: String,
    /// What to do about it; `None` where all is well.
    pub remedy: Option<String>,
}

/// The oldest kernel that generates in the kernel: live frames came to `BPF_PROG_RUN` in 5.18.
const OLDEST_KERNEL: (u32, u32) = (5, 18);

/// What a lab and the engines of the kernel need.
const NEEDED: [Capability; 9] = [
    // Files of /sys/class/net, which belong to root even where another user made the interface.
    Capability::CAP_DAC_OVERRIDE,
    // The memory that frames of AF_XDP are in, beyond the usual limit.
    Capability::CAP_IPC_LOCK,
    // Links, addresses and routes; programs at interfaces.
    Capability::CAP_NET_ADMIN,
    Capability::CAP_NET_RAW,
    // To enter a mount namespace, and to make one.
    Capability::CAP_SYS_CHROOT,
    Capability::CAP_SYS_ADMIN,
    // Cores and precedence of the kernel's threads.
    Capability::CAP_SYS_NICE,
    // Kernel programs, and what they read.
    Capability::CAP_PERFMON,
    Capability::CAP_BPF,
];
/// Further capabilities of root that some commands need: for files and programs of others, for the memory and ports of DPDK, and
/// for ports below 1024.
const OF_ROOT: [Capability; 12] = [
    Capability::CAP_CHOWN,
    Capability::CAP_DAC_READ_SEARCH,
    Capability::CAP_FOWNER,
    Capability::CAP_KILL,
    Capability::CAP_NET_BIND_SERVICE,
    Capability::CAP_SETGID,
    Capability::CAP_SETUID,
    Capability::CAP_SYSLOG,
    Capability::CAP_SYS_PTRACE,
    Capability::CAP_SYS_RAWIO,
    Capability::CAP_SYS_RESOURCE,
    Capability::CAP_SETPCAP,
];

/// Gives up what no command needs, for good: of root's capabilities those to load modules, to set the clock, to make
/// devices and so on. To be called before there are other threads.
///
/// # Errors
/// When the kernel does not take them.
pub fn give_up_the_rest() -> std::result::Result<(), rights::Error> {
    rights::keep_only(&[NEEDED.as_slice(), &OF_ROOT].concat())
}

/// Looks at everything. As root this takes about a tenth of a second.
#[must_use]
pub fn check_machine() -> Vec<Check> {
    let mut checks = vec![
        kernel(),
        capabilities(),
        system_calls(),
        btf(),
        locked_memory(),
        cores(),
        irqbalance(),
        hugepages(),
    ];
    checks.extend(namespaces_and_links());
    checks
}

fn good(name: &'static str, found: impl Into<String>) -> Check {
    Check { name, level: Level::Good, found: found.into(), remedy: None }
}

fn short_of(name: &'static str, level: Level, found: impl Into<String>, remedy: &str) -> Check {
    Check { name, level, found: found.into(), remedy: Some(remedy.to_owned()) }
}

/// An error says cause and remedy in one line; the remedy is what follows its last full stop.
fn failed(name: &'static str, level: Level, error: &Error) -> Check {
    match error {
        Error::Kernel { what, cause, remedy } => short_of(name, level, format!("{what}: {cause}"), remedy),
        Error::Bpf { what, cause, remedy } => short_of(name, level, format!("{what}: {cause}"), remedy),
        other => short_of(name, level, other.to_string(), "See the message"),
    }
}

fn kernel() -> Check {
    let release = uname().map(|name| name.release().to_string_lossy().into_owned()).unwrap_or_default();
    let (major, minor) = OLDEST_KERNEL;
    match parse_release(&release) {
        Some(version) if version >= OLDEST_KERNEL => good("kernel", release),
        _ => {
            let remedy = format!("Install Linux {major}.{minor} or later");
            short_of("kernel", Level::Missing, release, &remedy)
        }
    }
}

/// `6.1.0-18-amd64` is 6.1.
fn parse_release(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// What a reader of results should know where this process cannot have its threads go before others on their cores: it
/// has neither the capability nor, as an audio user has, limits that grant it (getrlimit(2)).
#[must_use]
pub fn without_precedence() -> Option<String> {
    let status = fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let limit = |resource| getrlimit(resource).map_or(0, |(soft, _)| soft);
    let is_granted = limit(Resource::RLIMIT_NICE) >= 40 || limit(Resource::RLIMIT_RTPRIO) > 0;
    let is_missing = missing_capabilities(&status).iter().any(|name| name == "CAP_SYS_NICE");
    (is_missing && !is_granted).then(|| {
        "without CAP_SYS_NICE the threads of the tester and of its device had no precedence on their cores: other \
         programs may have held them up"
            .to_owned()
    })
}

fn capabilities() -> Check {
    let status = fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let missing = missing_capabilities(&status).join(", ");
    if missing.is_empty() {
        return good("capabilities", "all that are needed");
    }
    let remedy = "Run linerate as root (sudo), or with these; --engine memif needs none";
    short_of("capabilities", Level::Missing, format!("without {missing}"), remedy)
}

fn missing_capabilities(status: &str) -> Vec<String> {
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = effective.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    NEEDED.iter().filter(|one| effective & one.bitmask() == 0).map(ToString::to_string).collect()
}

fn system_calls() -> Check {
    match rights::system_calls::can_be_given_up() {
        Ok(()) => good("system calls", "workers give up those that moving frames does not need"),
        Err(error) => {
            let remedy = "Use a kernel with CONFIG_SECCOMP_FILTER (Debian's and Ubuntu's are)";
            short_of("system calls", Level::Degraded, format!("workers keep all: {error}"), remedy)
        }
    }
}

fn btf() -> Check {
    if Path::new("/sys/kernel/btf/vmlinux").exists() {
        return good("BTF", "/sys/kernel/btf/vmlinux");
    }
    let remedy = "Use a kernel built with CONFIG_DEBUG_INFO_BTF (Debian's and Ubuntu's are)";
    short_of("BTF", Level::Degraded, "the kernel does not describe its types", remedy)
}

fn locked_memory() -> Check {
    match getrlimit(Resource::RLIMIT_MEMLOCK) {
        Ok((soft, _)) if soft == nix::libc::RLIM_INFINITY => good("locked memory", "unlimited"),
        // Since 5.11 BPF maps count against the memory cgroup, not against this limit.
        Ok((soft, _)) => {
            good("locked memory", format!("{} KiB (the kernel does not count BPF programs)", soft / 1024))
        }
        Err(errno) => short_of("locked memory", Level::Degraded, errno.to_string(), "See 'ulimit -l'"),
    }
}

fn cores() -> Check {
    match placement::host() {
        Ok(host) => judge_cores(&host),
        Err(error) => short_of("cores", Level::Missing, error.to_string(), "Mount /proc"),
    }
}

/// Whether the cores of `host` suffice for a tester and a device that do not disturb each other.
fn judge_cores(host: &Topology) -> Check {
    const MORE: &str =
        "Give the machine more cores: one generates, one is the device's, a third one receives";
    let told = |what: &str| format!("{}{what}", host.in_words());
    match (host.cores.len(), host.physical().len()) {
        (3.., 3..) => good("cores", told("")),
        (3.., _) => short_of(
            "cores",
            Level::Degraded,
            told("; tester and device slow each other where they are threads of one physical core"),
            MORE,
        ),
        (2, 2) => short_of("cores", Level::Degraded, told("; receiving shares the device's core"), MORE),
        (2, _) => short_of(
            "cores",
            Level::Degraded,
            told(
                "; receiving shares the device's core, and the tester slows it as a thread of its physical core",
            ),
            MORE,
        ),
        _ => short_of("cores", Level::Degraded, told("; tester and device share it"), MORE),
    }
}

/// Whether the daemon runs that moves interrupts from core to core, also while a test goes on.
fn irqbalance() -> Check {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut names = processes.filter_map(|process| fs::read_to_string(process.path().join("comm")).ok());
    match names.any(|name| name.trim() == "irqbalance") {
        false => good("irqbalance", "does not run"),
        true => short_of(
            "irqbalance",
            Level::Degraded,
            "runs: between real ports it moves interrupts during a test",
            "Stop it while you measure: 'systemctl stop irqbalance'",
        ),
    }
}

fn hugepages() -> Check {
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let field =
        |name: &str| meminfo.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok());
    match (field("HugePages_Total:"), field("HugePages_Free:")) {
        (Some(total), Some(free)) if free > 0 => good("hugepages", format!("{free} of {total} free")),
        (Some(_), Some(_)) => short_of(
            "hugepages",
            Level::Degraded,
            "none free: only the DPDK engine wants them, and needs them for network cards",
            "Reserve some: 'linerate doctor --fix' does",
        ),
        _ => {
            let remedy = "Use a kernel with CONFIG_HUGETLBFS";
            short_of("hugepages", Level::Degraded, "not supported: only the DPDK engine needs them", remedy)
        }
    }
}

/// Tries what a lab does, step by step, until a step fails.
fn namespaces_and_links() -> Vec<Check> {
    let namespace = match Namespace::create() {
        Ok(namespace) => namespace,
        Err(error) => return vec![failed("network namespaces", Level::Missing, &error)],
    };
    let mut checks = vec![good("network namespaces", "can be created")];
    checks.push(vlan(&namespace));
    drop(namespace);
    match lab() {
        Ok(found) => {
            checks.push(good("veth", "can be created"));
            checks.push(match found.get("xdp").map(String::as_str) {
                Some("native") => good("XDP", "attaches natively to veth"),
                other => short_of(
                    "XDP",
                    Level::Degraded,
                    format!("attaches as: {}", other.unwrap_or("unknown")),
                    "Use a kernel whose veth supports XDP natively (4.19 or later)",
                ),
            });
            checks.push(good(
                "threaded NAPI",
                format!("runs on core {}", found.get("napi-core").map_or("unknown", String::as_str)),
            ));
        }
        Err(error) => checks.push(failed("veth, XDP, threaded NAPI", Level::Missing, &error)),
    }
    checks
}

/// A device that takes frames by XDP and leaves them to the kernel, which has nothing to do with them.
#[derive(Debug)]
pub(crate) struct Nothing;

impl fmt::Display for Nothing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Device for Nothing {
    fn name(&self) -> &'static str {
        "nothing"
    }

    fn parameters(&self) -> &BTreeMap<String, String> {
        const { &BTreeMap::new() }
    }

    fn addressing(&self) -> Addressing {
        Addressing::Device
    }

    fn start(&self, site: &Site) -> Result<Running> {
        pass::start(site)
    }
}

/// Sets a small lab up and takes it down.
fn lab() -> Result<BTreeMap<String, String>> {
    let placement = Placement::choose(&placement::host()?, &Wishes::default())?;
    Lab::start(&Config { dut: Arc::new(Nothing), placement, max_frame_size: 1518 })?.dut_configuration()
}

fn vlan(namespace: &Namespace) -> Check {
    // The loopback interface takes none in any kernel, so that one more pair is needed.
    let end = |name, index| VethEnd { name, index, mac: plan::mac(0, 1), mtu: 1500, receive_queues: 1 };
    let made = namespace.netlink(|netlink| {
        netlink.add_veth(&end("veth1", 10), &end("veth2", 11), namespace.fd())?;
        netlink.add_vlan("vlan1", 10, 1)
    });
    match made {
        Ok(()) => good("VLAN interfaces", "can be created"),
        Err(_) => short_of(
            "VLAN interfaces",
            Level::Degraded,
            "not in this kernel: tagged frames can be sent, but no Linux device under test untags them",
            "Use a kernel with CONFIG_VLAN_8021Q ('modprobe 8021q')",
        ),
    }
}

#[cfg(test)]
mod tests {
    use results::record::Core;

    use super::*;

    #[test]
    fn cores_suffice_where_three_of_them_are_physical() {
        let host = |count: usize, threads: usize| {
            let siblings = |number: usize| {
                (0..count).filter(move |other| *other != number && other / threads == number / threads)
            };
            let core = |number| Core { number, siblings: siblings(number).collect(), ..Core::default() };
            Topology { cores: (0..count).map(core).collect(), ..Topology::default() }
        };
        let told = |count, threads| {
            let check = judge_cores(&host(count, threads));
            (check.level, check.found)
        };
        assert_eq!(told(6, 2), (Level::Good, "6 cores: 3 physical cores of 2 threads".to_owned()));
        assert_eq!(told(3, 1), (Level::Good, "3 cores".to_owned()));
        let slow = "4 cores: 2 physical cores of 2 threads; tester and device slow each other where they are threads of one \
                    physical core";
        assert_eq!(told(4, 2), (Level::Degraded, slow.to_owned()));
        for (count, threads) in [(2, 1), (2, 2), (1, 1)] {
            assert_eq!(told(count, threads).0, Level::Degraded, "{count} {threads}");
        }
    }

    #[test]
    fn releases_are_compared_as_numbers() {
        assert_eq!(parse_release("6.1.0-18-amd64"), Some((6, 1)));
        assert_eq!(parse_release("5.18"), Some((5, 18)));
        assert!(parse_release("5.4.0-generic").unwrap() < OLDEST_KERNEL);
        assert_eq!(parse_release("linux"), None);
    }

    #[test]
    fn missing_capabilities_are_named() {
        assert!(missing_capabilities("Name:\tx\nCapEff:\t000001ffffffffff\n").is_empty());
        assert_eq!(missing_capabilities("CapEff:\t0000000000003000\n").len(), NEEDED.len() - 2);
        assert_eq!(missing_capabilities("CapEff:\t0000013fffffffff\n"), ["CAP_PERFMON", "CAP_BPF"]);
        assert_eq!(missing_capabilities("").len(), NEEDED.len());
    }
}
