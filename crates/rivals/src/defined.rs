//! Generators that a TOML file defines: its text enters; a program that can be measured leaves, or what is wrong in the
//! file. Some of the built-in ones are such files, in the folder `generators`.
//!
//! A command is split at blanks; names in braces are replaced by what to send and from where. The result is what the kernel's
//! counters of the port say; what the program says that it sent is kept beside it.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use programs::{INPUT, Said, number_after, number_before};
use serde::Deserialize;
use traffic::capture::Writer;
use wording::toml::in_plain_words;

use super::datagram::{Datagram, PORT, UNFRAGMENTED};
use super::program::{Input, Launch, Program, Task, refuse_fragments, words};

/// What stands in braces in a command.
const PLACEHOLDERS: [&str; 11] = [
    "port",
    "mac",
    "source-mac",
    "ip",
    "source-ip",
    "udp-port",
    "payload",
    "frame",
    "core",
    "seconds",
    "capture",
];
/// Packets in a capture. A program that reaches its end starts it again, which takes time.
const CAPTURED: usize = 1024;

/// The ones that are built in.
pub static TCPREPLAY: LazyLock<Defined> =
    LazyLock::new(|| built_in(include_str!("../../../generators/tcpreplay.toml")));
/// UDP over IPv6 from an XDP program.
pub static XDP_TRAFFICGEN: LazyLock<Defined> =
    LazyLock::new(|| built_in(include_str!("../../../generators/xdp-trafficgen.toml")));

/// A generator as its file has it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Defined {
    name: String,
    /// Its command line.
    command: String,
    /// Debian's package that has it.
    #[serde(default)]
    package: Option<String>,
    /// The command by which it tells its version; `PROGRAM --version` without it.
    #[serde(default)]
    version: Option<String>,
    /// The version of IP that it sends: 4, or 6, whose header is longer.
    #[serde(default)]
    ip: Option<u8>,
    /// Bytes of the largest datagram that it sends; what one packet holds, without it.
    #[serde(default)]
    largest_datagram: Option<u16>,
    /// The packets that it says it sent stand after these words …
    #[serde(default)]
    said_after: Option<String>,
    /// … or before these.
    #[serde(default)]
    said_before: Option<String>,
    /// What must hold for it to run here.
    #[serde(default)]
    requires: Vec<Requirement>,
}

/// A command that must succeed.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Requirement {
    command: String,
    /// What it must say.
    #[serde(default)]
    says: Option<String>,
    /// What to say where it does not.
    #[serde(rename = "else")]
    remedy: String,
}

impl Defined {
    /// The generator that the file at `path` defines.
    ///
    /// # Errors
    /// What is wrong with the file, and how to mend it.
    pub fn read(path: &Path) -> Result<Self, String> {
        let text = foreign::file::read_text(path, foreign::file::LONGEST_TEXT)
            .map_err(|error| format!("cannot read the generator {}: {error}", path.display()))?;
        Self::parse(&text).map_err(|wrong| format!("{}: {wrong}", path.display()))
    }

    fn parse(text: &str) -> Result<Self, String> {
        let defined: Self =
            toml::from_str(text).map_err(|error| in_plain_words(error.message(), "a generator"))?;
        if defined.name.is_empty() || defined.command.trim().is_empty() {
            return Err("name and command must not be empty".to_owned());
        }
        if !matches!(defined.ip, None | Some(4 | 6)) {
            return Err("ip is 4 or 6".to_owned());
        }
        if let Some(unknown) = placeholders(&defined.command).find(|name| !PLACEHOLDERS.contains(name)) {
            let known = PLACEHOLDERS.map(|name| format!("{{{name}}}")).join(", ");
            return Err(format!("there is no placeholder {{{unknown}}}. There are: {known}"));
        }
        Ok(defined)
    }

    /// Bytes by which its headers are longer than those of UDP over IPv4.
    fn longer(&self) -> u16 {
        if self.ip == Some(6) { (wire::ipv6::LENGTH - wire::ipv4::LENGTH) as u16 } else { 0 }
    }
}

/// One that is tested to be read.
fn built_in(text: &str) -> Defined {
    Defined::parse(text).unwrap_or_default()
}

/// The names in braces.
fn placeholders(command: &str) -> impl Iterator<Item = &str> {
    command.split('{').skip(1).filter_map(|rest| rest.split_once('}')).map(|(name, _)| name)
}

impl Program for Defined {
    fn name(&self) -> &str {
        &self.name
    }

    fn executable(&self) -> &str {
        self.command.split_whitespace().next().unwrap_or_default()
    }

    fn package(&self) -> &str {
        self.package.as_deref().unwrap_or("of its own: see its documentation")
    }

    fn refusal(&self, datagram: Datagram, _core: usize) -> Option<String> {
        let largest = self.largest_datagram.unwrap_or(UNFRAGMENTED - self.longer());
        if let Some(refusal) = refuse_fragments(&self.name, datagram, largest) {
            return Some(refusal);
        }
        self.requires.iter().find_map(Requirement::refusal)
    }

    fn version_command(&self) -> Vec<String> {
        let usual = || vec![self.executable().to_owned(), "--version".to_owned()];
        self.version.as_deref().map_or_else(usual, words)
    }

    /// Over IPv6 the same datagram makes a larger frame, which is never padded.
    fn frames(&self, datagram: Datagram) -> Vec<u16> {
        match self.ip {
            Some(6) => vec![(bytes_of_frame(datagram, self) + usize::from(wire::size::FCS)) as u16],
            _ => datagram.frames(),
        }
    }

    fn launch(&self, task: &Task) -> Launch {
        let frame = bytes_of_frame(task.datagram, self);
        let values = [
            task.port.name.clone(),
            task.way.destination.0.to_string(),
            task.way.source.0.to_string(),
            task.way.destination.1.to_string(),
            task.way.source.1.to_string(),
            PORT.to_string(),
            task.datagram.to_string(),
            frame.to_string(),
            task.core.to_string(),
            task.seconds.to_string(),
            INPUT.to_owned(),
        ];
        let fill = |word: &str| {
            let pairs = PLACEHOLDERS.iter().zip(&values);
            pairs.fold(word.to_owned(), |word, (name, value)| word.replace(&format!("{{{name}}}"), value))
        };
        let input = placeholders(&self.command).any(|name| name == "capture").then(|| captured(task));
        Launch { words: self.command.split_whitespace().map(fill).collect(), input, server: None }
    }

    fn said(&self, said: &Said, _packets: u64) -> Option<u64> {
        let text = format!("{}\n{}", said.stdout, said.stderr);
        match (&self.said_after, &self.said_before) {
            (Some(words), _) => number_after(&text, words),
            (None, Some(words)) => number_before(&text, words),
            (None, None) => None,
        }
    }
}

/// Bytes of the frame that carries the datagram whole, without FCS and padding.
fn bytes_of_frame(datagram: Datagram, program: &Defined) -> usize {
    let headers = wire::ethernet::LENGTH + wire::ipv4::LENGTH + wire::udp::LENGTH;
    headers + usize::from(program.longer()) + usize::from(datagram.payload())
}

/// The packets of datagrams as a capture, each as often as it has room.
fn captured(task: &Task) -> Input {
    let packets = task.datagram.packets(&task.way);
    let copies = CAPTURED.div_ceil(packets.len().max(1));
    let description = format!(
        "a capture with {copies} datagrams of {} bytes, {} packets each",
        task.datagram,
        packets.len()
    );
    // Nothing refuses to be written to memory.
    Input { bytes: capture(&packets, copies).unwrap_or_default(), description }
}

/// A capture that has all `packets` so many times.
fn capture(packets: &[Vec<u8>], copies: usize) -> std::io::Result<Vec<u8>> {
    let mut writer = Writer::new(Vec::new())?;
    for packet in std::iter::repeat_n(packets, copies).flatten() {
        writer.frame(0, packet)?;
    }
    writer.finish()
}

impl Requirement {
    /// What to say where it does not hold.
    fn refusal(&self) -> Option<String> {
        let line = words(&self.command);
        let (program, arguments) = line.split_first()?;
        let ran = Command::new(program).args(arguments).stdin(Stdio::null()).output();
        let holds = ran.is_ok_and(|ran| match &self.says {
            // Some tell their help and fail.
            Some(words) => String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()).contains(words),
            None => ran.status.success(),
        });
        (!holds).then(|| self.remedy.clone())
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use wire::MacAddress;

    use super::*;
    use crate::datagram::Way;

    const OWN: &str =
        "name = \"own\"\ncommand = \"true --dev {port} -l {payload} --to={mac}/{ip} {capture}\"\n";

    fn launched(text: &str, datagram: &str) -> Launch {
        let port = lab::Port {
            name: "port0".to_owned(),
            ifindex: 7,
            mac: MacAddress([2, 0, 0, 0, 0, 1]),
            mtu: 1500,
            speed_bps: None,
            driver: None,
            next_hop_mac: MacAddress([2, 0, 0, 0, 0, 2]),
        };
        let way = Way {
            source: (port.mac, Ipv4Addr::new(198, 18, 0, 1)),
            destination: (port.next_hop_mac, Ipv4Addr::new(198, 18, 0, 2)),
        };
        let task = Task {
            datagram: datagram.parse().unwrap(),
            port: &port,
            way,
            core: 0,
            device: String::new(),
            seconds: 9,
        };
        Defined::parse(text).unwrap().launch(&task)
    }

    #[test]
    fn placeholders_stand_for_what_to_send_and_from_where() {
        let launch = launched(OWN, "18");
        let line = launch.words.join(" ");
        assert_eq!(line, format!("true --dev port0 -l 18 --to=02:00:00:00:00:02/198.18.0.2 {INPUT}"));
        assert!(launch.input.unwrap().description.contains("1024 datagrams of 18 bytes, 1 packets"));
        let longer = launched("name = \"six\"\nip = 6\ncommand = \"six {frame}\"", "18");
        assert_eq!((longer.words.join(" ").as_str(), longer.input.is_none()), ("six 80", true));
    }

    #[test]
    fn the_built_in_ones_are_read_and_say_what_they_sent() {
        assert_eq!((TCPREPLAY.name(), XDP_TRAFFICGEN.name()), ("tcpreplay", "xdp-trafficgen"));
        let said = Said {
            stdout: "Actual: 602851 packets (34965358 bytes) sent in 1.95 seconds\n".to_owned(),
            ..Said::default()
        };
        assert_eq!((TCPREPLAY.said(&said, 1), XDP_TRAFFICGEN.said(&said, 1)), (Some(602_851), None));
        assert_eq!(TCPREPLAY.refusal("9000".parse().unwrap(), 0), None);
        let example = Defined::parse(include_str!("../../../generators/mausezahn.toml")).unwrap();
        assert_eq!((example.name(), example.executable()), ("mausezahn", "mausezahn"));
        let too_large = XDP_TRAFFICGEN.refusal("1500".parse().unwrap(), 0).unwrap();
        assert!(too_large.contains("no fragments") && too_large.contains("1452"), "{too_large}");
        assert_eq!(XDP_TRAFFICGEN.frames("18".parse().unwrap()), [84]);
    }

    #[test]
    fn what_is_wrong_in_a_file_is_named() {
        let wrong = |text: &str| Defined::parse(text).unwrap_err();
        assert!(
            wrong("name = \"a\"\ncommand = \"a {interface}\"").contains("{interface}. There are: {port}")
        );
        assert!(wrong("name = \"a\"").contains("command"), "{}", wrong("name = \"a\""));
        assert!(wrong("name = \"a\"\ncommand = \"a\"\nspeed = 1").contains("speed"));
        assert!(wrong("name = \"\"\ncommand = \"a\"").contains("empty"));
        assert!(wrong("name = \"a\"\ncommand = \"a\"\nip = 5").contains("4 or 6"));
        assert!(Defined::read(Path::new("/nonexistent.toml")).unwrap_err().contains("cannot read"));
    }

    #[test]
    fn a_requirement_that_does_not_hold_says_what_to_do() {
        let requirement = |command: &str, says: Option<&str>| Requirement {
            command: command.to_owned(),
            says: says.map(str::to_owned),
            remedy: "do this".to_owned(),
        };
        assert_eq!(requirement("true", None).refusal(), None);
        assert_eq!(requirement("false", None).refusal().as_deref(), Some("do this"));
        assert_eq!(requirement("echo words", Some("words")).refusal(), None);
        assert_eq!(requirement("echo words", Some("others")).refusal().as_deref(), Some("do this"));
        assert_eq!(requirement("/nonexistent", None).refusal().as_deref(), Some("do this"));
    }

    #[test]
    fn a_capture_has_its_packets_as_often_as_it_says() {
        let file = capture(&[vec![1, 2, 3], vec![4]], 2).unwrap();
        assert_eq!(file.len(), 24 + 2 * (16 + 3 + 16 + 1));
        assert_eq!(file[24 + 12..24 + 19], [3, 0, 0, 0, 1, 2, 3]);
    }
}
