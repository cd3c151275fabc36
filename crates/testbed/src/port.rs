//! What a command needs to know of a port: the lab's view of one enters, the engine's and the
//! frame table's leave.

use anyhow::Result;
use engine::xdp::PortRef;
use lab::Port;
use traffic::Endpoint;
use wire::rate::Rate;
use wording::usage::misuse;

/// What is assumed where the kernel does not say a port's speed, in bits a second (L1).
pub const FALLBACK_LINE_RATE: f64 = 10e9;
/// Bytes of a frame that its MTU does not count: Ethernet header and FCS.
const OVERHEAD: usize = wire::size::ETHERNET as usize;

/// A port that cannot be used was wrongly asked for; anything else went wrong.
pub fn refused(error: lab::Error) -> anyhow::Error {
    match error {
        lab::Error::Ports(error) => misuse(error.to_string()),
        error => error.into(),
    }
}

/// Refuses frames that a port's MTU does not carry.
pub fn check_mtu(port: &Port, max_frame_size: usize) -> Result<()> {
    let largest = port.mtu as usize + OVERHEAD;
    if max_frame_size <= largest {
        return Ok(());
    }
    Err(misuse(format!(
        "frames of {max_frame_size} bytes do not fit {}, whose MTU of {} carries {largest}: \
         choose a smaller --size, or raise the MTU (ip link set {} mtu {})",
        port.name,
        port.mtu,
        port.name,
        max_frame_size - OVERHEAD
    )))
}

/// `rate` in frames a second.
pub fn to_pps(rate: Rate, mean_frame_size: f64, line_rate_bps: f64) -> Result<f64> {
    let pps = rate
        .to_pps(mean_frame_size, line_rate_bps)
        .ok_or_else(|| misuse("max has no number: give a rate, or a percentage of line rate"))?;
    if pps >= 1.0 {
        Ok(pps)
    } else {
        Err(misuse(format!("a rate of {pps} pps is too low: give at least 1 pps")))
    }
}

/// Where frames that leave by `port` come from and go to.
pub fn endpoint(port: &Port) -> Endpoint {
    Endpoint { source: port.mac, destination: port.next_hop_mac }
}

/// `port` as the engine knows it.
pub fn reference(port: &Port) -> PortRef {
    PortRef { name: port.name.clone(), index: port.ifindex }
}
