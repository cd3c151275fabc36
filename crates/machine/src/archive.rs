//! The file system that a guest boots from. Files of this host enter, and programs with the shared libraries that `ldd`
//! names; an archive in the form that Linux unpacks into memory leaves ("newc" of cpio,
//! Documentation/driver-api/early-userspace/buffer-format.rst).

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

/// Where programs are.
const PLACES: [&str; 4] = ["/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/// What an archive holds, by path without the first slash.
#[derive(Debug, Default)]
pub struct Archive(BTreeMap<PathBuf, Entry>);

#[derive(Debug)]
enum Entry {
    Directory,
    File { content: Content, executable: bool },
    Link(PathBuf),
}

#[derive(Debug)]
enum Content {
    Of(PathBuf),
    Bytes(Vec<u8>),
}

/// Where `program` is on this host.
#[must_use]
pub fn find(program: &str) -> Option<PathBuf> {
    PLACES.iter().map(|place| Path::new(place).join(program)).find(|path| path.exists())
}

impl Archive {
    /// Adds an empty directory.
    pub fn directory(&mut self, path: impl AsRef<Path>) {
        self.add(path.as_ref(), Entry::Directory);
    }

    /// Adds the file `from` of this host; it is read when the archive is written.
    pub fn file(&mut self, path: impl AsRef<Path>, from: impl Into<PathBuf>, executable: bool) {
        self.add(path.as_ref(), Entry::File { content: Content::Of(from.into()), executable });
    }

    /// Adds a file of these bytes.
    pub fn bytes(&mut self, path: impl AsRef<Path>, bytes: impl Into<Vec<u8>>, executable: bool) {
        self.add(path.as_ref(), Entry::File { content: Content::Bytes(bytes.into()), executable });
    }

    /// Adds a symbolic link.
    pub fn link(&mut self, path: impl AsRef<Path>, to: impl Into<PathBuf>) {
        self.add(path.as_ref(), Entry::Link(to.into()));
    }

    /// Adds the program or library `from`, and what it is linked with: each library once, where it really is, and links under
    /// the names that it is asked for by.
    ///
    /// # Errors
    /// Where `ldd` is missing.
    pub fn program(&mut self, from: &Path, path: impl AsRef<Path>) -> Result<()> {
        self.file(path, from, true);
        let linked = Command::new("ldd").arg(from).output().context("cannot run ldd (Debian: libc-bin)")?;
        let linked = String::from_utf8_lossy(&linked.stdout).into_owned();
        for library in linked.split_whitespace().filter(|word| word.starts_with('/')) {
            let library = Path::new(library.trim_end_matches(':'));
            let real = fs::canonicalize(library).unwrap_or_else(|_| library.to_owned());
            if real != library {
                self.link(relative(library), &real);
            }
            self.file(relative(&real), &real, true);
        }
        Ok(())
    }

    /// Adds an entry, and the directories above it.
    fn add(&mut self, path: &Path, entry: Entry) {
        for above in path.ancestors().skip(1).filter(|above| *above != Path::new("")) {
            self.0.entry(above.to_owned()).or_insert(Entry::Directory);
        }
        self.0.insert(path.to_owned(), entry);
    }

    /// Writes the archive.
    ///
    /// # Errors
    /// Where a file of this host cannot be read, or `to` cannot be written.
    pub fn write(&self, to: &mut impl Write) -> io::Result<()> {
        for (path, entry) in &self.0 {
            let name = path.to_string_lossy();
            match entry {
                Entry::Directory => member(to, &name, 0o040_755, &[])?,
                Entry::Link(target) => member(to, &name, 0o120_777, target.to_string_lossy().as_bytes())?,
                Entry::File { content, executable } => {
                    let mode = if *executable { 0o100_755 } else { 0o100_644 };
                    match content {
                        Content::Bytes(bytes) => member(to, &name, mode, bytes)?,
                        Content::Of(from) => member(to, &name, mode, &read(from)?)?,
                    }
                }
            }
        }
        member(to, "TRAILER!!!", 0, &[])?;
        to.flush()
    }
}

fn read(from: &Path) -> io::Result<Vec<u8>> {
    fs::read(from).map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", from.display())))
}

/// `path` without its first slash.
fn relative(path: &Path) -> &Path {
    path.strip_prefix("/").unwrap_or(path)
}

/// Writes one file, directory or link: thirteen numbers, the name and the content, each to a boundary of four bytes.
fn member(archive: &mut impl Write, name: &str, mode: u32, content: &[u8]) -> io::Result<()> {
    let (size, name_size) = (content.len(), name.len() + 1);
    // Number of the inode, mode, owner, group, links, time, size, four of devices, size of the name, check sum.
    let numbers = [0, mode as usize, 0, 0, 1, 0, size, 0, 0, 0, 0, name_size, 0];
    write!(archive, "070701")?;
    numbers.iter().try_for_each(|number| write!(archive, "{number:08X}"))?;
    write!(archive, "{name}\0")?;
    pad(archive, 110 + name_size)?;
    archive.write_all(content)?;
    pad(archive, size)
}

/// Fills up what has `length` bytes to a multiple of four.
fn pad(archive: &mut impl Write, length: usize) -> io::Result<()> {
    archive.write_all(&[0; 3][..length.next_multiple_of(4) - length])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_has_the_directories_above_its_files_and_ends() {
        let mut archive = Archive::default();
        archive.bytes("etc/a/motd", "hello", false);
        archive.link("bin/sh", "/bin/busybox");
        let mut bytes = Vec::new();
        archive.write(&mut bytes).unwrap();
        assert_eq!(bytes.len() % 4, 0);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        assert!(text.starts_with("070701"));
        let at = |name: &str| text.find(&format!("{name}\0")).unwrap_or_else(|| panic!("no {name}"));
        assert!(at("bin") < at("bin/sh") && at("etc") < at("etc/a") && at("etc/a/motd") < at("TRAILER!!!"));
        assert!(text.contains("hello"));
    }

    #[test]
    fn a_program_comes_with_its_libraries() {
        let mut archive = Archive::default();
        archive.program(&find("sh").unwrap(), "bin/sh").unwrap();
        let has_libc = archive.0.keys().any(|path| path.to_string_lossy().contains("libc.so"));
        assert!(has_libc, "{:?}", archive.0.keys());
    }
}
