//! Our own generators, measured as all others are: the kernel's, the one on AF_XDP sockets, and those in user
//! space.

use programs::Said;

use super::datagram::{Datagram, UNFRAGMENTED};
use super::program::{Launch, Program, Target, Task, refuse_fragments, words};

/// Ours by an interface of the kernel, as a process of its own.
pub struct Own {
    name: &'static str,
    engine: &'static str,
}

pub const KERNEL: Own = Own { name: "linerate", engine: "xdp" };
pub const AF_XDP: Own = Own { name: "linerate-af-xdp", engine: "af_xdp" };

impl Program for Own {
    fn name(&self) -> &'static str {
        self.name
    }

    fn executable(&self) -> &'static str {
        // This program, even if its file was replaced meanwhile.
        "/proc/self/exe"
    }

    fn package(&self) -> &'static str {
        "linerate"
    }

    fn refusal(&self, datagram: Datagram, _core: usize) -> Option<String> {
        refuse_fragments(self.name(), datagram, UNFRAGMENTED)
    }

    /// The smallest frame has 18 bytes of payload, whether Ethernet pads it or we do.
    fn launch(&self, task: &Task) -> Launch {
        let size = task.datagram.frames().first().copied().unwrap_or(wire::size::MIN);
        Launch::of(&format!(
            "{} send --engine {} --port {} --to {} --size {size} --rate max --cores {} --interval 1h --json",
            self.executable(),
            self.engine,
            task.port.name,
            task.port.next_hop_mac,
            task.core
        ))
    }

    fn said(&self, said: &Said, _packets: u64) -> Option<u64> {
        serde_json::from_str::<serde_json::Value>(&said.stdout).ok()?["offered"].as_u64()
    }
}

/// Ours in user space, in this process: frames with signatures, as its engine builds them.
pub struct UserSpace {
    name: &'static str,
    target: Target,
}

pub const MEMIF: UserSpace = UserSpace { name: "linerate-memif", target: Target::Memif };
pub const NULL: UserSpace = UserSpace { name: "linerate-null", target: Target::Null };

impl Program for UserSpace {
    fn name(&self) -> &'static str {
        self.name
    }

    fn executable(&self) -> &'static str {
        KERNEL.executable()
    }

    fn package(&self) -> &'static str {
        KERNEL.package()
    }

    fn target(&self) -> Target {
        self.target
    }

    fn is_ours(&self) -> bool {
        true
    }

    fn refusal(&self, datagram: Datagram, _core: usize) -> Option<String> {
        refuse_fragments(self.name(), datagram, UNFRAGMENTED)
    }

    /// The command that does it is the one that measures it.
    fn launch(&self, task: &Task) -> Launch {
        let line = format!("linerate generator --program {} --datagram {}", self.name, task.datagram);
        Launch { words: words(&line), input: None, server: None }
    }

    fn said(&self, said: &Said, _packets: u64) -> Option<u64> {
        said.stdout.trim().parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_offered_is_what_it_says() {
        let said = Said { stdout: r#"{"elapsed_s":1.0,"offered":1234}"#.to_owned(), ..Said::default() };
        assert_eq!(KERNEL.said(&said, 1), Some(1234));
        assert_eq!(KERNEL.said(&Said::default(), 1), None);
        assert!(KERNEL.refusal("1500".parse().unwrap(), 0).unwrap().contains("1472"));
        assert_eq!(KERNEL.refusal("1472".parse().unwrap(), 0), None);
    }
}
