//! Settings of the kernel that a device asks for and that are one for the whole machine: its parameters enter; the settings
//! are as asked for until what leaves is dropped.
//!
//! A guardian puts them back: a shell that waits for its standard input to end, which it does with this process,
//! however that ends. It also holds an abstract socket, so that two runs of Linerate do not take each other's values for
//! the machine's.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use lab::{Error, Result};

use super::spec::Parameters;
use super::{Parameter, SpecError, routes};

/// The settings; the machine's first network namespace alone can change them.
pub(super) const SETTINGS: [Parameter; 4] = [
    Parameter {
        key: "conntrack-max",
        values: "a number from 1 to 16M, as in 2M",
        meaning: "the most connections that this machine tracks during the run (nf_conntrack_max); put back afterwards (default: unchanged)",
    },
    Parameter {
        key: "conntrack-buckets",
        values: "a number from 1 to 16M, as in 1M",
        meaning: "the buckets of their hash table during the run (nf_conntrack_buckets); put back afterwards (default: unchanged)",
    },
    Parameter {
        key: "netdev-budget",
        values: "a number from 1 to 100k",
        meaning: "the most packets that a core of this machine receives in one go during the run (netdev_budget); put back afterwards (default: unchanged)",
    },
    Parameter {
        key: "dev-weight",
        values: "a number from 1 to 10k",
        meaning: "the most packets of a backlog that a core of this machine takes at once during the run (dev_weight); put back afterwards (default: unchanged)",
    },
];

/// The file of each setting, and its largest value: larger tables take gigabytes, larger turns hold a core up for long.
const FILES: [(&str, usize); SETTINGS.len()] = [
    ("/proc/sys/net/netfilter/nf_conntrack_max", 16_000_000),
    ("/proc/sys/net/netfilter/nf_conntrack_buckets", 16_000_000),
    ("/proc/sys/net/core/netdev_budget", 100_000),
    ("/proc/sys/net/core/dev_weight", 10_000),
];
/// Held by the guardian of the one run that has changed them.
const LOCK: &str = "linerate-settings";
/// Puts the values back that follow the files' names, once its input has ended. Signals to all of a terminal's processes
/// do not keep it from that.
const GUARDIAN: &str =
    "trap '' HUP INT TERM; read -r _; while [ $# -gt 1 ]; do echo \"$2\" > \"$1\"; shift 2; done";

/// What this process has changed, shared by all devices that ask for the same.
static CHANGED: Mutex<Weak<Changed>> = Mutex::new(Weak::new());

/// Values that are asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Wanted([Option<usize>; SETTINGS.len()]);

/// Values that hold until this is dropped.
#[derive(Debug)]
pub(super) struct Changed {
    wanted: Wanted,
    _guardian: Guardian,
}

/// A process that writes values to files when this is dropped, or when this process ends in another way.
#[derive(Debug)]
struct Guardian(Child);

/// What the parameters ask for.
pub(super) fn read(parameters: &Parameters) -> Result<Wanted, SpecError> {
    let mut wanted = Wanted::default();
    for ((setting, (_, most)), value) in SETTINGS.iter().zip(FILES).zip(&mut wanted.0) {
        let number = |text: &str| routes::scaled(text).filter(|number| (1..=most).contains(number));
        *value = parameters.get(setting.key, number)?;
    }
    Ok(wanted)
}

impl Wanted {
    /// Sets the values, if any are asked for.
    ///
    /// # Errors
    /// When this is not the machine's first network namespace, another run has set them, or the kernel refuses.
    pub fn set(self) -> Result<Option<Arc<Changed>>> {
        if self == Self::default() {
            return Ok(None);
        }
        let mut changed = CHANGED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = changed.upgrade().filter(|known| known.wanted == self) {
            return Ok(Some(known));
        }
        let now = Arc::new(Changed::set(self)?);
        *changed = Arc::downgrade(&now);
        Ok(Some(now))
    }
}

impl Changed {
    fn set(wanted: Wanted) -> Result<Self> {
        let refused = |cause: io::Error, remedy: &str| Error::Kernel {
            what: "cannot change settings of this machine".to_owned(),
            cause,
            remedy: remedy.to_owned(),
        };
        let first = "They are the machine's: run as root in its first network namespace, or leave these parameters out";
        let address = SocketAddr::from_abstract_name(LOCK).map_err(|cause| refused(cause, first))?;
        let lock = UnixListener::bind_addr(&address)
            .map_err(|cause| refused(cause, "Another run of Linerate has changed them: wait for its end"))?;
        let mut before = Vec::new();
        for ((file, _), _) in FILES.iter().zip(wanted.0).filter(|(_, value)| value.is_some()) {
            let value = fs::read_to_string(file).map_err(|cause| refused(cause, first))?;
            before.extend([(*file).to_owned(), value.trim().to_owned()]);
        }
        // It is there before anything is changed.
        let guardian = Guardian::start(&before, Stdio::from(OwnedFd::from(lock)));
        let guardian = guardian.map_err(|cause| refused(cause, "Is there a shell?"))?;
        let changed = Self { wanted, _guardian: guardian };
        for ((file, _), value) in FILES.iter().zip(wanted.0) {
            let Some(value) = value else { continue };
            fs::write(file, value.to_string()).map_err(|cause| refused(cause, first))?;
        }
        Ok(changed)
    }
}

impl Guardian {
    /// Starts it with pairs of files and values; it holds what `held` is open on.
    fn start(before: &[String], held: Stdio) -> io::Result<Self> {
        let mut shell = Command::new("sh");
        shell.args(["-c", GUARDIAN, LOCK]).args(before).current_dir("/").process_group(0);
        shell.stdin(Stdio::piped()).stdout(held).stderr(Stdio::null()).spawn().map(Self)
    }
}

impl Drop for Guardian {
    /// The values are back when this returns.
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_back_when_the_guardian_is_dropped() {
        let directory = tempfile::tempdir().unwrap();
        let files = ["one", "two"].map(|name| directory.path().join(name).display().to_string());
        let pairs = [files[0].clone(), "10".to_owned(), files[1].clone(), "20".to_owned()];
        let guardian = Guardian::start(&pairs, Stdio::null()).unwrap();
        files.iter().for_each(|file| fs::write(file, "99").unwrap());
        drop(guardian);
        assert_eq!(files.map(|file| fs::read_to_string(file).unwrap()), ["10\n", "20\n"]);
    }

    #[test]
    fn what_is_not_asked_for_is_not_touched() {
        assert!(Wanted::default().set().unwrap().is_none());
    }
}
