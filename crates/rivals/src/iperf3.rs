//! iperf3, UDP: datagrams through a socket, which the kernel fragments. It needs a server that
//! answers at the far end, and so a router instead of the sink, or a way across a device.

use programs::Said;
use serde_json::Value;

use super::program::{Launch, Program, Task, words};

pub struct Iperf3;

impl Program for Iperf3 {
    fn name(&self) -> &'static str {
        "iperf3"
    }

    fn package(&self) -> &'static str {
        "iperf3"
    }

    fn far_end(&self) -> &'static str {
        "linux-router"
    }

    fn needs_answer(&self) -> bool {
        true
    }

    fn launch(&self, task: &Task) -> Launch {
        let client = format!(
            "iperf3 --udp --client {} --length {} --bandwidth 0 --time {} --json",
            task.way.destination.1, task.datagram, task.seconds
        );
        Launch { server: Some(words("iperf3 --server --one-off")), ..Launch::of(&client) }
    }

    /// It counts datagrams; an interrupted client tells, too.
    fn said(&self, said: &Said, packets: u64) -> Option<u64> {
        let told: Value = serde_json::from_str(&said.stdout).ok()?;
        let end = &told["end"];
        let sent = end["sum_sent"]["packets"].as_u64().or_else(|| end["sum"]["packets"].as_u64())?;
        Some(sent * packets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_are_told_as_the_packets_that_they_leave_in() {
        let stdout = r#"{"end":{"sum":{"packets":7},"sum_sent":{"packets":500}},"error":"interrupt"}"#;
        let said = Said { stdout: stdout.to_owned(), ..Said::default() };
        assert_eq!(Iperf3.said(&said, 2), Some(1000));
        let refused = Said { stdout: r#"{"error":"unable to connect"}"#.to_owned(), ..Said::default() };
        assert_eq!(Iperf3.said(&refused, 1), None);
    }
}
