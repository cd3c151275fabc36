//! DPDK's testpmd in its mode txonly, over the drivers for interfaces of the kernel, AF_PACKET and
//! AF_XDP, through shared memory, and onto a port that drops all.

use programs::{Said, number_after};

use super::datagram::{Datagram, PORT, UNFRAGMENTED};
use super::program::{Launch, Program, Target, Task, free_huge_pages, refuse_fragments, words};

/// Where it says how many packets it has sent.
pub const SENT: &str = "TX-packets:";
/// Megabytes that it gets, and how many huge pages these are.
const MEMORY_MB: u64 = 256;
const PAGES: u64 = MEMORY_MB / 2;

/// testpmd over one driver.
pub struct Testpmd {
    name: &'static str,
    /// Of an interface of the kernel.
    driver: &'static str,
    target: Target,
    needs_huge_pages: bool,
}

const fn testpmd(
    name: &'static str,
    driver: &'static str,
    target: Target,
    needs_huge_pages: bool,
) -> Testpmd {
    Testpmd { name, driver, target, needs_huge_pages }
}

pub const AF_PACKET: Testpmd = testpmd("testpmd-af_packet", "net_af_packet0", Target::Lab, false);
pub const AF_XDP: Testpmd = testpmd("testpmd-af_xdp", "net_af_xdp0", Target::Lab, true);
pub const MEMIF: Testpmd = testpmd("testpmd-memif", "", Target::Memif, false);
pub const NULL: Testpmd = testpmd("testpmd-null", "", Target::Null, false);

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

    fn target(&self) -> Target {
        self.target
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
        let device = match self.target {
            Target::Lab => format!("{},iface={}", self.driver, task.port.name),
            Target::Memif | Target::Null => task.device.clone(),
        };
        // By lines, so that it is heard at once; where nobody else can count, it is asked.
        let (heard, mode) = match self.target {
            Target::Lab => ("", " --no-lsc-interrupt"),
            Target::Memif => ("stdbuf -oL ", " --disable-link-check"),
            Target::Null => ("stdbuf -oL ", " --interactive"),
        };
        Launch::of(&format!(
            "{heard}dpdk-testpmd --lcores 0@{core},1@{core} --no-pci --no-telemetry {memory} -m {MEMORY_MB} \
             --vdev {device} -- --total-num-mbufs=4096 --forward-mode=txonly --txpkts={size} \
             --auto-start --eth-peer=0,{mac} --tx-ip={source},{ip} --tx-udp={PORT},{PORT}{mode}",
            core = task.core,
            mac = destination.0,
            ip = destination.1,
        ))
    }

    fn said(&self, said: &Said, _packets: u64) -> Option<u64> {
        // In its sum at the end; or, where it was asked, in its last answer.
        let last = match said.stdout.rsplit_once("Accumulated forward statistics") {
            Some((_, all_ports)) => all_ports,
            None if self.target == Target::Null => said.stdout.get(said.stdout.rfind(SENT)?..)?,
            None => return None,
        };
        number_after(last, SENT)
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
        let answers = Said { stdout: "TX-packets: 7\n TX-packets: 9 \n".to_owned(), ..Said::default() };
        assert_eq!((NULL.said(&answers, 1), AF_XDP.said(&answers, 1)), (Some(9), None));
    }
}
