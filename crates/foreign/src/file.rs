//! Files that a user names: a path and a limit enter, what the file holds leaves. Only regular files are read: a pipe may
//! never say a word, and a device never end.

use std::fs::{File, FileType, OpenOptions};
use std::io::{self, ErrorKind, Read, Take};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use nix::fcntl::OFlag;

/// The most bytes of a file that people write: a profile, a bench, a driver.
pub const LONGEST_TEXT: u64 = 16 << 20;
/// The most bytes of a file that programs write: a record, numbers, folded stacks, a drawing.
pub const LONGEST: u64 = 512 << 20;

/// The regular file `path`, which is opened without waiting for anybody.
///
/// # Errors
/// What the system says, or what else `path` is, with the remedy.
pub fn open(path: &Path) -> io::Result<File> {
    // A pipe that nobody writes to would wait here.
    let file = OpenOptions::new().read(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(path)?;
    let found = file.metadata()?.file_type();
    if found.is_file() {
        return Ok(file);
    }
    let reason = format!("it is {}: name an ordinary file", kind(found));
    Err(io::Error::new(ErrorKind::InvalidInput, reason))
}

/// The same to be read piece by piece, if it holds at most `longest` bytes now: no more are read even if it grows.
///
/// # Errors
/// As [`open`]; or that the file is longer.
pub fn open_up_to(path: &Path, longest: u64) -> io::Result<Take<File>> {
    let file = open(path)?;
    if file.metadata()?.len() > longest {
        return Err(too_long(longest));
    }
    Ok(file.take(longest))
}

/// What the regular file `path` holds: at most `longest` bytes.
///
/// # Errors
/// As [`open`]; or that the file is longer.
pub fn read(path: &Path, longest: u64) -> io::Result<Vec<u8>> {
    up_to(open(path)?, longest)
}

/// The same of text.
///
/// # Errors
/// As [`read`]; or that it is no text.
pub fn read_text(path: &Path, longest: u64) -> io::Result<String> {
    String::from_utf8(read(path, longest)?)
        .map_err(|_| io::Error::new(ErrorKind::InvalidData, "it is no text in UTF-8: name another file"))
}

/// All that `source` holds, which is at most `longest` bytes.
///
/// # Errors
/// What the system says, or that there is more.
pub fn up_to(source: impl Read, longest: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    source.take(longest.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > longest {
        return Err(too_long(longest));
    }
    Ok(bytes)
}

fn too_long(longest: u64) -> io::Error {
    let reason = format!("it holds more than {}, which no such file needs: name another one", size(longest));
    io::Error::new(ErrorKind::FileTooLarge, reason)
}

fn size(bytes: u64) -> String {
    if bytes >= 1 << 20 { format!("{} MiB", bytes >> 20) } else { format!("{bytes} bytes") }
}

fn kind(found: FileType) -> &'static str {
    match found {
        found if found.is_dir() => "a directory",
        found if found.is_fifo() => "a pipe",
        found if found.is_socket() => "a socket",
        _ => "a device",
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use nix::sys::stat::Mode;

    use super::*;

    fn refusal(path: &Path) -> String {
        read(path, 10).unwrap_err().to_string()
    }

    #[test]
    fn a_file_is_read_up_to_its_limit() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("a");
        fs::write(&file, "0123456789").unwrap();
        assert_eq!(read_text(&file, 10).unwrap(), "0123456789");
        assert!(read(&file, 9).unwrap_err().to_string().contains("more than 9 bytes"));
        assert!(open_up_to(&file, 9).unwrap_err().to_string().contains("more than 9 bytes"));
        fs::write(&file, [0xff]).unwrap();
        assert!(read_text(&file, 10).unwrap_err().to_string().contains("no text"));
        assert_eq!(read(&directory.path().join("b"), 10).unwrap_err().kind(), ErrorKind::NotFound);
    }

    #[test]
    fn of_a_file_that_grows_no_more_is_read() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("growing");
        fs::write(&file, "abc").unwrap();
        let mut opened = open_up_to(&file, 4).unwrap();
        fs::write(&file, "abcdef").unwrap();
        assert_eq!(io::read_to_string(&mut opened).unwrap(), "abcd");
    }

    #[test]
    fn what_is_no_file_is_refused_at_once() {
        let directory = tempfile::tempdir().unwrap();
        let pipe = directory.path().join("pipe");
        nix::unistd::mkfifo(&pipe, Mode::S_IRUSR | Mode::S_IWUSR).unwrap();
        assert!(refusal(&pipe).starts_with("it is a pipe: name an ordinary file"));
        assert!(refusal(Path::new("/dev/zero")).starts_with("it is a device"));
        assert!(refusal(directory.path()).starts_with("it is a directory"));
    }
}
