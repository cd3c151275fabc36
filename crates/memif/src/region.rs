//! Regions of shared memory: a size or a peer's file enters, mapped memory leaves.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;

use memmap2::{MmapOptions, MmapRaw};
use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};

use crate::error::Reason;

/// A mapped region. It stays mapped as long as anybody holds it, whatever its peer does.
pub struct Region {
    memory: MmapRaw,
    file: File,
    sealed: bool,
}

impl Region {
    /// A new one of `size` bytes, all zero, that nobody can make smaller or larger.
    pub fn create(size: usize) -> Result<Self, Reason> {
        let flags = MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING;
        let file = File::from(memfd_create(c"memif", flags)?);
        file.set_len(size as u64)?;
        let seals = SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_GROW | SealFlag::F_SEAL_SEAL;
        fcntl(&file, FcntlArg::F_ADD_SEALS(seals))?;
        // Workers shall not wait for the kernel at the first use of each page.
        let memory = MmapOptions::new().len(size).populate().map_raw(&file)?;
        Ok(Self { memory, file, sealed: true })
    }

    /// A peer's, of `size` bytes, if its file is that large. What can be sealed is: after that, it cannot
    /// become smaller.
    pub fn accept(file: OwnedFd, size: u64) -> Result<Self, Reason> {
        let file = File::from(file);
        // Before its size is looked at, so that it cannot shrink in between. Where it is refused, the
        // seals that are there decide.
        let _ = fcntl(&file, FcntlArg::F_ADD_SEALS(SealFlag::F_SEAL_SHRINK));
        let seals = fcntl(&file, FcntlArg::F_GET_SEALS).unwrap_or(0);
        let sealed = SealFlag::from_bits_truncate(seals).contains(SealFlag::F_SEAL_SHRINK);
        let length = usize::try_from(size).map_err(|_| Reason::Refused("the region is too large"))?;
        if size == 0 || file.metadata()?.len() < size {
            return Err(Reason::Refused("the region's file is smaller than announced"));
        }
        let memory = MmapOptions::new().len(length).map_raw(&file)?;
        Ok(Self { memory, file, sealed })
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

impl AsFd for Region {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;

    use super::*;

    #[test]
    fn nothing_outside_is_handed_out() {
        let region = Region::create(8192).unwrap();
        assert!(region.at(0, 8192).is_some() && region.at(8192, 0).is_some());
        for (offset, length) in [(0, 8193), (8192, 1), (usize::MAX, 1), (1, usize::MAX), (8000, 193)] {
            assert!(region.at(offset, length).is_none(), "{offset} {length}");
        }
    }

    #[test]
    fn a_file_that_is_too_small_is_refused() {
        let region = Region::create(4096).unwrap();
        let file = || region.as_fd().try_clone_to_owned().unwrap();
        assert!(Region::accept(file(), 4096).is_ok_and(|region| region.is_sealed()));
        assert!(matches!(Region::accept(file(), 4097), Err(Reason::Refused(_))));
        assert!(Region::accept(file(), u64::MAX).is_err());
        assert!(Region::accept(file(), 0).is_err());
    }

    #[test]
    fn a_peer_cannot_shrink_what_was_accepted() {
        let file = File::from(memfd_create(c"peer", MFdFlags::MFD_ALLOW_SEALING).unwrap());
        file.set_len(4096).unwrap();
        let region = Region::accept(file.try_clone().unwrap().into(), 4096).unwrap();
        assert!(region.is_sealed());
        assert_eq!(file.set_len(0).unwrap_err().kind(), ErrorKind::PermissionDenied);
    }

    #[test]
    fn a_file_that_cannot_be_sealed_is_known_as_such() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(4096).unwrap();
        assert!(Region::accept(file.into(), 4096).is_ok_and(|region| !region.is_sealed()));
    }
}
