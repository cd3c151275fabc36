//! Kernel settings that are files: a name like `ipv4/ip_forward` or an interface enters; what
//! holds in the network namespace of the calling thread is read or written.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{Error, Needs, Result};

fn path(name: &str) -> PathBuf {
    Path::new("/proc/sys/net").join(name)
}

/// Writes a setting.
///
/// # Errors
/// [`Error`], when the kernel refuses it.
pub fn set(name: &str, value: &str) -> Result<()> {
    let path = path(name);
    fs::write(&path, value).map_err(|cause| {
        Error::kernel(
            format!("cannot write '{value}' to {}", path.display()),
            cause,
            Needs::NetAdmin,
            "'linerate doctor' shows what this kernel lacks; in a container /proc/sys can be read-only",
        )
    })
}

/// Reads a setting.
#[must_use]
pub fn get(name: &str) -> Option<String> {
    Some(fs::read_to_string(path(name)).ok()?.trim().to_owned())
}
