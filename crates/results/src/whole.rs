//! Files that are whole at every moment: a path and bytes enter; there the file is with all of them, or as it was before.
//!
//! Bytes are written and synced to a file without a name, which gets one when it is complete: a process that is
//! killed meanwhile leaves nothing. A file that replaces another needs a name beside it for the moment between two system calls.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, AtFlags, OFlag};
use nix::unistd::linkat;
use tempfile::NamedTempFile;

/// Who may do what with a file: the umask takes from it.
const MODE: u32 = 0o644;

/// Makes the file `path` of `bytes`.
///
/// # Errors
/// What the system says: [`io::ErrorKind::AlreadyExists`] if something is there, which then stays as it is.
pub fn create(path: &Path, bytes: &[u8]) -> io::Result<()> {
    match unnamed(path, bytes)? {
        Some(file) => link(&file, path)?,
        None => drop(named(path, bytes)?.persist_noclobber(path)?),
    }
    sync_directory(path)
}

/// Puts a file of `bytes` in the place of `path`, or makes it if there is none.
///
/// # Errors
/// What the system says; what was there then stays as it is.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    match unnamed(path, bytes)? {
        Some(file) => {
            let beside = beside(path);
            link(&file, &beside)?;
            fs::rename(&beside, path).inspect_err(|_| drop(fs::remove_file(&beside)))?;
        }
        None => drop(named(path, bytes)?.persist(path)?),
    }
    sync_directory(path)
}

fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// A synced file of `bytes` without a name in the directory of `path`; `None` where the file system has no such files.
fn unnamed(path: &Path, bytes: &[u8]) -> io::Result<Option<File>> {
    let mut options = OpenOptions::new();
    options.write(true).mode(MODE).custom_flags(OFlag::O_TMPFILE.bits());
    let mut file = match options.open(directory_of(path)) {
        Ok(file) => file,
        Err(error)
            if matches!(
                error.raw_os_error().map(Errno::from_raw),
                Some(Errno::EOPNOTSUPP | Errno::EISDIR)
            ) =>
        {
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    file.write_all(bytes)?;
    file.sync_all()?;
    Ok(Some(file))
}

/// Gives a file without a name this one.
fn link(file: &File, path: &Path) -> io::Result<()> {
    // The way that needs no right to read any file (open(2), O_TMPFILE).
    let open = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    Ok(linkat(AT_FDCWD, &open, AT_FDCWD, path, AtFlags::AT_SYMLINK_FOLLOW)?)
}

/// A name in the directory of `path` that no other file of living processes has. Readers pass over it, as it begins with
/// a dot and ends in `.tmp`.
fn beside(path: &Path) -> PathBuf {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let beside = directory_of(path).join(format!(".linerate-{}-{number}.tmp", std::process::id()));
    // Of a process of the same number that was killed.
    let _ = fs::remove_file(&beside);
    beside
}

/// A synced file of `bytes` beside `path`, which disappears unless it is renamed.
fn named(path: &Path, bytes: &[u8]) -> io::Result<NamedTempFile> {
    let mut file = tempfile::Builder::new()
        .prefix(".linerate-")
        .suffix(".tmp")
        .permissions(Permissions::from_mode(MODE))
        .tempfile_in(directory_of(path))?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    Ok(file)
}

/// Makes a new name survive a power failure.
fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(directory_of(path))?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_made_once_and_replaced_as_often_as_wanted() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        create(&path, b"one").unwrap();
        assert_eq!(create(&path, b"two").unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&path).unwrap(), b"one");
        for bytes in [&b"three"[..], b""] {
            replace(&path, bytes).unwrap();
            assert_eq!(fs::read(&path).unwrap(), bytes);
        }
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o133, 0);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_cannot_be_replaced_leaves_no_file_beside_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("directory");
        fs::create_dir_all(path.join("full")).unwrap();
        replace(&path, b"bytes").unwrap_err();
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
        assert!(replace(&directory.path().join("none/file"), b"").is_err());
    }

    #[test]
    fn where_files_need_names_it_is_the_same() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        named(&path, b"one").unwrap().persist_noclobber(&path).unwrap();
        drop(named(&path, b"two").unwrap());
        assert_eq!(fs::read(&path).unwrap(), b"one");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }
}
