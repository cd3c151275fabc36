//! What devices of a bench need of this machine: the names of programs, kinds of links as `link:vlan`, and
//! `nft:flowtable` enter; what is missing leaves, with the remedy.

use std::process::Command;
use std::time::Duration;

use programs::{bounded, is_installed};

/// What stands before a kind of links that the kernel must have.
const LINK: &str = "link:";
/// Flow tables of nftables, which the kernel must have.
const FLOWTABLE: &str = "nft:flowtable";
/// How long `nft` may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// What is missing of `requirements` first, and what to do.
#[must_use]
pub fn missing(requirements: &[String]) -> Option<String> {
    requirements.iter().find_map(|needed| match needed.strip_prefix(LINK) {
        Some(kind) if lacks_links(kind) => Some(format!(
            "this kernel has no links of type {kind}; load its module, or take a kernel that has it"
        )),
        None if needed == FLOWTABLE => lacks_flow_tables().then(|| {
            "this kernel has no flow tables (or there is no nft); load nft_flow_offload, or take a kernel that has it".to_owned()
        }),
        None if !is_installed(needed) => Some(format!("{needed} is not installed; install it")),
        _ => None,
    })
}

/// Whether the kernel is known to have no links of `kind`. One is asked for in a namespace of its own, which
/// ends with that; where this may not be done, the device itself shows.
fn lacks_links(kind: &str) -> bool {
    let words = ["--net", "ip", "link", "add", "link", "lo", "name", "probe", "type", kind];
    let asked = Command::new("unshare").args(words).env("LC_ALL", "C").output();
    asked.is_ok_and(|answer| String::from_utf8_lossy(&answer.stderr).contains("Unknown device type"))
}

/// Whether the kernel is known to have no flow tables, in the same way.
fn lacks_flow_tables() -> bool {
    let mut command = Command::new("unshare");
    command.args(["--net", "nft", "-f", "-"]);
    let rules = "table inet probe { flowtable known { hook ingress priority filter; devices = { lo }; }\n\
                 chain forward { type filter hook forward priority filter; meta l4proto udp flow add @known; }; }\n";
    bounded::run("nft", command, rules.as_bytes(), PATIENCE, 1 << 16)
        .map_or(true, |answer| !answer.status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needs(words: &[&str]) -> Option<String> {
        missing(&words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn what_is_missing_is_named_with_the_remedy() {
        assert_eq!(needs(&["sh"]), None);
        let tool = needs(&["sh", "no-such-tool"]);
        assert_eq!(tool.as_deref(), Some("no-such-tool is not installed; install it"));
    }

    #[test]
    fn kinds_of_links_are_asked_of_the_kernel() {
        assert_eq!(needs(&["link:bridge"]), None);
        // Who may not make a namespace cannot know.
        let may =
            Command::new("unshare").args(["--net", "true"]).status().is_ok_and(|status| status.success());
        assert_eq!(needs(&["link:no-such-kind"]).is_some_and(|said| said.contains("no-such-kind")), may);
    }
}
