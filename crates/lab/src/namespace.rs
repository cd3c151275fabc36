//! A network namespace without a name: nothing enters but the wish for one; what leaves is a
//! place to run closures in, held by file descriptors alone.
//!
//! No file and no process keeps it, so when this process ends, however it ends, the kernel
//! removes the namespace and every interface, route and XDP link in it.

use std::ffi::CString;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::{env, io, panic, thread};

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, setns, unshare};
use nix::unistd::chdir;

use crate::error::{Error, Needs, Result};
use crate::netlink::Netlink;

/// A network namespace, and a mount namespace whose `/sys` shows it.
#[derive(Debug)]
pub struct Namespace {
    net: OwnedFd,
    mount: OwnedFd,
}

impl Namespace {
    /// Creates an empty network namespace. Its loopback interface is down.
    ///
    /// # Errors
    /// [`Error::Kernel`] without `CAP_SYS_ADMIN`, or where the kernel allows no more namespaces.
    pub fn create() -> Result<Self> {
        // The thread moves into the new namespaces and ends there; only descriptors come back.
        on_own_thread(|| {
            isolate().map_err(|(step, errno)| {
                Error::kernel(
                    format!("cannot create a network namespace ({step})"),
                    errno,
                    Needs::SysAdmin,
                    "See 'sysctl user.max_net_namespaces user.max_mnt_namespaces'; \
                     a container may forbid them",
                )
            })?;
            Self::of_this_thread()
        })
    }

    /// The network namespace that the calling thread is in, with mounts of its own.
    ///
    /// # Errors
    /// [`Error::Kernel`] without `CAP_SYS_ADMIN`, or where the kernel allows no more namespaces.
    pub fn with_own_mounts() -> Result<Self> {
        on_own_thread(|| {
            own_mounts().map_err(|errno| {
                let remedy = "See 'sysctl user.max_mnt_namespaces'; a container may forbid them";
                Error::kernel("cannot create a mount namespace", errno, Needs::SysAdmin, remedy)
            })?;
            Self::of_this_thread()
        })
    }

    fn of_this_thread() -> Result<Self> {
        let open = |path: &str| {
            File::open(path).map(OwnedFd::from).map_err(|cause| {
                Error::kernel(format!("cannot open {path}"), cause, Needs::SysAdmin, "Mount /proc")
            })
        };
        Ok(Self { net: open("/proc/thread-self/ns/net")?, mount: open("/proc/thread-self/ns/mnt")? })
    }

    /// The network namespace and the mount namespace that another process made.
    pub(crate) fn of([net, mount]: [OwnedFd; 2]) -> Self {
        Self { net, mount }
    }

    /// The network namespace, for `setns` or `IFLA_NET_NS_FD`.
    #[must_use]
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.net.as_fd()
    }

    /// The mount namespace whose `/sys/class/net` shows this network namespace.
    #[must_use]
    pub fn mount_fd(&self) -> BorrowedFd<'_> {
        self.mount.as_fd()
    }

    /// Another handle on the same namespace.
    ///
    /// # Errors
    /// [`Error::Kernel`] when this process may open no more files.
    pub fn try_clone(&self) -> Result<Self> {
        let clone = |fd: &OwnedFd| {
            fd.try_clone().map_err(|cause| {
                Error::kernel(
                    "cannot duplicate a file descriptor",
                    cause,
                    Needs::SysAdmin,
                    "Raise 'ulimit -n'",
                )
            })
        };
        Ok(Self { net: clone(&self.net)?, mount: clone(&self.mount)? })
    }

    /// Runs `work` inside the namespace, on a thread of its own. Sockets opened there stay in
    /// it; `/proc/sys/net` and `/sys/class/net` are the namespace's.
    ///
    /// # Errors
    /// [`Error::Kernel`] without `CAP_SYS_ADMIN`; else what `work` returns.
    ///
    /// # Panics
    /// When `work` panics.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
        on_own_thread(|| {
            enter(self.fd(), self.mount_fd()).map_err(|errno| {
                Error::kernel(
                    "cannot enter a network namespace",
                    errno,
                    Needs::Entering,
                    "'linerate doctor' shows what this kernel lacks",
                )
            })?;
            work()
        })
    }

    /// Makes `command` run inside, in the directory that this process is in.
    ///
    /// # Errors
    /// [`Error::Kernel`] when this process may open no more files.
    pub fn contain(&self, command: &mut Command) -> Result<()> {
        let Self { net, mount } = self.try_clone()?;
        contain(command, [net, mount]);
        Ok(())
    }

    /// Puts an empty directory in memory in the place of `directory`, inside only: what programs write there
    /// goes with the namespace. Others reach it through `/proc/PID/root` of a process inside.
    ///
    /// # Errors
    /// [`Error::Kernel`] without `CAP_SYS_ADMIN`, or when there is no such directory.
    pub fn make_private(&self, directory: &str) -> Result<()> {
        self.run(|| {
            let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
            mount(Some("tmpfs"), directory, Some("tmpfs"), flags, Some("mode=700")).map_err(|errno| {
                let what = format!("cannot mount memory at {directory}");
                Error::kernel(what, errno, Needs::SysAdmin, "A container may forbid it")
            })
        })
    }

    /// Runs `work` inside the namespace with a netlink connection to it.
    ///
    /// # Errors
    /// [`crate::Error`], when the kernel refuses a step.
    pub fn netlink<T: Send>(&self, work: impl FnOnce(&Netlink) -> Result<T> + Send) -> Result<T> {
        self.run(|| work(&Netlink::open()?))
    }
}

/// Moves the calling thread, which must not share its file system state with others (a thread
/// after `unshare`, or a fresh child process), into the two namespaces.
pub(crate) fn enter(net: BorrowedFd, mount: BorrowedFd) -> nix::Result<()> {
    unshare(CloneFlags::CLONE_FS)?;
    setns(net, CloneFlags::CLONE_NEWNET)?;
    setns(mount, CloneFlags::CLONE_NEWNS)
}

/// Makes `command` run inside a network and a mount namespace, in the directory that this process is in.
pub(crate) fn contain(command: &mut Command, [net, mount]: [OwnedFd; 2]) {
    let directory = env::current_dir().ok().and_then(|path| CString::new(path.as_os_str().as_bytes()).ok());
    let inside = move || {
        enter(net.as_fd(), mount.as_fd())?;
        // Entering a mount namespace leads to its root.
        if let Some(directory) = &directory {
            let _ = chdir(directory.as_c_str());
        }
        Ok(())
    };
    // SAFETY: between fork and exec the closure only makes system calls (unshare, setns, chdir)
    // on descriptors and a string made before; it takes no lock and allocates nothing.
    unsafe { command.pre_exec(inside) };
}

/// Moves the calling thread into new namespaces, with a `/sys` of their own.
fn isolate() -> Result<(), (&'static str, nix::Error)> {
    unshare(CloneFlags::CLONE_NEWNET).map_err(|errno| ("unshare", errno))?;
    own_mounts().map_err(|errno| ("mounts", errno))?;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(Some("sysfs"), "/sys", Some("sysfs"), flags, None::<&str>).map_err(|errno| ("mount /sys", errno))
}

/// Gives the calling thread mounts of its own. Only makes system calls, so that a child may call it before it runs a program.
///
/// # Errors
/// What the kernel answers: `EPERM` without `CAP_SYS_ADMIN`, `ENOSPC` where it allows no more mount namespaces.
pub fn own_mounts() -> nix::Result<()> {
    unshare(CloneFlags::CLONE_NEWNS)?;
    // Slave, not private: nothing mounted here is seen outside, but what the machine unmounts
    // goes away here too, so that a running lab never keeps a disk busy.
    mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | MsFlags::MS_SLAVE, None::<&str>)
}

/// Runs `work` on a new thread and returns what it returns, a panic included.
pub(crate) fn on_own_thread<T: Send>(work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    thread::scope(|scope| {
        let thread = thread::Builder::new().name("lab".to_owned()).spawn_scoped(scope, work);
        match thread {
            Ok(thread) => thread.join().unwrap_or_else(|panic| panic::resume_unwind(panic)),
            Err(cause) => Err(no_thread(cause)),
        }
    })
}

fn no_thread(cause: io::Error) -> Error {
    Error::kernel("cannot start a thread", cause, Needs::SysAdmin, "Raise 'ulimit -u'")
}
