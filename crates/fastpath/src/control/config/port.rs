//! Ports of DPDK, as people write them: `dpdk:DEVICE` for a network card by its PCI address, or for any of DPDK's
//! drivers.

use std::fmt;

use super::af_xdp;
use super::keys::Keys;

/// A port of DPDK; it sends by a queue for each worker, as far as it has so many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// The device as DPDK has it: a PCI address or a driver's name and number, and arguments.
    pub device: String,
    /// Queues that it receives from.
    pub queues: u16,
}

/// The driver of interfaces of the kernel that is left out: there is a device for these.
const AF_XDP: &str = "net_af_xdp";

impl Port {
    /// What `0000:01:00.0` or `net_ring0` means, with arguments for the driver and `queues` for us.
    pub(super) fn any(text: &str) -> Result<Self, String> {
        let name = text.split(',').next().unwrap_or_default();
        if !is_card(name) && name.strip_prefix("net_").is_none_or(str::is_empty) {
            return Err(format!(
                "'{name}' is no device of DPDK: write a card's PCI address, as in dpdk:0000:01:00.0, or a driver \
                 and its arguments, as in dpdk:net_af_packet0,iface=eth1"
            ));
        }
        if name.starts_with(AF_XDP) {
            return Err(format!("'{name}' is AF_XDP, which needs no DPDK: write af_xdp:eth1"));
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

    /// What no two ports can have, in words.
    pub(super) fn claims(&self) -> Vec<String> {
        let interface = self.interface().map(af_xdp::claim);
        std::iter::once(format!("the device {}", self.name())).chain(interface).collect()
    }

    /// What DPDK calls it.
    fn name(&self) -> &str {
        self.device.split(',').next().unwrap_or_default()
    }
}

impl fmt::Display for Port {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "dpdk {}", self.device)
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
        let card = Port::any("0000:01:00.0,queues=4,x=[0,1]").unwrap();
        assert_eq!((card.device.as_str(), card.queues), ("0000:01:00.0,x=[0,1]", 4));
        assert_eq!((card.card(), card.interface()), (Some("0000:01:00.0"), None));
        let driver = Port::any("net_af_packet7,iface=eth1").unwrap();
        assert_eq!(driver.claims(), ["the device net_af_packet7", "the interface eth1 of the kernel"]);
        assert_eq!(driver.to_string(), "dpdk net_af_packet7,iface=eth1");
    }

    #[test]
    fn what_is_no_port_is_told_with_what_would_be() {
        for (text, clue) in [
            ("", "dpdk:0000:01:00.0"),
            ("01:00.0", "dpdk:0000:01:00.0"),
            ("eth1", "dpdk:net_af_packet0,iface=eth1"),
            ("net_", "dpdk:net_af_packet0,iface=eth1"),
            ("net_af_xdp0,iface=eth1", "write af_xdp:eth1"),
            ("0000:01:00.0,queues=2,queues=3", "queues twice"),
        ] {
            let reason = Port::any(text).unwrap_err();
            assert!(reason.contains(clue), "{text}: {reason}");
        }
    }
}
