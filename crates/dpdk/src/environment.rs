//! DPDK in this process: memory and devices to use enter, a running DPDK leaves.

use std::ffi::{CStr, CString, OsStr, c_char};
use std::fs;
use std::marker::PhantomData;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};

use crate::error::{Error, errno};
use crate::log::Log;
use crate::shim;

/// Where frames are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// In hugepages that are reserved already, as many as are needed. They belong to no file.
    Hugepages,
    /// In ordinary memory, so many MiB of it. Network cards cannot reach it.
    Ordinary {
        /// How much, for all pools together.
        mebibytes: u32,
    },
}

/// Where the kernel says how many hugepages there are.
const HUGEPAGES: &str = "/sys/kernel/mm/hugepages";
/// Where DPDK makes a directory for each process of root.
const DIRECTORIES: &str = "/var/run/dpdk";

impl Memory {
    /// `mebibytes` in hugepages where enough are free, else in ordinary memory, which network `cards`
    /// (PCI addresses) cannot do with.
    ///
    /// # Errors
    /// [`Error::NoHugepages`] when there are cards.
    pub fn choose(mebibytes: u32, cards: &[String]) -> Result<Self, Error> {
        if free_hugepages(Path::new(HUGEPAGES)) >= u64::from(mebibytes) {
            Ok(Self::Hugepages)
        } else if cards.is_empty() {
            Ok(Self::Ordinary { mebibytes })
        } else {
            Err(Error::NoHugepages { mebibytes })
        }
    }
}

/// The memory in free hugepages of all sizes, in MiB.
fn free_hugepages(directory: &Path) -> u64 {
    let sizes = fs::read_dir(directory).into_iter().flatten().flatten();
    let free = sizes.filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let kibibytes: u64 = name.strip_prefix("hugepages-")?.strip_suffix("kB")?.parse().ok()?;
        let pages: u64 = fs::read_to_string(entry.path().join("free_hugepages")).ok()?.trim().parse().ok()?;
        Some(pages * kibibytes / 1024)
    });
    free.sum()
}

/// What DPDK is started with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The core of what DPDK does beside moving frames.
    pub core: usize,
    /// Where frames are kept.
    pub memory: Memory,
    /// The PCI addresses of the cards that may be used; DPDK touches no others.
    pub cards: Vec<String>,
}

/// DPDK, started. It ends with the last port, pool and burst, and leaves no files.
#[derive(Debug)]
pub struct Dpdk {
    log: Log,
    /// DPDK keeps pointers into its arguments.
    _arguments: Vec<CString>,
}

/// Whether this process started DPDK, which cannot be started twice.
static STARTED: AtomicBool = AtomicBool::new(false);

impl Dpdk {
    /// Starts DPDK, once in the life of a process.
    ///
    /// # Errors
    /// [`Error::StartedBefore`] the second time; [`Error::Start`] when memory or permissions are missing.
    pub fn start(config: &Config) -> Result<Arc<Self>, Error> {
        let arguments = arguments(config)?;
        if STARTED.swap(true, Ordering::SeqCst) {
            return Err(Error::StartedBefore);
        }
        let log = Log::open()?;
        let mut pointers: Vec<*mut c_char> =
            arguments.iter().map(|argument| argument.as_ptr().cast_mut()).collect();
        pointers.push(std::ptr::null_mut());
        let count = arguments.len() as i32;
        // On a thread of its own: DPDK pins the one that starts it.
        let result = thread::scope(|scope| {
            let pointers = Pointers(pointers);
            let starting = scope.spawn(move || {
                // Without the right to mount, a process that is killed while DPDK starts leaves an empty directory.
                let _ = hide_directory();
                let mut pointers = pointers;
                // SAFETY: `count` pointers to texts that end in zero and outlive DPDK, then a null.
                unsafe { shim::linerate_start(count, pointers.first()) }
            });
            starting.join().unwrap_or(-nix::libc::EFAULT)
        });
        remove_directory();
        if result < 0 {
            let hugepages = config.memory == Memory::Hugepages;
            return Err(Error::Start { cause: errno(result), said: log.since(0), hugepages });
        }
        Ok(Arc::new(Self { log, _arguments: arguments }))
    }

    /// Makes the calling thread one of DPDK's, with a cache of its own in every pool, until the
    /// result is dropped.
    ///
    /// # Errors
    /// [`Error::Thread`] when there are too many.
    pub fn register_thread(self: &Arc<Self>) -> Result<RegisteredThread, Error> {
        // SAFETY: DPDK is started.
        match unsafe { shim::linerate_register_thread() } {
            result if result < 0 => Err(Error::Thread { cause: errno(result) }),
            _ => Ok(RegisteredThread { _dpdk: Arc::clone(self), _not_send: PhantomData }),
        }
    }

    /// Runs `work`, and returns what it returned, or its error number with what DPDK said meanwhile.
    pub(crate) fn listen(&self, work: impl FnOnce() -> i32) -> Result<i32, (nix::Error, String)> {
        let start = self.log.end();
        match work() {
            result if result < 0 => Err((errno(result), self.log.since(start))),
            result => Ok(result),
        }
    }
}

impl Drop for Dpdk {
    fn drop(&mut self) {
        // SAFETY: DPDK is started, and ports, pools and bursts, which hold it, are gone.
        unsafe { shim::linerate_clean_up() };
    }
}

/// Gives the calling thread, which makes DPDK's directory, memory in the place of those of all processes: it goes with
/// the thread's mounts.
fn hide_directory() -> nix::Result<()> {
    unshare(CloneFlags::CLONE_NEWNS)?;
    // What the machine unmounts goes away here, too.
    mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | MsFlags::MS_SLAVE, None::<&str>)?;
    let _ = fs::create_dir(DIRECTORIES);
    mount(Some("tmpfs"), DIRECTORIES, Some("tmpfs"), MsFlags::empty(), Some("mode=700"))
}

/// Removes the directory that DPDK made for this process, if it came so far. It is empty: DPDK has no use for
/// it, and whatever ends the process then leaves nothing.
fn remove_directory() {
    // SAFETY: DPDK has been asked to start; the text belongs to it and is not changed.
    let directory = unsafe { CStr::from_ptr(shim::linerate_directory()) };
    let _ = fs::remove_dir(Path::new(OsStr::from_bytes(directory.to_bytes())));
}

/// The calling thread as one of DPDK's.
#[derive(Debug)]
pub struct RegisteredThread {
    _dpdk: Arc<Dpdk>,
    /// It is about the thread that made it.
    _not_send: PhantomData<*const ()>,
}

impl Drop for RegisteredThread {
    fn drop(&mut self) {
        // SAFETY: this thread was registered, and DPDK still runs.
        unsafe { shim::linerate_unregister_thread() };
    }
}

struct Pointers(Vec<*mut c_char>);

impl Pointers {
    fn first(&mut self) -> *mut *mut c_char {
        self.0.as_mut_ptr()
    }
}

// SAFETY: they point to texts that nobody changes while DPDK starts.
unsafe impl Send for Pointers {}

/// What DPDK's own command line would be.
fn arguments(config: &Config) -> Result<Vec<CString>, Error> {
    let mut words: Vec<String> = vec!["linerate".into()];
    words.extend(["--lcores".into(), format!("0@{}", config.core)]);
    words.extend(["--file-prefix".into(), format!("linerate-{}", std::process::id())]);
    match config.memory {
        // Hugepages without a file, and no files for other processes.
        Memory::Hugepages => words.push("--in-memory".into()),
        Memory::Ordinary { mebibytes } => {
            words.extend(["--no-huge".into(), "--no-shconf".into(), "-m".into(), mebibytes.to_string()]);
        }
    }
    if config.cards.is_empty() {
        words.push("--no-pci".into());
    }
    for card in &config.cards {
        words.extend(["-a".into(), card.clone()]);
    }
    words.extend(["--no-telemetry".into()]);
    words.into_iter().map(|word| CString::new(word.clone()).map_err(|_| Error::Text(word))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hugepages_of_all_sizes_count() {
        let directory = std::env::temp_dir().join(format!("linerate-hugepages-{}", std::process::id()));
        for (size, free) in [("hugepages-2048kB", "3\n"), ("hugepages-1048576kB", "1\n"), ("other", "9\n")] {
            fs::create_dir_all(directory.join(size)).unwrap();
            fs::write(directory.join(size).join("free_hugepages"), free).unwrap();
        }
        assert_eq!(free_hugepages(&directory), 6 + 1024);
        assert_eq!(free_hugepages(&directory.join("nowhere")), 0);
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn no_cards_are_touched_but_those_named() {
        let config = |cards: &[&str]| Config {
            core: 3,
            memory: Memory::Ordinary { mebibytes: 64 },
            cards: cards.iter().map(ToString::to_string).collect(),
        };
        let line = |cards: &[&str]| {
            let words = arguments(&config(cards)).unwrap();
            words.iter().map(|word| word.to_str().unwrap()).collect::<Vec<_>>().join(" ")
        };
        assert!(line(&[]).contains("--no-pci") && line(&[]).contains("0@3"), "{}", line(&[]));
        assert!(
            line(&["0000:01:00.0"]).contains("-a 0000:01:00.0")
                && !line(&["0000:01:00.0"]).contains("--no-pci")
        );
        assert_eq!(arguments(&config(&["a\0b"])), Err(Error::Text("a\0b".into())));
    }
}
