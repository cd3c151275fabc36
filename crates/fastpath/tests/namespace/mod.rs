//! Network namespaces of a test, and who follows the kernel's tables in one. They are gone when the test
//! is, since nothing but a file descriptor holds them.

pub mod bird;
pub mod frr;

use std::collections::BTreeMap;
use std::fs::File;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use fastpath::fib::{Address, Prefix};
use fastpath::kernel::{Change, Hop, Path, RouteChange, Watcher};
use nix::sched::{CloneFlags, setns, unshare};
use wire::MacAddress;

/// How long anything may take before it counts as failed.
const PATIENCE: Duration = Duration::from_secs(20);

pub struct Namespace {
    net: OwnedFd,
}

impl Namespace {
    /// `None`, with the reason printed, where there can be none.
    pub fn new() -> Option<Self> {
        let made = thread::spawn(|| {
            unshare(CloneFlags::CLONE_NEWNET)?;
            Ok::<OwnedFd, nix::Error>(File::open("/proc/thread-self/ns/net").unwrap().into())
        });
        match made.join().unwrap() {
            Ok(net) => {
                let namespace = Self { net };
                namespace.run("ip link set lo up");
                Some(namespace)
            }
            Err(errno) => {
                eprintln!("skipped: network namespaces need root ({errno})");
                None
            }
        }
    }

    /// Does something inside.
    pub fn inside<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        thread::scope(|scope| {
            let enter_and_work = || {
                setns(&self.net, CloneFlags::CLONE_NEWNET).unwrap();
                work()
            };
            scope.spawn(enter_and_work).join().unwrap()
        })
    }

    /// Runs the lines of `script` inside, to the first that fails.
    pub fn run(&self, script: &str) -> String {
        let output = self.inside(|| Command::new("sh").args(["-ec", script]).output().unwrap());
        assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// How `ip` finds it, as long as it is there.
    pub fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.net.as_raw_fd())
    }

    /// The kernel's index of an interface.
    pub fn index(&self, interface: &str) -> u32 {
        self.inside(|| nix::net::if_::if_nametoindex(interface).unwrap())
    }

    /// Follows the kernel's tables from now on.
    pub fn follow(&self) -> Follower {
        Follower::new(self.inside(Watcher::start).unwrap())
    }
}

/// What is known of the kernel's tables by the changes alone.
#[derive(Debug, Default)]
pub struct Known {
    pub routes: BTreeMap<(IpAddr, u8), Path>,
    pub addresses: Vec<(u32, IpAddr, u8)>,
    pub neighbours: BTreeMap<(u32, IpAddr), (MacAddress, bool)>,
    pub synchronised: usize,
    pub changes4: Vec<RouteChange<u32>>,
}

impl Known {
    /// The route of a prefix like `10.0.0.0/8`.
    pub fn route(&self, prefix: &str) -> Option<&Path> {
        let (address, length) = prefix.split_once('/').unwrap();
        self.routes.get(&(address.parse().unwrap(), length.parse().unwrap()))
    }

    fn hear(&mut self, change: Change) {
        match change {
            Change::Route4(change) => {
                self.changes4.push(change.clone());
                self.route_change(change, |address| Ipv4Addr::from(address).into());
            }
            Change::Route6(change) => self.route_change(change, |address| Ipv6Addr::from(address).into()),
            Change::Address { interface, address, length } => {
                assert!(!self.addresses.contains(&(interface, address, length)));
                self.addresses.push((interface, address, length));
            }
            Change::AddressRemoved { interface, address, length } => {
                let at = self.addresses.iter().position(|known| *known == (interface, address, length));
                self.addresses.remove(at.unwrap());
            }
            Change::Neighbour { interface, address, mac, permanent } => {
                self.neighbours.insert((interface, address), (mac, permanent));
            }
            Change::NeighbourRemoved { interface, address } => {
                self.neighbours.remove(&(interface, address)).unwrap();
            }
            Change::Synchronised => self.synchronised += 1,
            Change::Interrupted(why) => panic!("{why}"),
        }
    }

    fn route_change<A: Address>(&mut self, change: RouteChange<A>, ip: impl Fn(A) -> IpAddr) {
        let prefix: Prefix<A> = change.prefix;
        let key = (ip(prefix.address()), prefix.length());
        let path = change.path.map(|path| Path::clone(&path));
        let before = match path.clone() {
            Some(path) => self.routes.insert(key, path),
            None => self.routes.remove(&key),
        };
        assert_ne!(before, path, "{prefix} did not change");
    }
}

pub struct Follower {
    pub watcher: Watcher,
    pub known: Known,
}

impl Follower {
    /// One that has heard what was there.
    pub fn new(watcher: Watcher) -> Self {
        let mut follower = Self { watcher, known: Known::default() };
        follower.until("the tables were read", |known| known.synchronised > 0);
        follower
    }

    /// Hears changes until `wanted` holds.
    pub fn until(&mut self, what: &str, wanted: impl Fn(&Known) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !wanted(&self.known) {
            assert!(Instant::now() < deadline, "never came to that: {what}; {:?}", self.watcher.health());
            for change in self.watcher.changes(Duration::from_millis(50)).unwrap() {
                self.known.hear(change);
            }
        }
    }

    /// Hears changes until `prefix` has this route.
    pub fn until_route(&mut self, prefix: &str, path: Option<Path>) {
        let deadline = Instant::now() + PATIENCE;
        while self.known.route(prefix) != path.as_ref() {
            assert!(Instant::now() < deadline, "{prefix}: {:?}, not {path:?}", self.known.route(prefix));
            for change in self.watcher.changes(Duration::from_millis(50)).unwrap() {
                self.known.hear(change);
            }
        }
    }
}

/// A path by gateways on an interface, with weights.
pub fn through(hops: &[(u32, &str, u16)]) -> Option<Path> {
    let hop = |(interface, gateway, weight): &(u32, &str, u16)| Hop {
        interface: *interface,
        gateway: (!gateway.is_empty()).then(|| gateway.parse().unwrap()),
        weight: *weight,
    };
    Some(Path::through(hops.iter().map(hop).collect()))
}
