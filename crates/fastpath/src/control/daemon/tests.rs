//! A router one of whose workers panics, which no frame should make it do: it ends, and leaves nothing behind.

use std::cell::RefCell;
use std::fs;

use nix::net::if_::if_nametoindex;
use nix::sched::{CloneFlags, CpuSet, sched_getaffinity, unshare};
use nix::unistd::Pid;

use super::*;
use crate::control::config::{Idle, Precedence};
use crate::control::router::Asked;
use crate::dataplane::vector::Frame;
use crate::device::Input;

/// A device that no worker survives.
struct Deadly;

impl Input for Deadly {
    fn receive(&mut self, _: &mut [Frame]) -> usize {
        panic!("a worker panics, as the test wants");
    }

    fn release(&mut self) {}
}

/// As [`start`], with one more worker, which has only that device.
fn start_with_one_that_panics(config: Config, file: &Path) -> Result<(State, Workers)> {
    let core = config.workers.cores[0];
    let (mut state, mut workers) = start(config, file)?;
    assert!(if_nametoindex("lan").is_ok());
    let counters = Arc::new(Counters::default());
    let inputs = vec![Receive::new(0, Box::new(Deadly))];
    let worker = Worker::new(inputs, Vec::new(), state.router().attach(), Arc::clone(&counters));
    let jobs = vec![Job { core, worker, counters }];
    let mut more = threads::start(jobs, Idle::Sleep, Precedence::Ordinary)?;
    workers.running.append(&mut more.running);
    Ok((state, workers))
}

#[test]
fn a_worker_that_panics_ends_the_router_and_leaves_nothing() {
    // A tap in a namespace of this thread alone.
    if let Err(errno) = unshare(CloneFlags::CLONE_NEWNET) {
        eprintln!("skipped: network namespaces need root ({errno})");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let (file, socket) = (directory.path().join("router.toml"), directory.path().join("control"));
    let usable = sched_getaffinity(Pid::from_raw(0)).unwrap();
    let core = (0..CpuSet::count()).find(|core| usable.is_set(*core).unwrap()).unwrap();
    let text = format!(
        "[control]\nsocket = \"{}\"\n[workers]\ncores = [{core}]\nidle = \"sleep\"\n\
         [[interface]]\nname = \"lan\"\ndevice = \"null\"\naddresses = [\"10.0.0.1/24\"]\ntap = true\n",
        socket.display()
    );
    fs::write(&file, text).unwrap();
    let said = RefCell::new(Vec::new());
    let log = |line: &str| said.borrow_mut().push((line.to_owned(), socket.exists()));
    let ended = run_started(&file, &log, start_with_one_that_panics);
    let error = ended.unwrap_err().to_string();
    assert!(error.starts_with("a worker has failed, so the router stops"), "{error}");
    let [(line, served)] = &said.borrow()[..] else { panic!("{said:?}") };
    assert!(line.starts_with("in control at") && *served, "{line}");
    assert!(!socket.exists() && if_nametoindex("lan").is_err());
}

#[test]
fn a_reload_that_cannot_be_done_whole_changes_nothing() {
    if let Err(errno) = unshare(CloneFlags::CLONE_NEWNET) {
        eprintln!("skipped: network namespaces need root ({errno})");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("router.toml");
    let usable = sched_getaffinity(Pid::from_raw(0)).unwrap();
    let core = (0..CpuSet::count()).find(|core| usable.is_set(*core).unwrap()).unwrap();
    let text = |lan: u16, wan: u16, more: &str| {
        format!(
            "[control]\nsocket = \"/nowhere\"\n[workers]\ncores = [{core}]\n\
             [[interface]]\nname = \"lan\"\ndevice = \"null\"\nmtu = {lan}\naddresses = [\"10.0.0.1/24\"]\n{more}\
             [[interface]]\nname = \"wan\"\ndevice = \"null\"\nmtu = {wan}\ntap = true\n"
        )
    };
    fs::write(&file, text(1500, 1500, "")).unwrap();
    let mut state = State::new(configuration(&file).unwrap(), &file).unwrap();
    let before = state.config().clone();
    // The kernel cannot change an interface that somebody has removed.
    let removed = std::process::Command::new("ip").args(["link", "del", "wan"]).status();
    assert!(removed.unwrap().success());
    fs::write(&file, text(1400, 1400, "up = false\n")).unwrap();
    let error = format!("{:#}", state.reload(None).unwrap_err());
    assert!(error.contains("nothing was changed"), "{error}");
    assert_eq!(*state.config(), before);
    for number in 0..2 {
        let interface = state.router().interface(number).unwrap();
        assert_eq!((interface.mtu, interface.up), (1500, true), "{}", interface.name);
    }
}

#[test]
fn of_a_table_that_does_not_fit_no_route_is_taken() {
    let directory = tempfile::tempdir().unwrap();
    let (file, table) = (directory.path().join("router.toml"), directory.path().join("table.txt"));
    let text = "routes-file = \"table.txt\"\n[workers]\ncores = [0]\n\
                [[interface]]\nname = \"lan\"\ndevice = \"null\"\naddresses = [\"10.0.0.1/16\"]\n";
    fs::write(&file, text).unwrap();
    fs::write(&table, "20.0.0.0/24 via 10.0.0.2\n20.1.0.0/24 via 10.0.0.2\nblackhole 20.2.0.0/24\n").unwrap();
    let mut state = State::new(configuration(&file).unwrap(), &file).unwrap();
    let listed = |state: &mut State| state.router().routes4(Asked::All, usize::MAX);
    let (before, shown) = (state.config().clone(), listed(&mut state));
    assert_eq!(before.routes.len(), 3);
    // Each through a group of its own, of which there is no room for so many.
    let through = |at: u32| {
        let (one, other) = (2 + at % 97, 100 + at / 97);
        format!("30.{}.{}.0/24 nexthop via 10.0.0.{one} nexthop via 10.0.0.{other}\n", at >> 8, at & 255)
    };
    let groups: String = (0..4200).map(through).collect();
    let new = format!("20.1.0.0/24 via 10.0.0.3\nblackhole 20.0.0.0/24\n{groups}");
    fs::write(&table, new).unwrap();
    let error = format!("{:#}", state.reload(None).unwrap_err());
    assert!(error.contains("nothing was changed") && error.contains("groups are used"), "{error}");
    assert_eq!(*state.config(), before);
    assert_eq!(listed(&mut state), shown);
    // One that fits is taken then.
    fs::write(&table, "20.1.0.0/24 via 10.0.0.3\n").unwrap();
    assert!(state.reload(None).unwrap().ends_with(": 3 changes made"));
    assert_eq!(listed(&mut state).routes.len(), shown.routes.len() - 2);
}
