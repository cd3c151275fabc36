//! The offloads that a lab switches, and how.

use genetlink::ethtool::Ethtool;

use crate::error::{Error, Needs, Result};

/// Generic receive offload: the kernel merges received frames of one flow.
pub(crate) const GRO: &str = "rx-gro";

/// Checksums are left to the device. On a veth, which has no wire, they are never filled in.
pub(crate) const TX_CHECKSUM: &str = "tx-checksum-ip-generic";

/// All that lets a frame leave otherwise than it will be seen on the wire: without its checksum,
/// several in one, or with its VLAN tag beside it, where an XDP program does not see it.
pub(crate) const ON_LEAVING: [&str; 6] = [
    TX_CHECKSUM,
    "tx-checksum-sctp",
    "tx-generic-segmentation",
    "tx-tcp-segmentation",
    "tx-vlan-hw-insert",
    "tx-vlan-stag-hw-insert",
];

/// Switches `features` of `interface`, in the network namespace of the calling thread, on or off.
pub(crate) fn set(interface: &str, features: &[&str], on: bool) -> Result<()> {
    open()?.set(interface, features, on).map_err(|cause| {
        let what = format!("cannot switch {} of {interface}", features.join(", "));
        Error::kernel(
            what,
            cause,
            Needs::NetAdmin,
            "Its driver may not have all of these: 'ethtool -k' shows",
        )
    })
}

/// Connects to the network namespace of the calling thread.
pub(crate) fn open() -> Result<Ethtool> {
    Ethtool::open().map_err(|cause| {
        Error::kernel("cannot use ethtool netlink", cause, Needs::NetAdmin, "It needs Linux 5.6 or later")
    })
}
