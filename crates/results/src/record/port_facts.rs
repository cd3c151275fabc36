//! What the kernel and the driver say of an interface, read before the first frame.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// One interface as it was found. What the kernel or the driver does not tell is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PortFacts {
    /// The interface's name.
    pub name: String,
    /// The driver, like `igb`; of a virtual interface its kind, like `veth`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// The driver's version; that of the kernel for drivers that have none of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver_version: Option<String>,
    /// The firmware's version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub firmware: Option<String>,
    /// Where the device is, like `0000:01:00.0`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bus: Option<String>,
    /// Whether it is set up.
    pub up: bool,
    /// Whether it has a link.
    pub carrier: bool,
    /// Its speed in Mb/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed_mbps: Option<u32>,
    /// Whether it sends and receives at the same time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full_duplex: Option<bool>,
    /// Its MTU in bytes.
    pub mtu: u32,
    /// The bridge, bond or team that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controller: Option<Controller>,
    /// What its driver can do with XDP at this moment; `None` before Linux 6.3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub xdp_features: Option<BTreeSet<XdpFeature>>,
    /// The XDP program that was attached already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub xdp_program: Option<XdpProgram>,
    /// Its queues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queues: Option<Queues>,
    /// Its rings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rings: Option<Rings>,
    /// The offloads that are on, by the names that `ethtool -k` shows under others' headings, like `rx-gro`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offloads: Option<BTreeSet<String>>,
    /// Pause frames.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause: Option<Pause>,
    /// What the host offers to a virtio device and the guest took, by the specification's names, like
    /// `GUEST_TSO4`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub virtio: Option<BTreeSet<String>>,
    /// The cores that the machine can have.
    pub cores: u32,
    /// The NUMA node that the card is attached to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<usize>,
    /// The card's interrupts, with most drivers one for each queue, and the cores that serve them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interrupts: Vec<PortInterrupt>,
}

/// An interrupt of a network card.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PortInterrupt {
    /// Its number.
    pub number: u32,
    /// What `/proc/interrupts` calls it, like `eth1-TxRx-0`.
    pub name: String,
    /// The cores that serve it (`effective_affinity_list`; where the kernel has none, those that may).
    pub cores: Vec<usize>,
}

/// The interface that another one belongs to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Controller {
    /// The interface's name.
    pub name: String,
    /// `bridge`, `bond`, `team`, …
    pub kind: String,
}

/// What a driver can do with XDP, as the kernel's family `netdev` tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum XdpFeature {
    /// It runs programs.
    Basic,
    /// Frames that it received can be redirected elsewhere.
    Redirect,
    /// It transmits frames that were redirected to it.
    NdoXmit,
    /// AF_XDP sockets without copies.
    XskZerocopy,
    /// Programs run on the card.
    HwOffload,
    /// Programs see frames of several pages.
    RxSg,
    /// It transmits redirected frames of several pages.
    NdoXmitSg,
}

impl XdpFeature {
    /// All of them, in the order of their bits.
    pub const ALL: [Self; 7] = [
        Self::Basic,
        Self::Redirect,
        Self::NdoXmit,
        Self::XskZerocopy,
        Self::HwOffload,
        Self::RxSg,
        Self::NdoXmitSg,
    ];

    /// What the kernel calls it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Basic => "basic",
            Self::Redirect => "redirect",
            Self::NdoXmit => "ndo-xmit",
            Self::XskZerocopy => "xsk-zerocopy",
            Self::HwOffload => "hw-offload",
            Self::RxSg => "rx-sg",
            Self::NdoXmitSg => "ndo-xmit-sg",
        }
    }
}

/// An attached XDP program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct XdpProgram {
    /// Its id, as `bpftool prog` shows it.
    pub id: u32,
    /// `native`, `generic`, `offloaded` or `several`.
    pub mode: String,
}

/// How many queues there are, and how many there can be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Queues {
    /// Queues that only receive.
    pub receive: u32,
    /// Queues that only transmit.
    pub transmit: u32,
    /// Queues that receive and transmit.
    pub combined: u32,
    /// The most queues that can only receive.
    pub receive_max: u32,
    /// The most queues that can only transmit.
    pub transmit_max: u32,
    /// The most queues that can receive and transmit.
    pub combined_max: u32,
}

/// How many frames a queue's ring holds, and can hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Rings {
    /// Frames that a receive ring holds.
    pub receive: u32,
    /// Frames that a transmit ring holds.
    pub transmit: u32,
    /// The most frames that a receive ring can hold.
    pub receive_max: u32,
    /// The most frames that a transmit ring can hold.
    pub transmit_max: u32,
}

/// Pause frames (IEEE 802.3x), by which one end of a cable stops the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Pause {
    /// Whether the two ends agree on them by themselves.
    pub negotiated: bool,
    /// Whether the port stops when it is told to.
    pub obeyed: bool,
    /// Whether the port tells the other end to stop.
    pub sent: bool,
    /// Pause frames that came, since the driver was loaded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frames_received: Option<u64>,
    /// Pause frames that left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frames_sent: Option<u64>,
    /// Pause frames that came during the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frames_received_meanwhile: Option<u64>,
}

impl PortFacts {
    /// Whether its driver has this feature at this moment; `None` where the kernel does not tell.
    #[must_use]
    pub fn has(&self, feature: XdpFeature) -> Option<bool> {
        self.xdp_features.as_ref().map(|features| features.contains(&feature))
    }

    /// Whether this offload is on.
    #[must_use]
    pub fn is_on(&self, offload: &str) -> bool {
        self.offloads.as_ref().is_some_and(|on| on.contains(offload))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_come_back_as_they_were_written_and_unknown_ones_take_no_room() {
        let facts = PortFacts {
            name: "eth1".to_owned(),
            xdp_features: Some([XdpFeature::Basic, XdpFeature::NdoXmit].into()),
            ..PortFacts::default()
        };
        let text = serde_json::to_string(&facts).unwrap();
        assert!(text.contains(r#""xdp_features":["basic","ndo-xmit"]"#), "{text}");
        assert!(!text.contains("pause"), "{text}");
        assert_eq!(serde_json::from_str::<PortFacts>(&text).unwrap(), facts);
        assert_eq!(facts.has(XdpFeature::NdoXmit), Some(true));
        assert_eq!(facts.has(XdpFeature::Redirect), Some(false));
        assert_eq!(PortFacts::default().has(XdpFeature::Basic), None);
    }

    #[test]
    fn a_feature_is_written_as_it_is_called() {
        for feature in XdpFeature::ALL {
            assert_eq!(serde_json::to_value(feature).unwrap(), feature.name());
        }
    }
}
