//! The files that a router is configured by: a name enters; a file that is open for reading leaves, if it is an
//! ordinary one of bounded size. So no pipe makes the router wait, and no device feeds it without end.

use std::fs::{File, OpenOptions};
use std::io::{Read, Take};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use anyhow::{Context, Result, bail};
use nix::libc;

/// Opens a file of at most `longest` bytes, of which no more are read even if it grows; `what` is it for users.
///
/// # Errors
/// When it cannot be opened, is no ordinary file, or is longer.
pub(super) fn open(path: &Path, what: &str, longest: u64) -> Result<Take<File>> {
    let name = || format!("{what} {}", path.display());
    // Without that, opening a pipe waits for who writes.
    let opened = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path);
    let cannot = || format!("cannot read {}: check its name", name());
    let file = opened.with_context(cannot)?;
    let metadata = file.metadata().with_context(cannot)?;
    if !metadata.is_file() {
        bail!("{} is no ordinary file: write what it brings to one, and name that", name());
    }
    if metadata.len() > longest {
        bail!(
            "{} has {} bytes: at most {longest} are read, so leave out what is not needed",
            name(),
            metadata.len()
        );
    }
    Ok(file.take(longest))
}

/// The text in a file, opened as by [`open`].
///
/// # Errors
/// As there, or when it is no text.
pub(super) fn text(path: &Path, what: &str, longest: u64) -> Result<String> {
    let mut text = String::new();
    let read = open(path, what, longest)?.read_to_string(&mut text);
    read.with_context(|| format!("cannot read {what} {}: is it text?", path.display()))?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use nix::sys::stat::Mode;
    use nix::unistd::mkfifo;

    use super::*;

    #[test]
    fn only_an_ordinary_file_of_bounded_size_is_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        fs::write(path("ordinary"), "abc").unwrap();
        mkfifo(&path("pipe"), Mode::S_IRWXU).unwrap();
        assert_eq!(text(&path("ordinary"), "the file", 3).unwrap(), "abc");
        let refused = |path: &Path| format!("{:#}", text(path, "the file", 2).unwrap_err());
        for (path, clue) in [
            (path("ordinary"), "has 3 bytes: at most 2"),
            (path("missing"), "check its name: No such file"),
            (path("pipe"), "is no ordinary file"),
            (path(""), "is no ordinary file"),
            ("/dev/zero".into(), "is no ordinary file"),
        ] {
            assert!(refused(&path).contains(clue), "{}", refused(&path));
        }
        fs::write(path("ordinary"), [0xff]).unwrap();
        assert!(refused(&path("ordinary")).contains("is it text?"));
    }

    #[test]
    fn of_a_file_that_grows_no_more_is_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("growing");
        fs::write(&path, "abc").unwrap();
        let mut opened = open(&path, "the file", 4).unwrap();
        fs::write(&path, "abcdef").unwrap();
        let mut text = String::new();
        opened.read_to_string(&mut text).unwrap();
        assert_eq!(text, "abcd");
    }
}
