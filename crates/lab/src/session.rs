//! Who is logged in here: the environment of this process and of those that started it enters,
//! the addresses of their SSH clients leave.
//!
//! `sudo` clears the environment, so this process's own is not enough.

use std::collections::BTreeSet;
use std::fs;
use std::net::IpAddr;

/// The addresses that this login, or one it was reached through, comes from.
pub(crate) fn login_peers() -> BTreeSet<IpAddr> {
    let mut peers = BTreeSet::new();
    let mut pid = std::process::id();
    while pid > 1 {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        peers.extend(ssh_client(&environment));
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        pid = parent(&status).unwrap_or(0);
    }
    peers
}

/// The first word of `SSH_CONNECTION`, in an environment as `/proc/PID/environ` has it.
fn ssh_client(environment: &[u8]) -> Option<IpAddr> {
    let mut variables = environment.split(|byte| *byte == 0);
    let value = variables.find_map(|variable| variable.strip_prefix(b"SSH_CONNECTION="))?;
    let client = std::str::from_utf8(value).ok()?.split(' ').next()?;
    // A link-local client carries its interface after a percent sign.
    client.split('%').next()?.parse().ok()
}

fn parent(status: &str) -> Option<u32> {
    status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_client_is_found_in_an_environment() {
        let environment = b"HOME=/root\0SSH_CONNECTION=192.0.2.7 53210 192.0.2.1 22\0TERM=x\0";
        assert_eq!(ssh_client(environment), Some("192.0.2.7".parse().unwrap()));
        assert_eq!(
            ssh_client(b"SSH_CONNECTION=fe80::1%eth0 1 fe80::2%eth0 22\0"),
            Some("fe80::1".parse().unwrap())
        );
        assert_eq!(ssh_client(b"MY_SSH_CONNECTION=192.0.2.7 1 2 3\0"), None);
        assert_eq!(ssh_client(b"SSH_CONNECTION=\0"), None);
        assert_eq!(parent("Name:\tx\nPPid:\t42\n"), Some(42));
        assert_eq!(parent(""), None);
        login_peers();
    }
}
