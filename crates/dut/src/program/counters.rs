//! What a device in a process of its own counts: it writes, others read at any time, in memory that they
//! share by a file without a name.

use std::fs::File;
use std::io::Write;
use std::num::NonZeroUsize;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result, ensure};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};

use crate::Passed;

/// Numbers of a direction.
const WORDS: usize = 9;

#[repr(C)]
struct Page {
    /// Not zero once the device forwards.
    ready: AtomicU64,
    directions: [[AtomicU64; WORDS]; 2],
}

fn words(passed: &Passed) -> [u64; WORDS] {
    let Passed { frames, bytes, forwarded, dropped: [every, chance, rate, stall, at_rate], refused } =
        *passed;
    [frames, bytes, forwarded, every, chance, rate, stall, at_rate, refused]
}

fn passed([frames, bytes, forwarded, every, chance, rate, stall, at_rate, refused]: [u64; WORDS]) -> Passed {
    Passed { frames, bytes, forwarded, dropped: [every, chance, rate, stall, at_rate], refused }
}

/// The counters of a device.
pub struct Counters {
    page: NonNull<Page>,
    file: File,
}

// SAFETY: all that is shared are atomic numbers.
unsafe impl Send for Counters {}
// SAFETY: as above.
unsafe impl Sync for Counters {}

impl Counters {
    /// Those of a device that has not begun.
    pub fn create() -> Result<Self> {
        let file = memfd_create(c"linerate counters", MFdFlags::MFD_CLOEXEC);
        let mut file = File::from(file.context("cannot make a file in memory")?);
        file.write_all(&[0; size_of::<Page>()]).context("cannot write to memory")?;
        Self::of(file)
    }

    /// Those that another process created, by its [`path`](Self::path).
    pub fn open(path: &Path) -> Result<Self> {
        let file = File::options().read(true).write(true).open(path);
        Self::of(file.with_context(|| format!("cannot open the counters at {}", path.display()))?)
    }

    /// Where other processes find them, as long as this is kept.
    pub fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/fd/{}", process::id(), self.file.as_raw_fd()))
    }

    /// The counters in `file`, which can be read and written.
    fn of(file: File) -> Result<Self> {
        let length = size_of::<Page>();
        let room = file.metadata().context("cannot look at the counters")?.len();
        ensure!(room >= length as u64, "the counters have {room} bytes, and need {length}");
        let length = NonZeroUsize::new(length).context("counters without a size")?;
        let (protection, flags) = (ProtFlags::PROT_READ | ProtFlags::PROT_WRITE, MapFlags::MAP_SHARED);
        // SAFETY: a new mapping, of a file that is long enough and that nobody shortens.
        let page = unsafe { mmap(None, length, protection, flags, &file, 0) };
        Ok(Self { page: page.context("cannot share the device's counters")?.cast(), file })
    }

    /// Says that the device forwards.
    pub fn set_ready(&self) {
        self.page().ready.store(1, Ordering::Release);
    }

    /// Whether it does.
    pub fn is_ready(&self) -> bool {
        self.page().ready.load(Ordering::Acquire) != 0
    }

    /// Tells what became of the frames that entered at port `direction`.
    #[inline]
    pub fn set(&self, direction: usize, passed: &Passed) {
        for (word, value) in self.page().directions[direction].iter().zip(words(passed)) {
            word.store(value, Ordering::Relaxed);
        }
    }

    /// What became of those that entered at port 0, and at port 1.
    pub fn get(&self) -> [Passed; 2] {
        let read = |word: &AtomicU64| word.load(Ordering::Relaxed);
        self.page().directions.each_ref().map(|direction| passed(direction.each_ref().map(read)))
    }

    fn page(&self) -> &Page {
        // SAFETY: mapped until this is dropped, aligned as pages are; any bits are valid numbers.
        unsafe { self.page.as_ref() }
    }
}

impl Drop for Counters {
    fn drop(&mut self) {
        // SAFETY: mapped by us with this length, and nobody has it any more.
        let _ = unsafe { munmap(self.page.cast(), size_of::<Page>()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_writes_the_other_reads() {
        let ours = Counters::create().unwrap();
        let device = Counters::open(&ours.path()).unwrap();
        assert!(!ours.is_ready());
        assert_eq!(ours.get(), [Passed::default(); 2]);
        let passed = Passed { frames: 10, bytes: 640, forwarded: 3, dropped: [1, 2, 3, 0, 0], refused: 1 };
        device.set(1, &passed);
        device.set_ready();
        assert!(ours.is_ready());
        assert_eq!(ours.get(), [Passed::default(), passed]);
        assert!(Counters::open(Path::new("/dev/null")).is_err(), "too small");
    }
}
