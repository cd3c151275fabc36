//! Ports of DPDK, as people write them: `af_xdp:INTERFACE` for one of the kernel's, `dpdk:DEVICE` for a
//! network card by its PCI address, or for any of DPDK's drivers.

use std::fmt;

use super::keys::Keys;

/// A port of DPDK; it sends by a queue for each worker, as far as it has so many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// The device as DPDK has it: a PCI address or a driver's name and number, and arguments.
    pub device: String,
    /// Queues that it receives from.
    pub queues: u16,
}

/// The driver of interfaces of the kernel.
const AF_XDP: &str = "net_af_xdp";
/// The longest name of an interface of the kernel.
const NAME: usize = 15;

impl Port {
    /// What `eth1` or `eth1,queues=2` means.
    pub(super) fn af_xdp(text: &str) -> Result<Self, String> {
        let (interface, rest) = text.split_once(',').unwrap_or((text, ""));
        let is_allowed = |letter: char| !letter.is_whitespace() && !"/:=".contains(letter);
        if interface.is_empty() || interface.len() > NAME || !interface.chars().all(is_allowed) {
            return Err(format!(
                "'{interface}' is no interface of the kernel: write af_xdp:eth1 (`ip link` lists them)"
            ));
        }
        let keys = Keys::parse("af_xdp", rest)?;
        keys.none_but(&["queues"])?;
        let queues = keys.queues()?;
        let device = format!("{AF_XDP}_{interface},iface={interface},queue_count={queues}");
        Ok(Self { device, queues })
    }

    /// What `0000:01:00.0` or `net_ring0` means, with arguments for the driver and `queues` for us.
    pub(super) fn any(text: &str) -> Result<Self, String> {
        let name = text.split(',').next().unwrap_or_default();
        if !is_card(name) && name.strip_prefix("net_").is_none_or(str::is_empty) {
            return Err(format!(
                "'{name}' is no device of DPDK: write a card's PCI address, as in dpdk:0000:01:00.0, or a driver \
                 and its arguments, as in dpdk:net_af_xdp0,iface=eth1"
            ));
        }
        let is_ours = |part: &&str| part.starts_with("queues=");
        let ours: Vec<&str> = text.split(',').filter(is_ours).collect();
        let theirs: Vec<&str> = text.split(',').filter(|part| !is_ours(part)).collect();
        let queues = Keys::parse("dpdk", &ours.join(","))?.queues()?;
        Ok(Self { device: theirs.join(","), queues })
    }

    /// The PCI address, if it is a network card.
    #[must_use]
    pub fn card(&self) -> Option<&str> {
        Some(self.name()).filter(|name| is_card(name))
    }

    /// The kernel's name of it, if it is an interface of the kernel.
    #[must_use]
    pub fn interface(&self) -> Option<&str> {
        self.device.split(',').find_map(|part| part.strip_prefix("iface="))
    }

    /// Whether it receives by AF_XDP.
    #[must_use]
    pub fn is_af_xdp(&self) -> bool {
        self.name().starts_with(AF_XDP)
    }

    /// What no two ports can have, in words.
    pub(super) fn claims(&self) -> Vec<String> {
        let interface = self.interface().map(|interface| format!("the interface {interface} of the kernel"));
        std::iter::once(format!("the device {}", self.name())).chain(interface).collect()
    }

    /// What DPDK calls it.
    fn name(&self) -> &str {
        self.device.split(',').next().unwrap_or_default()
    }
}

impl fmt::Display for Port {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.interface().filter(|_| self.is_af_xdp()) {
            Some(interface) => write!(formatter, "af_xdp at {interface}"),
            None => write!(formatter, "dpdk {}", self.device),
        }
    }
}

/// Whether `name` is a PCI address with its domain, as in 0000:01:00.0.
fn is_card(name: &str) -> bool {
    let is_hex = |text: &str, length: usize| {
        text.len() == length && text.bytes().all(|letter| letter.is_ascii_hexdigit())
    };
    let Some((place, function)) = name.split_once('.') else { return false };
    let parts: Vec<&str> = place.split(':').collect();
    matches!(parts[..], [domain, bus, slot] if is_hex(domain, 4) && is_hex(bus, 2) && is_hex(slot, 2))
        && is_hex(function, 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_read_as_people_write_them() {
        let interface = Port::af_xdp("eth1,queues=2").unwrap();
        assert_eq!(interface.device, "net_af_xdp_eth1,iface=eth1,queue_count=2");
        assert_eq!((interface.queues, interface.card()), (2, None));
        assert_eq!((interface.to_string().as_str(), interface.is_af_xdp()), ("af_xdp at eth1", true));
        let card = Port::any("0000:01:00.0,queues=4,x=[0,1]").unwrap();
        assert_eq!((card.device.as_str(), card.queues), ("0000:01:00.0,x=[0,1]", 4));
        assert_eq!((card.card(), card.interface()), (Some("0000:01:00.0"), None));
        let driver = Port::any("net_af_packet7,iface=eth1").unwrap();
        assert_eq!(driver.claims(), ["the device net_af_packet7", "the interface eth1 of the kernel"]);
        assert_eq!(interface.claims()[1], driver.claims()[1]);
    }

    #[test]
    fn what_is_no_port_is_told_with_what_would_be() {
        for (text, clue) in [
            ("", "write af_xdp:eth1"),
            ("a-name-too-long-by-one", "write af_xdp:eth1"),
            ("eth1,queues=0", "1 to 64"),
            ("eth1,mtu=9000", "it has queues"),
        ] {
            let reason = Port::af_xdp(text).unwrap_err();
            assert!(reason.contains(clue), "{text}: {reason}");
        }
        for (text, clue) in [
            ("", "dpdk:0000:01:00.0"),
            ("01:00.0", "dpdk:0000:01:00.0"),
            ("eth1", "dpdk:net_af_xdp0,iface=eth1"),
            ("net_", "dpdk:net_af_xdp0,iface=eth1"),
            ("0000:01:00.0,queues=2,queues=3", "queues twice"),
        ] {
            let reason = Port::any(text).unwrap_err();
            assert!(reason.contains(clue), "{text}: {reason}");
        }
    }
}
