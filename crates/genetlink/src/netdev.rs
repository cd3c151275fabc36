//! What the driver of an interface can do with XDP at this moment (Linux 6.3 and later): the interface's index enters;
//! the bits of `enum netdev_xdp_act` in `linux/netdev.h` leave.

use crate::{Answers, Family, attribute, find, number};

/// It transmits frames that XDP programs of other interfaces send by it.
const NDO_XMIT: u64 = 1 << 2;
/// Its AF_XDP sockets need no copies.
pub const XSK_ZEROCOPY: u64 = 1 << 3;

const DEV_GET: u8 = 1;
const DEV_IFINDEX: u16 = 1;
const DEV_XDP_FEATURES: u16 = 3;

/// The features of interface `index` in the network namespace of the calling thread; `None` where the kernel does not
/// tell. They change: a veth transmits once its other end has GRO or a program.
#[must_use]
pub fn xdp_features(index: u32) -> Option<u64> {
    let request = attribute(DEV_IFINDEX, &index.to_ne_bytes());
    let answers = Family::open("netdev").ok()?.request(DEV_GET, Answers::One, &request).ok()?;
    number(find(answers.first()?, DEV_XDP_FEATURES)?)
}

/// Whether interface `index` transmits frames that XDP programs of other interfaces send by it; `None` where the kernel
/// does not tell, or its driver tells of no feature at all: it may be one that does not take part.
#[must_use]
pub fn takes_redirected(index: u32) -> Option<bool> {
    xdp_features(index).filter(|features| *features != 0).map(|features| features & NDO_XMIT != 0)
}
