//! Regions of shared memory: a size or a peer's file enters, mapped memory leaves.

use std::fs::File;
use std::ptr::NonNull;

use memmap2::{MmapOptions, MmapRaw};
use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::stat::fstat;
use nix::sys::statfs::{HUGETLBFS_MAGIC, fstatfs};

use crate::closer::Held;
use crate::error::Reason;

/// A mapped region. It stays mapped as long as anybody holds it, whatever its peer does.
pub struct Region {
    memory: MmapRaw,
    sealed: bool,
}

impl Region {
    /// A new one of `size` bytes, all zero, that nobody can make smaller or larger; and its file.
    pub fn create(size: usize) -> Result<(Self, File), Reason> {
        let flags = MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING;
        let file = File::from(memfd_create(c"memif", flags)?);
        file.set_len(size as u64)?;
        let seals = SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_GROW | SealFlag::F_SEAL_SEAL;
        fcntl(&file, FcntlArg::F_ADD_SEALS(seals))?;
        // Workers shall not wait for the kernel at the first use of each page.
        let memory = MmapOptions::new().len(size).populate().map_raw(&file)?;
        Ok((Self { memory, sealed: true }, file))
    }

    /// One of `size` bytes, all zero, that this process shares with nobody: it takes no file, which Miri lacks.
    #[cfg(test)]
    #[allow(clippy::unwrap_used)] // a test may panic
    pub fn unshared(size: usize) -> Self {
        Self { memory: MmapRaw::from(MmapOptions::new().len(size).map_anon().unwrap()), sealed: true }
    }

    /// A peer's, of `size` bytes, if its file is that large. What can be sealed is: after that, it cannot
    /// become smaller. Another file is refused, unless `unsealed` says that its peer is trusted.
    pub fn accept(file: &Held, size: u64, unsealed: bool) -> Result<Self, Reason> {
        // Before anything else, since all else may wait for the peer where the file is of a file system of its
        // own; and before its size is looked at, so that it cannot shrink in between.
        let sealed = is_sealed(file);
        if !sealed && !unsealed {
            return Err(Reason::Refused(
                "its memory can be taken away: share sealed memory, or say unsealed=true here",
            ));
        }
        let length = usize::try_from(size).map_err(|_| Reason::Refused("the region is too large"))?;
        if size == 0 || u64::try_from(fstat(file)?.st_size).unwrap_or(0) < size {
            return Err(Reason::Refused("the region's file is smaller than announced"));
        }
        let memory = MmapOptions::new().len(length).map_raw(file)?;
        Ok(Self { memory, sealed })
    }

    /// Whether nobody can take the memory away.
    pub fn is_sealed(&self) -> bool {
        self.sealed
    }

    /// The first of `length` bytes at `offset`; `None` where they are not all inside.
    #[inline]
    pub fn at(&self, offset: usize, length: usize) -> Option<NonNull<u8>> {
        let end = offset.checked_add(length)?;
        if end > self.memory.len() {
            return None;
        }
        // SAFETY: `offset` is within the mapping, or one past its end.
        NonNull::new(unsafe { self.memory.as_mut_ptr().add(offset) })
    }
}

/// Whether a file's memory stays, after it was sealed if it can be. Waits for nobody: only memory has seals.
fn is_sealed(file: &Held) -> bool {
    // Where it is refused, the seals that are there decide.
    let _ = fcntl(file, FcntlArg::F_ADD_SEALS(SealFlag::F_SEAL_SHRINK));
    let Ok(seals) = fcntl(file, FcntlArg::F_GET_SEALS) else { return false };
    // Pages of a huge one can be taken out of its middle, and there may be none to replace them.
    SealFlag::from_bits_truncate(seals).contains(SealFlag::F_SEAL_SHRINK)
        && fstatfs(file).is_ok_and(|system| system.filesystem_type() != HUGETLBFS_MAGIC)
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;

    use super::*;
    use crate::closer::Closer;

    fn held(file: &File) -> Held {
        Closer::new().hold(file.try_clone().unwrap().into())
    }

    #[test]
    fn nothing_outside_is_handed_out() {
        let region = Region::unshared(8192);
        assert!(region.at(0, 8192).is_some() && region.at(8192, 0).is_some());
        for (offset, length) in [(0, 8193), (8192, 1), (usize::MAX, 1), (1, usize::MAX), (8000, 193)] {
            assert!(region.at(offset, length).is_none(), "{offset} {length}");
        }
    }

    #[test]
    fn a_file_that_is_too_small_is_refused() {
        let (_, file) = Region::create(4096).unwrap();
        let accept = |size| Region::accept(&held(&file), size, false);
        assert!(accept(4096).is_ok_and(|region| region.is_sealed()));
        assert!(matches!(accept(4097), Err(Reason::Refused(_))));
        assert!(accept(u64::MAX).is_err());
        assert!(accept(0).is_err());
    }

    #[test]
    fn a_peer_cannot_shrink_what_was_accepted() {
        let file = File::from(memfd_create(c"peer", MFdFlags::MFD_ALLOW_SEALING).unwrap());
        file.set_len(4096).unwrap();
        let region = Region::accept(&held(&file), 4096, false).unwrap();
        assert!(region.is_sealed());
        assert_eq!(file.set_len(0).unwrap_err().kind(), ErrorKind::PermissionDenied);
    }

    #[test]
    fn a_file_that_cannot_be_sealed_is_taken_from_trusted_peers_alone() {
        let unsealable = File::from(memfd_create(c"peer", MFdFlags::empty()).unwrap());
        for file in [tempfile::tempfile().unwrap(), unsealable] {
            file.set_len(4096).unwrap();
            let refused = Region::accept(&held(&file), 4096, false).err().unwrap();
            assert!(refused.to_string().contains("unsealed"), "{refused}");
            assert!(Region::accept(&held(&file), 4096, true).is_ok_and(|region| !region.is_sealed()));
        }
    }
}
