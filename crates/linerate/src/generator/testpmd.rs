//! DPDK's testpmd in its mode txonly, over the drivers for interfaces of the kernel: AF_PACKET
//! and AF_XDP.

use super::datagram::{Datagram, PORT, UNFRAGMENTED};
use super::process::Said;
use super::program::{Launch, Program, Task, free_huge_pages, number_after, refuse_fragments, words};

/// Megabytes that it gets, and how many huge pages these are.
const MEMORY_MB: u64 = 256;
const PAGES: u64 = MEMORY_MB / 2;

/// testpmd over one driver.
pub struct Testpmd {
    name: &'static str,
    driver: &'static str,
    needs_huge_pages: bool,
}

pub const AF_PACKET: Testpmd =
    Testpmd { name: "testpmd-af_packet", driver: "net_af_packet0", needs_huge_pages: false };
pub const AF_XDP: Testpmd = Testpmd { name: "testpmd-af_xdp", driver: "net_af_xdp0", needs_huge_pages: true };

fn has_huge_pages() -> bool {
    free_huge_pages() >= PAGES
}

impl Program for Testpmd {
    fn name(&self) -> &'static str {
        self.name
    }

    fn executable(&self) -> &'static str {
        "dpdk-testpmd"
    }

    fn package(&self) -> &'static str {
        "dpdk"
    }

    fn refusal(&self, datagram: Datagram, _core: usize) -> Option<String> {
        refuse_fragments(self.name, datagram, UNFRAGMENTED).or_else(|| {
            (self.needs_huge_pages && !has_huge_pages()).then(|| {
                format!(
                    "{} needs {PAGES} free huge pages of 2 MiB, since without them most of its packets never \
                     leave: sysctl -w vm.nr_hugepages={PAGES} reserves them",
                    self.name
                )
            })
        })
    }

    fn version_command(&self) -> Vec<String> {
        words("dpdk-testpmd -v --no-pci --no-huge --no-shconf -m 64 -- --help")
    }

    /// Huge pages are used where they are free, and never reserved.
    fn launch(&self, task: &Task) -> Launch {
        let memory = if has_huge_pages() { "--in-memory" } else { "--no-huge --no-shconf" };
        let size = wire::ethernet::LENGTH
            + wire::ipv4::LENGTH
            + wire::udp::LENGTH
            + usize::from(task.datagram.payload());
        let (source, destination) = (task.way.source.1, task.way.destination);
        Launch::of(&format!(
            "dpdk-testpmd --lcores 0@{core},1@{core} --no-pci {memory} -m {MEMORY_MB} \
             --vdev {driver},iface={port} -- --total-num-mbufs=4096 --forward-mode=txonly --txpkts={size} \
             --auto-start --eth-peer=0,{mac} --tx-ip={source},{ip} --tx-udp={PORT},{PORT} --no-lsc-interrupt",
            core = task.core,
            driver = self.driver,
            port = task.port.name,
            mac = destination.0,
            ip = destination.1,
        ))
    }

    fn said(&self, said: &Said, _packets: u64) -> Option<u64> {
        let (_, all_ports) = said.stdout.rsplit_once("Accumulated forward statistics")?;
        number_after(all_ports, "TX-packets:")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_count_is_that_of_all_ports() {
        let stdout = "Forward statistics for port 0\n  TX-packets: 7  TX-dropped: 0\n\
                      +++ Accumulated forward statistics for all ports+++\n\
                      RX-packets: 0  RX-dropped: 0\n  TX-packets: 3578528        TX-dropped: 0\n";
        let said = Said { stdout: stdout.to_owned(), ..Said::default() };
        assert_eq!(AF_XDP.said(&said, 1), Some(3_578_528));
        assert_eq!(AF_XDP.said(&Said::default(), 1), None);
    }
}
