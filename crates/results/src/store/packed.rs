//! Files that may be packed by gzip, as published records are: a path enters, what the file says leaves.

use std::ffi::OsStr;
use std::io;
use std::path::Path;

use flate2::read::MultiGzDecoder;

/// What `file` holds, unpacked if its name ends in `.gz`.
///
/// # Errors
/// What the system says, what else than a file it is, that the file is not gzip, or that it holds more than 512 MiB.
pub(super) fn read(file: &Path) -> io::Result<Vec<u8>> {
    if file.extension() != Some(OsStr::new("gz")) {
        return foreign::file::read(file, foreign::file::LONGEST);
    }
    foreign::file::up_to(MultiGzDecoder::new(foreign::file::open(file)?), foreign::file::LONGEST)
}

/// Whether `path` is a packed document that does not lie beside it unpacked.
pub(super) fn is_new(path: &Path) -> bool {
    let plain = path.with_extension("");
    let is_packed =
        path.extension() == Some(OsStr::new("gz")) && plain.extension() == Some(OsStr::new("json"));
    is_packed && !plain.exists()
}
