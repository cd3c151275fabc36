//! trafgen, of netsniff-ng: ready packets through the ring of an AF_PACKET socket.

use programs::{INPUT, Said, number_before};

use super::datagram::Datagram;
use super::program::{Input, Launch, Program, Task};

pub struct Trafgen;

impl Program for Trafgen {
    fn name(&self) -> &'static str {
        "trafgen"
    }

    fn package(&self) -> &'static str {
        "netsniff-ng"
    }

    fn refusal(&self, _datagram: Datagram, core: usize) -> Option<String> {
        (core != 0).then(|| {
            format!("trafgen generates on core 0, wherever it is put, not on core {core}: give --cores 0")
        })
    }

    fn launch(&self, task: &Task) -> Launch {
        let packets = task.datagram.packets(&task.way);
        let configuration: String = packets.iter().map(|packet| block(packet)).collect();
        // A small ring, since a socket's buffer holds no more packets than that on their way: with
        // the usual 512 KiB it gives up after some of them.
        let line = format!(
            "trafgen --dev {} --conf {INPUT} --cpus 1 --notouch-irq --ring-size 64KiB",
            task.port.name
        );
        let description = configuration.clone();
        Launch { input: Some(Input { bytes: configuration.into_bytes(), description }), ..Launch::of(&line) }
    }

    fn said(&self, said: &Said, _packets: u64) -> Option<u64> {
        number_before(&said.stdout, "packets outgoing")
    }
}

/// A packet as trafgen reads it. Zeros, of which most payloads consist, are written as a number.
fn block(packet: &[u8]) -> String {
    let end = packet.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    let (head, zeros) = packet.split_at(end);
    let mut parts: Vec<String> = head.iter().map(|byte| format!("0x{byte:02x}")).collect();
    if !zeros.is_empty() {
        parts.push(format!("fill(0x00, {})", zeros.len()));
    }
    format!("{{ {} }}\n", parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_written_as_it_reads_them_and_its_count_is_found() {
        assert_eq!(block(&[1, 0xab, 0, 0, 0]), "{ 0x01, 0xab, fill(0x00, 3) }\n");
        assert_eq!(block(&[1, 0, 2]), "{ 0x01, 0x00, 0x02 }\n");
        let stdout =
            "     1 packets to schedule\n\n\r     1333479 packets outgoing\n\r  77341782 bytes outgoing\n";
        let said = Said { stdout: stdout.to_owned(), ..Said::default() };
        assert_eq!(Trafgen.said(&said, 1), Some(1_333_479));
        assert!(Trafgen.refusal("16".parse().unwrap(), 1).unwrap().contains("--cores 0"));
    }
}
