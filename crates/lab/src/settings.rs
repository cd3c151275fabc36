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

/// The speed of an interface in bits a second, where its driver tells it.
#[must_use]
pub fn interface_speed(interface: &str) -> Option<f64> {
    let megabits = fs::read_to_string(format!("/sys/class/net/{interface}/speed")).ok()?;
    parse_speed(&megabits)
}

/// The driver of an interface that is a device; virtual ones have none.
#[must_use]
pub fn interface_driver(interface: &str) -> Option<String> {
    let driver = fs::read_link(format!("/sys/class/net/{interface}/device/driver")).ok()?;
    Some(driver.file_name()?.to_string_lossy().into_owned())
}

/// Megabits a second; -1 (or that as an unsigned number) where the driver does not know.
fn parse_speed(megabits: &str) -> Option<f64> {
    let megabits: i64 = megabits.trim().parse().ok()?;
    (1..i64::from(u32::MAX)).contains(&megabits).then_some(megabits as f64 * 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_speed_is_one_that_the_driver_knows() {
        assert_eq!(parse_speed("10000\n"), Some(10e9));
        assert_eq!(parse_speed("-1\n"), None);
        assert_eq!(parse_speed("4294967295"), None);
        assert_eq!(parse_speed(""), None);
    }
}
