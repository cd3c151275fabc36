//! Network namespaces of a test, made and managed with the system's own tools: independent of the
//! program's lab. They are gone when the test is, since nothing but a file descriptor holds them.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::thread;

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::{PROGRAM, tool};

/// A network namespace with nothing but a loopback interface.
pub struct Namespace {
    net: OwnedFd,
}

impl Namespace {
    pub fn new() -> Self {
        let make = || {
            unshare(CloneFlags::CLONE_NEWNET).unwrap();
            File::open("/proc/thread-self/ns/net").unwrap().into()
        };
        let namespace = Self { net: thread::spawn(make).join().unwrap() };
        namespace.run("ip link set lo up");
        namespace
    }

    /// Its path, as `ip … netns PATH` takes it.
    pub fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.net.as_raw_fd())
    }

    /// Makes `command` run inside, with the `/sys` that belongs to it, like `ip netns exec` does.
    pub fn enter(&self, command: &mut Command) {
        let net = self.net.as_raw_fd();
        let enter = move || {
            // SAFETY: the namespace outlives the spawning of the command, and so does its descriptor.
            let net = unsafe { BorrowedFd::borrow_raw(net) };
            setns(net, CloneFlags::CLONE_NEWNET)?;
            unshare(CloneFlags::CLONE_NEWNS)?;
            private_mounts()?;
            mount(Some("sysfs"), "/sys", Some("sysfs"), MsFlags::empty(), None::<&str>)?;
            Ok(())
        };
        // SAFETY: between fork and exec the closure only makes system calls; it takes no lock and
        // allocates nothing.
        unsafe { command.pre_exec(enter) };
    }

    /// `program` inside, not yet run.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        self.enter(&mut command);
        command
    }

    /// Runs the lines of `script` inside, to the first that fails; returns what they printed.
    pub fn run(&self, script: &str) -> String {
        tool(self.command("sh").args(["-ec", script]))
    }

    /// The names of its interfaces.
    pub fn interfaces(&self) -> Vec<String> {
        let list = self.run("ip -o link");
        list.lines().filter_map(|line| Some(line.split(": ").nth(1)?.split('@').next()?.to_owned())).collect()
    }

    /// The names of its abstract sockets.
    pub fn abstract_sockets(&self) -> Vec<String> {
        let list = self.run("cat /proc/self/net/unix");
        list.lines()
            .filter_map(|line| line.split_whitespace().nth(7)?.strip_prefix('@').map(str::to_owned))
            .collect()
    }

    /// The inode by which `/proc` knows it.
    pub fn inode(&self) -> u64 {
        nix::sys::stat::fstat(self.net.as_fd()).unwrap().st_ino
    }
}

impl Drop for Namespace {
    /// A test that fails leaves no lab in the background.
    fn drop(&mut self) {
        if !thread::panicking() {
            return;
        }
        let Ok(list) = self.command(PROGRAM).args(["lab", "list", "--json"]).output() else { return };
        let labs: Vec<serde_json::Value> = serde_json::from_slice(&list.stdout).unwrap_or_default();
        for pid in labs.iter().filter_map(|lab| lab["pid"].as_i64()) {
            let _ = kill(Pid::from_raw(pid as i32), Signal::SIGKILL);
        }
    }
}

/// Keeps later mounts of this mount namespace to itself.
fn private_mounts() -> nix::Result<()> {
    mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | MsFlags::MS_PRIVATE, None::<&str>)
}

/// Mounts a memory file system of `size` on `directory`, for the calling thread and what it starts.
pub fn mount_memory(directory: &std::path::Path, size: &str) -> io::Result<()> {
    unshare(CloneFlags::CLONE_NEWNS)?;
    private_mounts()?;
    let size = format!("size={size}");
    mount(Some("tmpfs"), directory, Some("tmpfs"), MsFlags::empty(), Some(size.as_str()))?;
    Ok(())
}
