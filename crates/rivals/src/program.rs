//! The generators: what to send and from where enters; the command that does it leaves, and from
//! what it says when it ends, how many packets it says it sent.
//!
//! A new generator is a TOML file ([`super::defined`]), or where it needs more than that, one file here and one line in
//! `known::all`.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use lab::Port;
use programs::Said;

use super::datagram::{Datagram, Way};

/// A program that sends datagrams as fast as it can until it is interrupted.
pub trait Program: Sync {
    /// What it is called in `--program`.
    fn name(&self) -> &str;

    /// The file that must be installed.
    fn executable(&self) -> &str {
        self.name()
    }

    /// Debian's package that has it.
    fn package(&self) -> &str;

    /// What it sends into.
    fn target(&self) -> Target {
        Target::Lab
    }

    /// Whether it is a part of this program.
    fn is_ours(&self) -> bool {
        false
    }

    /// The device of the lab that it sends to, where it does not send across one.
    fn far_end(&self) -> &'static str {
        "sink"
    }

    /// Whether it needs a server that answers at the far end.
    fn needs_answer(&self) -> bool {
        false
    }

    /// Why it cannot send such datagrams from that core here, with a remedy if there is one.
    fn refusal(&self, _datagram: Datagram, _core: usize) -> Option<String> {
        None
    }

    /// The command by which it tells its version.
    fn version_command(&self) -> Vec<String> {
        vec![self.executable().to_owned(), "--version".to_owned()]
    }

    /// The sizes of the frames that it sends, FCS included.
    fn frames(&self, datagram: Datagram) -> Vec<u16> {
        datagram.frames()
    }

    /// The command.
    fn launch(&self, task: &Task) -> Launch;

    /// The packets that it says it sent, each `packets` of which are one datagram.
    fn said(&self, said: &Said, packets: u64) -> Option<u64>;
}

/// What a program sends into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The lab, over a cable of the kernel.
    Lab,
    /// Memory shared with a sink, by DPDK's net_memif.
    Memif,
    /// Nothing: DPDK's net_null drops all.
    Null,
}

/// What to send, and from where.
pub struct Task<'a> {
    /// What each datagram is.
    pub datagram: Datagram,
    /// The port that it leaves by.
    pub port: &'a Port,
    /// From where to where.
    pub way: Way,
    /// The core that the program runs on.
    pub core: usize,
    /// The device of DPDK that it sends by, if that is not an interface.
    pub device: String,
    /// How long it will send at most, in whole seconds.
    pub seconds: u64,
}

/// How a program is started.
pub struct Launch {
    /// The command; [`programs::INPUT`] stands for the file that holds `input`.
    pub words: Vec<String>,
    /// The file that it reads.
    pub input: Option<Input>,
    /// The command of what must run at the far end.
    pub server: Option<Vec<String>>,
}

/// A program's input file.
pub struct Input {
    /// Its content.
    pub bytes: Vec<u8>,
    /// What is in it, for people.
    pub description: String,
}

impl Launch {
    /// The words of `line`, which blanks divide.
    pub fn of(line: &str) -> Self {
        Self { words: words(line), input: None, server: None }
    }
}

/// The words of `line`, which blanks divide.
pub fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

/// Refuses datagrams that need several packets, for programs that send whole ones only, of `most`
/// bytes.
pub fn refuse_fragments(name: &str, datagram: Datagram, most: u16) -> Option<String> {
    (datagram.payload() > most).then(|| {
        format!(
            "{name} sends no fragments, and a packet holds {most} bytes of a datagram: choose no more for it"
        )
    })
}

/// Huge pages of 2 MiB that nobody uses.
pub fn free_huge_pages() -> u64 {
    let path = Path::new("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages");
    fs::read_to_string(path).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}

/// The version of `program`, as it tells it.
pub fn version(program: &dyn Program) -> String {
    let command = program.version_command();
    let output = command
        .split_first()
        .map(|(program, arguments)| Command::new(program).args(arguments).stdin(Stdio::null()).output());
    let said = output.and_then(Result::ok).map(|output| [output.stdout, output.stderr].concat());
    let text = String::from_utf8_lossy(&said.unwrap_or_default()).into_owned();
    find_version(&text).unwrap_or_else(|| "unknown".to_owned())
}

/// The first word that is numbers with points between them, like 3.12.
fn find_version(text: &str) -> Option<String> {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let is_version = |word: &&str| word.contains('.') && word.split('.').all(is_number);
    text.split(|c: char| c.is_whitespace() || matches!(c, ',' | '\'')).find(is_version).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datagram::UNFRAGMENTED;

    #[test]
    fn a_version_is_found_in_what_programs_say() {
        for (text, version) in [
            ("iperf 3.12 (cJSON 1.7.15)", "3.12"),
            ("EAL: Detected CPU lcores: 2\nEAL: RTE Version: 'DPDK 22.11.11'", "22.11.11"),
            ("trafgen 0.6.8, multithreaded zero-copy", "0.6.8"),
            ("tcpreplay version: 4.4.3 (build git:v4.4.3)", "4.4.3"),
            ("a port (default 1). linerate 0.1.0", "0.1.0"),
        ] {
            assert_eq!(find_version(text).as_deref(), Some(version));
        }
        assert_eq!(find_version("none"), None);
    }

    #[test]
    fn a_generator_refuses_what_it_cannot_send_whole() {
        let large = "1500".parse().unwrap();
        assert!(refuse_fragments("a", large, UNFRAGMENTED).unwrap().contains("1472 bytes"));
    }
}
