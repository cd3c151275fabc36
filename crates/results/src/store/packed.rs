//! Files that may be packed by gzip, as published records are: a path enters, what the file says leaves.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;

/// No record is longer: a small file that unpacks to more was not made by Linerate.
const LONGEST: u64 = 512 << 20;

/// What `file` holds, unpacked if its name ends in `.gz`.
///
/// # Errors
/// What the system says, that the file is not gzip, or that it unpacks to more than 512 MiB.
pub(super) fn read(file: &Path) -> io::Result<Vec<u8>> {
    if file.extension() != Some(OsStr::new("gz")) {
        return fs::read(file);
    }
    let mut content = Vec::new();
    MultiGzDecoder::new(File::open(file)?).take(LONGEST + 1).read_to_end(&mut content)?;
    if content.len() as u64 > LONGEST {
        return Err(io::Error::new(ErrorKind::FileTooLarge, "it unpacks to more than 512 MiB"));
    }
    Ok(content)
}

/// Whether `path` is a packed document that does not lie beside it unpacked.
pub(super) fn is_new(path: &Path) -> bool {
    let plain = path.with_extension("");
    let is_packed =
        path.extension() == Some(OsStr::new("gz")) && plain.extension() == Some(OsStr::new("json"));
    is_packed && !plain.exists()
}
