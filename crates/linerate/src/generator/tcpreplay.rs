//! tcpreplay: packets of a capture, which we write, again and again through an AF_PACKET socket.

use super::process::{INPUT, Said};
use super::program::{Input, Launch, Program, Task, number_after};

/// Packets in the capture: at its end it begins anew, which takes time.
const PACKETS: usize = 1024;
/// The magic number of a capture with microseconds, its version, the most bytes of a packet and
/// the link type of Ethernet (draft-ietf-opsawg-pcap).
const MAGIC: u32 = 0xa1b2_c3d4;
const VERSION: [u16; 2] = [2, 4];
const SNAPLEN: u32 = 65_535;
const ETHERNET: u32 = 1;

pub struct Tcpreplay;

impl Program for Tcpreplay {
    fn name(&self) -> &'static str {
        "tcpreplay"
    }

    fn executable(&self) -> &'static str {
        "tcpreplay"
    }

    fn package(&self) -> &'static str {
        "tcpreplay"
    }

    fn launch(&self, task: &Task) -> Launch {
        let packets = task.datagram.packets(&task.way);
        let line = format!(
            "tcpreplay --quiet --intf1={} --topspeed --preload-pcap --loop=0 {INPUT}",
            task.port.name
        );
        let copies = PACKETS.div_ceil(packets.len().max(1));
        let description = format!(
            "a capture with {copies} datagrams of {} bytes, {} packets each",
            task.datagram,
            packets.len()
        );
        Launch { input: Some(Input { bytes: capture(&packets, copies), description }), ..Launch::of(&line) }
    }

    fn said(&self, said: &Said, _packets: u64) -> Option<u64> {
        number_after(&said.stdout, "Actual:")
    }
}

/// A capture that has all `packets` so many times.
fn capture(packets: &[Vec<u8>], copies: usize) -> Vec<u8> {
    let mut file = MAGIC.to_ne_bytes().to_vec();
    file.extend(VERSION.map(u16::to_ne_bytes).concat());
    file.extend([0, 0, SNAPLEN, ETHERNET].map(u32::to_ne_bytes).concat());
    for packet in std::iter::repeat_n(packets, copies).flatten() {
        let length = packet.len() as u32;
        file.extend([0, 0, length, length].map(u32::to_ne_bytes).concat());
        file.extend(packet);
    }
    file
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capture_has_its_packets_and_the_count_is_found() {
        let file = capture(&[vec![1, 2, 3], vec![4]], 2);
        assert_eq!(file.len(), 24 + 2 * (16 + 3 + 16 + 1));
        assert_eq!(file[24 + 12..24 + 19], [3, 0, 0, 0, 1, 2, 3]);
        let said = Said {
            stdout: "Actual: 602851 packets (34965358 bytes) sent in 1.95 seconds\n".to_owned(),
            ..Said::default()
        };
        assert_eq!(Tcpreplay.said(&said, 1), Some(602_851));
    }
}
