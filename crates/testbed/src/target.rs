//! What is to be measured, and by what: plain data, made from flags or from a bench file, which validate it.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::str::FromStr;

use anyhow::{Context, Result};
use dut::DutSpec;
use monitor::gauges::Wanted;
use wire::MacAddress;

/// What is to be measured.
#[derive(Clone, Debug)]
pub struct Target {
    /// Where it is.
    pub place: Place,
    /// What sends and receives; between the user's interfaces [`EngineName::Auto`] is what these can do.
    pub engine: EngineName,
    /// The line rate (L1) that percentages refer to, in bits a second.
    pub line_rate: Option<f64>,
    /// The cores that generate.
    pub cores: Option<Vec<usize>>,
    /// The cores that receive in user space.
    pub receive_cores: Option<Vec<usize>>,
    /// The core that a device which Linerate starts works on.
    pub dut_core: Option<usize>,
    /// Shell commands that configure the device first.
    pub dut_commands: Vec<String>,
    /// Sources whose packets the device must drop, beside those that a device of Linerate's names itself.
    pub denied: Vec<IpAddr>,
    /// Who tells the power, and what energy costs.
    pub energy: Wanted,
    /// The switch that the ports are plugged into, if it is asked what it counts. Only between interfaces of this machine.
    pub switch: Option<SwitchAt>,
}

/// A switch, and where the ports are plugged into it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwitchAt {
    host: String,
    port: u16,
    /// Its interfaces at port 0 and port 1: their names, or their numbers (`ifIndex`).
    pub interfaces: [String; 2],
    /// The file that has its community; the environment has it where there is none.
    pub(crate) community: Option<PathBuf>,
}

/// The port that agents of SNMP listen on.
const SNMP_PORT: u16 = 161;

impl SwitchAt {
    /// The same with its community in `file`, if there is one.
    #[must_use]
    pub fn with_community(self, file: Option<PathBuf>) -> Self {
        Self { community: file, ..self }
    }

    /// Where its agent listens, for people.
    #[must_use]
    pub fn agent(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// The same for the kernel.
    ///
    /// # Errors
    /// That the host has no address.
    pub fn address(&self) -> Result<SocketAddr> {
        let unknown = || format!("the switch '{}' has no address: is its name right?", self.host);
        let host = self.host.trim_start_matches('[').trim_end_matches(']');
        (host, self.port).to_socket_addrs().ok().and_then(|mut found| found.next()).with_context(unknown)
    }
}

impl FromStr for SwitchAt {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refused = || {
            format!("'{text}' is no switch: write HOST,INTERFACE,INTERFACE or HOST:PORT,INTERFACE,INTERFACE")
        };
        let parts: Vec<&str> = text.split(',').map(str::trim).collect();
        let [agent, zero, one] = parts.as_slice() else { return Err(refused()) };
        let (host, port) = host_and_port(agent, SNMP_PORT).ok_or_else(refused)?;
        if zero.is_empty() || one.is_empty() {
            return Err(refused());
        }
        Ok(Self { host, port, interfaces: [zero, one].map(|name| (*name).to_owned()), community: None })
    }
}

/// Where a device is.
#[derive(Clone, Debug, PartialEq)]
pub enum Place {
    /// In the built-in lab.
    Lab(DutSpec),
    /// Between two interfaces of this machine.
    Ports(Ports),
    /// In user space, where Linerate starts it. Only with an engine in user space, as the next one.
    Started(DutSpec),
    /// Between two ports of user space.
    Named(Named),
    /// Between the ports of TRex stateless servers, with [`EngineName::Trex`].
    Testers(Vec<TesterAddress>),
}

impl Place {
    /// The sources whose packets a device that Linerate starts must drop.
    #[must_use]
    pub fn denied(&self) -> Vec<IpAddr> {
        match self {
            Self::Lab(dut) | Self::Started(dut) => dut.denied(),
            Self::Ports(_) | Self::Named(_) | Self::Testers(_) => Vec::new(),
        }
    }

    /// The workers of a device that Linerate starts.
    #[must_use]
    pub fn dut_workers(&self) -> lab::Workers {
        match self {
            Self::Lab(dut) | Self::Started(dut) => lab::Device::workers(dut),
            Self::Ports(_) | Self::Named(_) | Self::Testers(_) => lab::Workers::default(),
        }
    }
}

/// Where a TRex stateless server listens for calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TesterAddress {
    host: String,
    port: u16,
}

/// The port where no other is named.
const TREX_PORT: u16 = 4501;

impl TesterAddress {
    /// The same as ZeroMQ writes it.
    #[must_use]
    pub fn endpoint(&self) -> String {
        format!("tcp://{self}")
    }
}

impl fmt::Display for TesterAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.host, self.port)
    }
}

impl FromStr for TesterAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refused = || format!("'{text}' is no address of a tester: write HOST, HOST:PORT or [IPV6]:PORT");
        let (host, port) = host_and_port(text, TREX_PORT).ok_or_else(refused)?;
        Ok(Self { host, port })
    }
}

/// The host and the port in HOST, HOST:PORT or [IPV6]:PORT, where `usual` is the port that need not be written.
fn host_and_port(text: &str, usual: u16) -> Option<(String, u16)> {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !text.ends_with(']') => (host, port.parse().ok()?),
        _ => (text, usual),
    };
    let bare = match host.strip_prefix('[') {
        Some(address) => address.strip_suffix(']').filter(|it| it.parse::<Ipv6Addr>().is_ok()),
        None => Some(host),
    };
    let is_name = |host: &str| {
        let known = |it: char| it.is_ascii_alphanumeric() || "-._:%".contains(it);
        !host.is_empty() && host.chars().all(known) && host.len() < 256
    };
    let named = bare.filter(|bare| is_name(bare) && (host.starts_with('[') || !bare.contains(':')));
    named.filter(|_| port > 0)?;
    Some((host.to_owned(), port))
}

/// Two interfaces of this machine with a device between.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ports {
    /// Their names.
    pub names: [String; 2],
    /// The device's IP addresses at port 0 and port 1; without them it is taken for a bridge.
    pub gateways: Option<[IpAddr; 2]>,
    /// How often the user said that an interface may be used though this machine needs it.
    pub force: u8,
    /// How the device is reached and configured, if a driver does that.
    pub remote: Option<Remote>,
}

/// A device that a driver configures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remote {
    /// Whom ssh connects to.
    pub host: String,
    /// The driver.
    pub driver: String,
    /// Its options.
    pub options: Vec<(String, String)>,
    /// Whether everything there runs by sudo.
    pub sudo: bool,
}

/// Two ports of user space with a device between.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// The ports, as their engine names them.
    pub ports: [String; 2],
    /// The device's MAC addresses at port 0 and port 1; without them frames go to the other port.
    pub next_hops: Option<[MacAddress; 2]>,
    /// As of [`Ports`].
    pub force: u8,
}

impl Target {
    /// A device of the lab and a line rate, without any other wishes.
    #[must_use]
    pub fn lab(dut: DutSpec, line_rate: f64) -> Self {
        Self::of(Place::Lab(dut), EngineName::Auto, line_rate)
    }

    /// A device in user space, reached by `engine`, and a line rate.
    #[must_use]
    pub fn started(dut: DutSpec, engine: EngineName, line_rate: f64) -> Self {
        Self::of(Place::Started(dut), engine, line_rate)
    }

    fn of(place: Place, engine: EngineName, line_rate: f64) -> Self {
        Self {
            place,
            engine,
            line_rate: Some(line_rate),
            cores: None,
            receive_cores: None,
            dut_core: None,
            dut_commands: Vec::new(),
            denied: Vec::new(),
            energy: Wanted::default(),
            switch: None,
        }
    }

    /// The same with another device that Linerate starts.
    #[must_use]
    pub fn with_dut(self, dut: DutSpec) -> Self {
        let place =
            if matches!(self.place, Place::Started(_)) { Place::Started(dut) } else { Place::Lab(dut) };
        Self { place, ..self }
    }
}

/// What sends and receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineName {
    /// The kernel where each port can transmit redirected frames, else AF_XDP sockets.
    Auto,
    /// The kernel.
    Xdp,
    /// AF_XDP sockets at interfaces of the kernel.
    AfXdp,
    /// DPDK.
    Dpdk,
    /// Shared memory, by ourselves.
    Memif,
    /// TRex stateless servers. It has no name without their addresses.
    Trex,
}

impl EngineName {
    /// All that are named without addresses.
    pub const ALL: [Self; 5] = [Self::Auto, Self::Xdp, Self::AfXdp, Self::Dpdk, Self::Memif];

    /// Whether its ports are in user space, and not interfaces of the kernel.
    #[must_use]
    pub fn is_in_user_space(self) -> bool {
        matches!(self, Self::Dpdk | Self::Memif)
    }

    /// The largest frame that it sends by interfaces of the kernel, FCS included.
    #[must_use]
    pub fn max_frame(self) -> usize {
        match self {
            Self::Xdp => engine::xdp::MAX_FRAME,
            Self::Auto | Self::AfXdp => engine::af_xdp::MAX_FRAME,
            Self::Dpdk | Self::Memif | Self::Trex => engine::user_space::MAX_FRAME,
        }
    }

    /// What users call it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Xdp => "xdp",
            Self::AfXdp => "af_xdp",
            Self::Dpdk => "dpdk",
            Self::Memif => "memif",
            Self::Trex => "trex",
        }
    }
}

impl fmt::Display for EngineName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl FromStr for EngineName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|engine| engine.name() == text);
        found.ok_or_else(|| format!("'{text}' is no engine: there are auto, xdp, af_xdp, dpdk and memif"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_switch_is_an_agent_and_two_interfaces() {
        let read = |text: &str| text.parse::<SwitchAt>();
        let switch = read("sw1.example,ge-0/0/1, 7").unwrap();
        assert_eq!(
            (switch.agent().as_str(), switch.interfaces),
            ("sw1.example:161", ["ge-0/0/1", "7"].map(str::to_owned))
        );
        let address = read("[::1]:1161,a,b").unwrap().address().unwrap();
        assert_eq!(address.to_string(), "[::1]:1161");
        for text in ["", "a", "a,b", "a,b,c,d", "a,,c", ":1,b,c", "a b,c,d"] {
            assert!(read(text).unwrap_err().contains("HOST,INTERFACE,INTERFACE"), "{text}");
        }
    }

    #[test]
    fn a_tester_is_a_host_and_a_port() {
        let read = |text: &str| text.parse::<TesterAddress>().map(|address| address.endpoint());
        assert_eq!(read("lab-1.example").unwrap(), "tcp://lab-1.example:4501");
        assert_eq!(read("10.0.0.1:5000").unwrap(), "tcp://10.0.0.1:5000");
        assert_eq!(read("[::1]:5000").unwrap(), "tcp://[::1]:5000");
        assert_eq!(read("[::1]").unwrap(), "tcp://[::1]:4501");
        for text in ["", ":4501", "a:", "a:0", "a:70000", "a b", "::1", "[::1", "[x]:1", "a/b", "*:4501"] {
            assert!(read(text).unwrap_err().contains("HOST:PORT"), "{text}");
        }
    }
}
