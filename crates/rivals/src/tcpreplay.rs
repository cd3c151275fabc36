//! tcpreplay: packets of a capture, which we write, again and again through an AF_PACKET socket.

use std::io;

use programs::{INPUT, Said, number_after};
use traffic::capture::Writer;

use super::program::{Input, Launch, Program, Task};

/// Packets in the capture: at its end it begins anew, which takes time.
const PACKETS: usize = 1024;
pub struct Tcpreplay;

impl Program for Tcpreplay {
    fn name(&self) -> &'static str {
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
        // Nothing refuses to be written to memory.
        let bytes = capture(&packets, copies).unwrap_or_default();
        Launch { input: Some(Input { bytes, description }), ..Launch::of(&line) }
    }

    fn said(&self, said: &Said, _packets: u64) -> Option<u64> {
        number_after(&said.stdout, "Actual:")
    }
}

/// A capture that has all `packets` so many times.
fn capture(packets: &[Vec<u8>], copies: usize) -> io::Result<Vec<u8>> {
    let mut writer = Writer::new(Vec::new())?;
    for packet in std::iter::repeat_n(packets, copies).flatten() {
        writer.frame(0, packet)?;
    }
    writer.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capture_has_its_packets_and_the_count_is_found() {
        let file = capture(&[vec![1, 2, 3], vec![4]], 2).unwrap();
        assert_eq!(file.len(), 24 + 2 * (16 + 3 + 16 + 1));
        assert_eq!(file[24 + 12..24 + 19], [3, 0, 0, 0, 1, 2, 3]);
        let said = Said {
            stdout: "Actual: 602851 packets (34965358 bytes) sent in 1.95 seconds\n".to_owned(),
            ..Said::default()
        };
        assert_eq!(Tcpreplay.said(&said, 1), Some(602_851));
    }
}
