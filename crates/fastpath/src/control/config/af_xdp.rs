//! Interfaces of the kernel by AF_XDP, as people write them: `af_xdp:INTERFACE`, and more after a comma.

use std::fmt;

use super::keys::Keys;

/// An interface of the kernel; it sends by as many queues as it receives from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AfXdp {
    /// The kernel's name of it.
    pub interface: String,
    /// Queues that it receives from, from the first on.
    pub queues: u16,
    /// Whether workers have the driver work, instead of interrupts, where the kernel can; where it is not said, at cards
    /// alone, as what another interface of this machine sends would be their work otherwise.
    pub busy_poll: Option<bool>,
    /// Whether the kernel forwards packets by itself that need no worker.
    pub shortcuts: bool,
}

/// The longest name of an interface of the kernel.
const NAME: usize = 15;

impl AfXdp {
    /// What `eth1` or `eth1,queues=2` means.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let (interface, rest) = text.split_once(',').unwrap_or((text, ""));
        let is_allowed = |letter: char| !letter.is_whitespace() && !"/:=".contains(letter);
        if interface.is_empty() || interface.len() > NAME || !interface.chars().all(is_allowed) {
            return Err(format!(
                "'{interface}' is no interface of the kernel: write af_xdp:eth1 (`ip link` lists them)"
            ));
        }
        let keys = Keys::parse("af_xdp", rest)?;
        keys.none_but(&["queues", "busy-poll", "shortcuts"])?;
        Ok(Self {
            interface: interface.to_owned(),
            queues: keys.queues()?,
            busy_poll: keys.flag("busy-poll")?,
            shortcuts: keys.flag("shortcuts")?.unwrap_or(false),
        })
    }

    /// What no two devices can have, in words.
    pub(super) fn claims(&self) -> Vec<String> {
        vec![claim(&self.interface)]
    }
}

/// An interface of the kernel, in words.
pub(super) fn claim(interface: &str) -> String {
    format!("the interface {interface} of the kernel")
}

impl fmt::Display for AfXdp {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "af_xdp at {}", self.interface)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interfaces_are_read_as_people_write_them() {
        let read = AfXdp::parse("eth1").unwrap();
        assert_eq!(read, AfXdp { interface: "eth1".into(), queues: 1, busy_poll: None, shortcuts: false });
        assert_eq!(read.to_string(), "af_xdp at eth1");
        let read = AfXdp::parse("eth1,queues=2,busy-poll=false,shortcuts=true").unwrap();
        let busy_poll = Some(false);
        assert_eq!(read, AfXdp { interface: "eth1".into(), queues: 2, busy_poll, shortcuts: true });
    }

    #[test]
    fn what_is_none_is_told_with_what_would_be() {
        for (text, clue) in [
            ("", "write af_xdp:eth1"),
            ("a-name-too-long-by-one", "write af_xdp:eth1"),
            ("eth1,queues=0", "1 to 64"),
            ("eth1,mtu=9000", "it has queues"),
            ("eth1,busy-poll=no", "true or false"),
            ("eth1,shortcuts=1", "true or false"),
        ] {
            let reason = AfXdp::parse(text).unwrap_err();
            assert!(reason.contains(clue), "{text}: {reason}");
        }
    }
}
