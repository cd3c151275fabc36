//! Where a device runs that listens at files: in namespaces of its own, where it reaches no interface of the
//! machine, and where its files are in memory that goes with it.

use anyhow::Result;
use lab::Namespace;
use memif::Socket;

/// The directory that is its own, and holds nothing of anyone else's that it needs.
pub const DIRECTORY: &str = "/dev/shm";

/// Such a place.
///
/// # Errors
/// When namespaces cannot be made.
pub fn create() -> Result<Namespace> {
    let namespace = Namespace::create()?;
    namespace.make_private(DIRECTORY)?;
    Ok(namespace)
}

/// Where a file of the directory of the process `pid` is for others.
pub fn outside(pid: u32, file: &str) -> String {
    format!("/proc/{pid}/root{DIRECTORY}/{file}")
}

/// The file of the memif at port `number`.
pub fn socket(number: usize) -> String {
    format!("memif{number}.sock")
}

/// Where the process `pid` listens for the other end of each port.
pub fn sockets(pid: u32) -> [Socket; 2] {
    [0, 1].map(|number| Socket::Path(outside(pid, &socket(number)).into()))
}
