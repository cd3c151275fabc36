//! xdp-trafficgen, of xdp-tools: UDP over IPv6 from an XDP program that the kernel runs.

use std::process::Command;

use programs::Said;

use super::datagram::{Datagram, UNFRAGMENTED};
use super::program::{Launch, Program, Task, refuse_fragments, words};

/// Bytes of Ethernet, IPv6 and UDP headers and FCS around its payload.
const HEADERS: usize = wire::ethernet::LENGTH + wire::ipv6::LENGTH + wire::udp::LENGTH;
/// How much longer the header of IPv6 is than that of IPv4.
const LONGER: u16 = (wire::ipv6::LENGTH - wire::ipv4::LENGTH) as u16;
/// The flag by which later versions take the size of their packets.
const SIZE_FLAG: &str = "--pkt-size";

pub struct XdpTrafficgen;

impl Program for XdpTrafficgen {
    fn name(&self) -> &'static str {
        "xdp-trafficgen"
    }

    fn package(&self) -> &'static str {
        "xdp-tools"
    }

    /// It says itself whether this kernel can load it; only later versions take a size.
    fn refusal(&self, datagram: Datagram, _core: usize) -> Option<String> {
        if let Some(refusal) = refuse_fragments(self.name(), datagram, UNFRAGMENTED - LONGER) {
            return Some(refusal);
        }
        let probe = Command::new("xdp-trafficgen").arg("probe").output();
        match probe {
            Err(error) => return Some(format!("xdp-trafficgen cannot be started: {error}")),
            Ok(probe) if !probe.status.success() => {
                let said = [probe.stdout, probe.stderr].concat();
                let said = String::from_utf8_lossy(&said).into_owned();
                return Some(format!(
                    "xdp-trafficgen does not load on this kernel ({}): try a later version of xdp-tools",
                    cause(&said)
                ));
            }
            Ok(_) => {}
        }
        let help = Command::new("xdp-trafficgen").args(["udp", "--help"]).output();
        let sizes = help.is_ok_and(|help| {
            String::from_utf8_lossy(&[help.stdout, help.stderr].concat()).contains(SIZE_FLAG)
        });
        (!sizes).then(|| {
            "this version of xdp-trafficgen sends packets of one size only: take one that has --pkt-size"
                .to_owned()
        })
    }

    fn version_command(&self) -> Vec<String> {
        words("xdp-trafficgen udp --version")
    }

    /// Over IPv6 the same datagram makes a larger frame.
    fn frames(&self, datagram: Datagram) -> Vec<u16> {
        vec![frame(datagram) as u16]
    }

    fn launch(&self, task: &Task) -> Launch {
        Launch::of(&format!(
            "xdp-trafficgen udp --dst-mac {} --src-mac {} --threads 1 {SIZE_FLAG} {} {}",
            task.way.destination.0,
            task.way.source.0,
            HEADERS + usize::from(task.datagram.payload()),
            task.port.name
        ))
    }

    /// What it prints at its end has not been seen yet, so nothing is read from it.
    fn said(&self, _said: &Said, _packets: u64) -> Option<u64> {
        None
    }
}

fn frame(datagram: Datagram) -> usize {
    HEADERS + usize::from(datagram.payload()) + usize::from(wire::size::FCS)
}

/// What the kernel refused, of all that the program prints about it.
fn cause(said: &str) -> &str {
    let lines = || said.lines().map(str::trim).filter(|line| !line.is_empty());
    let refused = lines().find(|line| line.contains("failed to find") || line.contains("failed to load"));
    refused.or(lines().next_back()).unwrap_or("it does not say why")
}
