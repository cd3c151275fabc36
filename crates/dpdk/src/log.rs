//! What DPDK says: lines enter a file in memory, and the last ones leave with an error.

use std::fs::File;
use std::os::fd::IntoRawFd;
use std::os::unix::fs::FileExt;

use nix::sys::memfd::{MFdFlags, memfd_create};

use crate::error::{Error, errno};
use crate::shim;

/// How much of it an error quotes, in bytes.
const QUOTED: u64 = 400;

/// The file that DPDK writes to.
#[derive(Debug)]
pub(crate) struct Log(File);

impl Log {
    /// Leads all that DPDK says, from now to the end of the process, into a new file in memory.
    pub(crate) fn open() -> Result<Self, Error> {
        let file = File::from(memfd_create(c"dpdk-log", MFdFlags::MFD_CLOEXEC).map_err(Error::Log)?);
        let copy =
            file.try_clone().map_err(|error| Error::Log(error.try_into().unwrap_or(nix::Error::EMFILE)))?;
        // SAFETY: the descriptor is open and now belongs to the C library.
        let result = unsafe { shim::linerate_log_to(copy.into_raw_fd()) };
        if result < 0 { Err(Error::Log(errno(result))) } else { Ok(Self(file)) }
    }

    /// Where it ends now.
    pub(crate) fn end(&self) -> u64 {
        self.0.metadata().map_or(0, |metadata| metadata.len())
    }

    /// What was said since it ended at `start`, in one line.
    pub(crate) fn since(&self, start: u64) -> String {
        let end = self.end();
        let start = start.max(end.saturating_sub(QUOTED));
        let mut bytes = vec![0; (end - start.min(end)) as usize];
        if self.0.read_exact_at(&mut bytes, start).is_err() {
            return String::new();
        }
        in_one_line(&String::from_utf8_lossy(&bytes))
    }
}

fn in_one_line(text: &str) -> String {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join("; ")
}
