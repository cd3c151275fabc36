//! Flags that several subcommands share: the same word for the same thing everywhere.
//!
//! Words of the command line enter; profiles, rates and devices leave.

mod energy;
mod packet_io;

use std::collections::BTreeMap;
use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, Result};
use dut::DutSpec;
use monitor::gauges::Wanted;
use testbed::target::{EngineName, Named, Place, Ports, Remote, SwitchAt, Target};
use testbed::trex_profile;
use traffic::tunable::{Size, VlanTags, Vm};
use traffic::{Directions, IpVersion, Profile, Tunables};
use trial::{Conditions, WarmUp};
use wire::MacAddress;
use wire::rate::Rate;
use wording::usage::misuse;

use crate::line::Line;
pub use packet_io::Engine;

/// What to send.
#[derive(clap::Args, Clone, Debug)]
#[command(next_help_heading = "Traffic")]
pub struct Traffic {
    /// A built-in profile (`linerate profile` lists them), a TOML file, a capture (.pcap, .pcapng), or a profile of TRex (.py)
    #[arg(long, default_value = "bench")]
    pub profile: String,
    /// Frame size in bytes with FCS, 64 to 9216, or imix [default: 64, or the least that fits]
    #[arg(long)]
    pub size: Option<Size>,
    /// Which header fields vary: none (1 flow), var1, var2 (251 flows), random or tuple [default: none]
    #[arg(long, visible_alias = "vm")]
    pub flows: Option<Vm>,
    /// IP version
    #[arg(long, hide_short_help = true)]
    pub ip: Option<IpVersion>,
    /// One or two VLAN tags, outer first, as in 100 or 200,100
    #[arg(long, hide_short_help = true)]
    pub vlan: Option<VlanTags>,
    /// Load both directions at once
    #[arg(long, short)]
    pub bidirectional: bool,
}

impl Traffic {
    /// The profile that the flags describe.
    pub fn profile(&self) -> Result<Profile> {
        if is_file(&self.profile) {
            return self.file();
        }
        let tunables = Tunables { size: self.size, vm: self.flows, ip: self.ip, vlan: self.vlan.clone() };
        Profile::builtin(&self.profile, &tunables).map_err(|error| misuse(error.to_string()))
    }

    /// The directions that the flags ask for.
    pub fn directions(&self) -> Directions {
        if self.bidirectional { Directions::Both } else { Directions::Forward }
    }

    fn file(&self) -> Result<Profile> {
        if self.size.is_some() || self.flows.is_some() || self.ip.is_some() || self.vlan.is_some() {
            return Err(misuse(
                "--size, --flows, --ip and --vlan belong to built-in profiles: set them in the file",
            ));
        }
        if is_capture(&self.profile) {
            let profile = Profile::from_capture(&self.profile, &read_capture(&self.profile)?);
            return profile.map_err(|error| misuse(error.to_string()));
        }
        if self.profile.ends_with(PYTHON) {
            return trex_profile::read(&self.profile, self.directions());
        }
        let text = foreign::file::read_text(Path::new(&self.profile), foreign::file::LONGEST_TEXT)
            .with_context(|| format!("cannot read the profile {}: check its name", self.profile))?;
        Profile::from_toml(&self.profile, &text).map_err(|error| misuse(error.to_string()))
    }
}

/// What the names of captures end in.
const CAPTURES: [&str; 3] = [".pcap", ".pcapng", ".cap"];
/// What the names of TRex's profiles end in.
const PYTHON: &str = ".py";
/// The largest capture that is read, in bytes: all of it is kept in memory.
const LARGEST_CAPTURE: u64 = 1 << 30;

/// Whether a profile's name is that of a file.
pub fn is_file(profile: &str) -> bool {
    profile.ends_with(".toml") || profile.ends_with(PYTHON) || profile.contains('/') || is_capture(profile)
}

fn is_capture(profile: &str) -> bool {
    CAPTURES.iter().any(|ending| profile.ends_with(ending))
}

/// The bytes of a capture.
pub fn read_capture(file: &str) -> Result<Vec<u8>> {
    let path = Path::new(file);
    let length = fs::metadata(path).map_or(0, |metadata| metadata.len());
    if length > LARGEST_CAPTURE {
        return Err(misuse(format!(
            "the capture {file} has {length} bytes, more than {LARGEST_CAPTURE}: \
             cut a part out of it (editcap -c, or tcpdump -r … -c … -w …)"
        )));
    }
    foreign::file::read(path, LARGEST_CAPTURE)
        .with_context(|| format!("cannot read the capture {file}: check its name"))
}

/// What to send it through.
#[derive(clap::Args, Clone, Debug)]
#[command(next_help_heading = "Device under test")]
#[command(group = clap::ArgGroup::new("named ports").args(["ports", "port0"]))]
pub struct Device {
    /// A device of the built-in lab, NAME[:KEY=VALUE,…]; `linerate lab devices` lists them [default: linux-router]
    #[arg(long, value_name = "DUT", conflicts_with = "ports")]
    pub dut: Option<DutSpec>,
    /// Two interfaces of this host, with your device between them
    #[arg(long, value_name = "A,B", value_delimiter = ',', num_args = 1)]
    pub ports: Option<Vec<String>>,
    /// What sends and receives: xdp in the kernel; af_xdp on any card that the kernel has a driver for; dpdk or memif in
    /// user space; trex:HOST, or several HOST:PORT with commas, TRex stateless servers. auto takes xdp where each of --ports
    /// can transmit redirected frames, else af_xdp
    #[arg(long, value_name = "ENGINE", default_value = "auto", hide_short_help = true)]
    pub engine: Engine,
    /// Port 0 in user space. Of --engine dpdk: a driver with its arguments, as in net_af_xdp0,iface=eth1,
    /// or a card's PCI address; of --engine memif: memif:socket=/run/memif.sock,role=client
    #[arg(long, value_name = "DEVICE", requires = "port1", conflicts_with_all = ["dut", "ports"], hide_short_help = true)]
    pub port0: Option<String>,
    /// Port 1 in user space
    #[arg(long, value_name = "DEVICE", requires = "port0", conflicts_with_all = ["dut", "ports"], hide_short_help = true)]
    pub port1: Option<String>,
    /// The device's IP addresses at port 0 and port 1; omit them if it is a bridge
    #[arg(long, value_name = "IP,IP", value_parser = ip_address, value_delimiter = ',', num_args = 1, requires = "ports", conflicts_with = "dut")]
    pub gateways: Option<Vec<IpAddr>>,
    /// The device's MAC addresses at --port0 and --port1, if it is a router; omit them if it is a bridge
    #[arg(
        long,
        value_name = "MAC,MAC",
        value_delimiter = ',',
        num_args = 1,
        requires = "port0",
        conflicts_with = "dut",
        hide_short_help = true
    )]
    pub gateway_macs: Option<Vec<MacAddress>>,
    /// Use an interface even if it carries the default route or this SSH session; must be given twice
    #[arg(long, action = clap::ArgAction::Count, requires = "named ports", conflicts_with = "dut", hide_short_help = true)]
    pub force: u8,
    /// The switch that --ports are plugged into, and its interfaces there: it is asked by SNMP v2c what it counted
    #[arg(long, value_name = "HOST[:PORT],IF,IF", requires = "ports", hide_short_help = true)]
    pub switch: Option<SwitchAt>,
    /// A file with the switch's community [default: what LINERATE_SNMP_COMMUNITY says, or public]
    #[arg(long, value_name = "FILE", requires = "switch", hide_short_help = true)]
    pub switch_community: Option<PathBuf>,
    /// Line rate (L1) that percentages refer to [default: the interface's speed]
    #[arg(long, value_name = "RATE", value_parser = line_rate)]
    pub line_rate: Option<f64>,
    /// Cores that generate, one worker each
    #[arg(long, value_name = "CORE,…", value_delimiter = ',', hide_short_help = true)]
    pub cores: Option<Vec<usize>>,
    /// Cores that receive in user space, one worker each, which share the queues of each port
    /// [default: those that generate]
    #[arg(long, value_name = "CORE,…", value_delimiter = ',', hide_short_help = true)]
    pub receive_cores: Option<Vec<usize>>,
    /// The core that the lab's device works on
    #[arg(long, value_name = "CORE", hide_short_help = true)]
    pub dut_core: Option<usize>,
    /// A shell command that configures the device first, run in the namespace of the lab's device,
    /// with --ports on this machine; repeat it for more. What it leaves running in a lab ends with the lab
    #[arg(long = "dut-command", value_name = "COMMAND", hide_short_help = true)]
    pub dut_commands: Vec<String>,
    /// A source whose packets the device must drop. Before the run a few frames prove that it drops them and passes those
    /// of the profile; repeat it for more
    #[arg(long = "dut-denies", value_name = "ADDRESS", value_parser = ip_address, hide_short_help = true)]
    pub denied: Vec<IpAddr>,
    /// The device between --ports, by a name that ssh knows: a driver configures it, describes it and reads its counters
    #[arg(
        long,
        value_name = "[USER@]HOST",
        requires = "ports",
        requires = "dut_driver",
        conflicts_with = "dut",
        hide_short_help = true
    )]
    pub dut_host: Option<String>,
    /// The driver: linux, freebsd (pfSense too), vpp, or a TOML file; `linerate remote drivers` has more
    #[arg(long, value_name = "DRIVER", requires = "dut_host", hide_short_help = true)]
    pub dut_driver: Option<String>,
    /// An option of the driver; repeat it for more
    #[arg(long = "dut-option", value_name = "KEY=VALUE", value_parser = key_value, requires = "dut_host", hide_short_help = true)]
    pub dut_options: Vec<(String, String)>,
    /// Use sudo on the device
    #[arg(long, requires = "dut_host", hide_short_help = true)]
    pub dut_sudo: bool,
}

/// The device that is tested when none is named.
const DEFAULT_DUT: &str = "linux-router";

impl Device {
    /// What is to be measured.
    ///
    /// # Errors
    /// Misuse, where flags do not go together.
    pub fn target(&self) -> Result<Target> {
        self.target_with(None)
    }

    /// The same, with this device where none is named.
    ///
    /// # Errors
    /// As above.
    pub fn target_or(&self, dut: &str) -> Result<Target> {
        self.target_with(Some(dut))
    }

    fn target_with(&self, unnamed: Option<&str>) -> Result<Target> {
        let place = self.place(unnamed)?;
        let is_xdp = match self.engine.name {
            EngineName::Auto => !matches!(place, Place::Ports(_)),
            named => named == EngineName::Xdp,
        };
        if is_xdp && self.receive_cores.is_some() {
            return Err(misuse(
                "--receive-cores are of user space: add --engine af_xdp, dpdk or memif. In the kernel, frames \
                 are received where their interrupts are served",
            ));
        }
        Ok(Target {
            place,
            engine: self.engine.name,
            line_rate: self.line_rate,
            cores: self.cores.clone(),
            receive_cores: self.receive_cores.clone(),
            dut_core: self.dut_core,
            dut_commands: self.dut_commands.clone(),
            denied: self.denied.clone(),
            energy: Wanted::default(),
            switch: self.switch.clone().map(|at| at.with_community(self.switch_community.clone())),
        })
    }

    fn place(&self, unnamed: Option<&str>) -> Result<Place> {
        if self.engine.name == EngineName::Trex {
            return self.testers();
        }
        let engine = self.engine.name;
        if let (Some(zero), Some(one)) = (&self.port0, &self.port1) {
            if !engine.is_in_user_space() {
                return Err(misuse(
                    "--port0 and --port1 name ports in user space: add --engine dpdk or memif. Interfaces of the kernel are \
                     named with --ports A,B",
                ));
            }
            let takes = "--gateway-macs takes two addresses, the device's at port 0 and at port 1";
            let next_hops = self.gateway_macs.as_deref().map(|macs| two(macs, takes)).transpose()?;
            let ports = [zero.clone(), one.clone()];
            return Ok(Place::Named(Named { ports, next_hops, force: self.force }));
        }
        match (&self.ports, &self.dut) {
            (Some(_), _) if engine.is_in_user_space() => Err(misuse(format!(
                "--ports are interfaces of the kernel: with --engine {engine} give --port0 and --port1"
            ))),
            (Some(ports), _) => self.between(ports).map(Place::Ports),
            (None, dut) => {
                let named = match (dut, unnamed) {
                    (Some(dut), _) => dut.clone(),
                    (None, None) if engine.is_in_user_space() => {
                        return Err(misuse(format!(
                            "--engine {engine} has ports of its own: give --port0 and --port1, or --dut \
                             calibrated, testpmd, vpp or fastpath"
                        )));
                    }
                    (None, unnamed) => unnamed.unwrap_or(DEFAULT_DUT).parse()?,
                };
                Ok(if engine.is_in_user_space() { Place::Started(named) } else { Place::Lab(named) })
            }
        }
    }

    /// Between the ports of TRex stateless servers.
    fn testers(&self) -> Result<Place> {
        let here = [
            ("--dut", self.dut.is_some()),
            ("--ports", self.ports.is_some()),
            ("--port0 and --port1", self.port0.is_some()),
            ("--cores", self.cores.is_some()),
            ("--receive-cores", self.receive_cores.is_some()),
            ("--dut-core", self.dut_core.is_some()),
        ];
        match here.into_iter().find(|(_, is_given)| *is_given) {
            Some((flag, _)) => Err(misuse(format!(
                "--engine trex uses the ports and cores that its servers have: give {flag} to them, and leave it out here"
            ))),
            None => Ok(Place::Testers(self.engine.testers.clone())),
        }
    }

    fn between(&self, ports: &[String]) -> Result<Ports> {
        let takes = "--gateways takes two addresses, the device's at port 0 and at port 1";
        let remote = self.dut_host.clone().zip(self.dut_driver.clone());
        Ok(Ports {
            names: two(ports, "--ports takes two interfaces, as in --ports eth1,eth2")?,
            gateways: self.gateways.as_deref().map(|gateways| two(gateways, takes)).transpose()?,
            force: self.force,
            remote: remote.map(|(host, driver)| Remote {
                host,
                driver,
                options: self.dut_options.clone(),
                sudo: self.dut_sudo,
            }),
        })
    }
}

/// Two values; else misuse, which says what the flag `takes`.
fn two<T: Clone>(values: &[T], takes: &str) -> Result<[T; 2]> {
    <[T; 2]>::try_from(values.to_vec()).map_err(|_| misuse(takes))
}

/// Where results go.
#[derive(clap::Args, Clone, Debug)]
#[command(next_help_heading = "Output")]
pub struct Output {
    /// The directory that result files are kept in
    #[arg(long, value_name = "DIR", default_value = "runs")]
    pub runs: PathBuf,
    /// Print the result as JSON on standard output
    #[arg(long)]
    pub json: bool,
    /// What reports call this run [default: from the device and the test]
    #[arg(long, hide_short_help = true)]
    pub name: Option<String>,
    /// Tag kept with the result; repeat it for more
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = key_value, hide_short_help = true)]
    labels: Vec<(String, String)>,
    #[command(flatten)]
    energy: energy::Energy,
}

impl Output {
    /// The target with what the flags say of energy.
    pub fn metered(&self, target: Target) -> Target {
        Target { energy: self.energy.wanted(), ..target }
    }

    /// The labels by their keys.
    pub fn labels(&self) -> Result<BTreeMap<String, String>> {
        let mut labels = BTreeMap::new();
        for (key, value) in &self.labels {
            if labels.insert(key.clone(), value.clone()).is_some() {
                return Err(misuse(format!("--label {key}=… is there twice: give each key once")));
            }
        }
        Ok(labels)
    }
}

/// What stands around the loads of a load test.
#[derive(clap::Args, Clone, Debug)]
pub struct Measurement {
    /// Warm-up load in each direction, which checks that frames pass
    #[arg(long, value_name = "RATE", default_value = "1kpps", hide_short_help = true)]
    pub warm_up: Rate,
    /// Length of the warm-up
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = duration, hide_short_help = true)]
    pub warm_up_duration: Duration,
    /// Wait up to this long after sending for late frames
    #[arg(long, value_name = "TIME", default_value = "500ms", value_parser = duration, hide_short_help = true)]
    pub drain: Duration,
}

impl Measurement {
    /// The conditions that the flags describe on `line`, with samples of a `step`.
    pub fn conditions(&self, line: &Line, step: Duration, loss_threshold: f64) -> Result<Conditions> {
        let warm_up = WarmUp { pps: line.pps(self.warm_up)?, duration: self.warm_up_duration };
        Ok(Conditions { warm_up, step, drain: self.drain, loss_threshold, line_rate_bps: line.rate_bps })
    }
}

/// When a sample is lossy.
#[derive(clap::Args, Clone, Debug)]
pub struct Losses {
    /// Loss threshold: a sample may lose this share of its frames
    #[arg(long, value_name = "SHARE", default_value = "0.1%", value_parser = share, hide_short_help = true)]
    pub loss_threshold: f64,
}

/// Reads a duration such as `30s`, `500ms` or `2m`.
pub fn duration(text: &str) -> Result<Duration, String> {
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).map_err(|_| format!("'{text}' is not a duration"));
    }
    humantime::parse_duration(text).map_err(|_| format!("'{text}' is not a duration: write 30s, 500ms or 2m"))
}

/// Reads an IP address.
fn ip_address(text: &str) -> Result<IpAddr, String> {
    text.parse().map_err(|_| format!("'{text}' is not an IP address: write one such as 10.0.0.9 or fd00::9"))
}

/// Reads a key, and all behind the first `=`.
pub fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err(format!("'{text}' has no key before a '=': write KEY=VALUE")),
    }
}

/// Reads a share such as `0.1%` or `0.001`.
pub fn share(text: &str) -> Result<f64, String> {
    let (number, scale) = text.strip_suffix('%').map_or((text, 1.0), |number| (number, 100.0));
    match number.trim().parse::<f64>() {
        Ok(value) if (0.0..scale).contains(&value) => Ok(value / scale),
        _ => Err(format!("'{text}' is not a share: write 0.1% or 0.001, less than 100%")),
    }
}

/// Reads a line rate.
pub fn line_rate(text: &str) -> Result<f64, String> {
    wire::rate::parse_line_rate(text).map_err(|error| error.to_string())
}

/// Reads a share of up to 100 %, which is more than zero.
pub fn share_to_100(text: &str) -> Result<f64, String> {
    if matches!(text, "100%" | "1" | "1.0") {
        return Ok(1.0);
    }
    share(text)
        .and_then(|share| if share > 0.0 { Ok(share) } else { Err("a share of 0 sends nothing".into()) })
}

/// Reads a rate that is more than zero.
pub fn rate(text: &str) -> Result<Rate, String> {
    Rate::from_str(text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_and_shares_are_read() {
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("2m"), Ok(Duration::from_secs(120)));
        assert_eq!(duration("1.5"), Ok(Duration::from_millis(1500)));
        assert!(duration("soon").is_err());
        assert!(duration("-1").is_err());
        assert_eq!(share("0.1%"), Ok(0.001));
        assert_eq!(share("0.5"), Ok(0.5));
        assert!(share("100%").is_err());
        assert!(share("-1%").is_err());
        assert!(share("NaN").is_err());
    }

    /// The target of these flags; else the reason why there is none.
    fn target(flags: &str) -> Result<Target, String> {
        #[derive(clap::Parser)]
        struct Line {
            #[command(flatten)]
            device: Device,
        }
        let words = std::iter::once("linerate").chain(flags.split_whitespace());
        let line = <Line as clap::Parser>::try_parse_from(words).map_err(|error| error.to_string())?;
        line.device.target().map_err(|error| error.to_string())
    }

    #[test]
    fn flags_name_one_place_or_are_refused() {
        let place = |flags: &str| target(flags).unwrap().place;
        assert!(matches!(place(""), Place::Lab(dut) if dut.name() == DEFAULT_DUT));
        assert!(matches!(place("--dut sink --engine af_xdp"), Place::Lab(dut) if dut.name() == "sink"));
        assert!(matches!(place("--engine trex:a,b"), Place::Testers(testers) if testers.len() == 2));
        assert!(matches!(place("--dut calibrated --engine memif"), Place::Started(_)));
        let named = "--engine memif --port0 memif:socket=/a --port1 memif:socket=/b";
        assert!(matches!(place(named), Place::Named(named) if named.ports[1] == "memif:socket=/b"));
        let ports = place("--ports a,b --gateways 10.0.0.1,10.0.1.1 --dut-host h --dut-driver linux");
        let Place::Ports(ports) = ports else { panic!("{ports:?}") };
        assert_eq!((ports.names[1].as_str(), ports.remote.unwrap().host.as_str()), ("b", "h"));
        for (flags, clue) in [
            ("--ports a", "takes two interfaces"),
            ("--ports a,b,c", "takes two interfaces"),
            ("--ports a,b --gateways 10.0.0.1", "takes two addresses"),
            ("--ports a,b --engine dpdk", "give --port0 and --port1"),
            ("--engine memif", "has ports of its own"),
            ("--port0 a --port1 b", "add --engine dpdk or memif"),
            ("--engine memif --port0 a --port1 b --gateway-macs 02:00:00:00:00:01", "takes two addresses"),
            ("--receive-cores 1", "are of user space"),
            ("--receive-cores 1 --engine xdp --ports a,b", "are of user space"),
        ] {
            assert!(target(flags).unwrap_err().contains(clue), "{flags}: {:?}", target(flags));
        }
        assert!(target("--receive-cores 1 --ports a,b").is_ok(), "the ports decide");
    }

    #[test]
    fn a_key_is_divided_from_its_value_at_the_first_equals_sign() {
        assert_eq!(key_value("cell=10 rules/a=b"), Ok(("cell".to_owned(), "10 rules/a=b".to_owned())));
        assert_eq!(key_value("empty="), Ok(("empty".to_owned(), String::new())));
        assert!(key_value("cell").is_err() && key_value("=value").is_err());
    }
}
