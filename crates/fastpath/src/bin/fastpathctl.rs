//! `fastpathctl`: shows what a running fastpath does, and changes it.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand, ValueEnum};
use fastpath::client::Client;
use fastpath::config::SOCKET;
use fastpath::control::{Answer, Clear, Hop, IpVersion, Pcap, Request, Set, Show, To};
use wording::command_line::version;

/// Shows what a running fastpath does, and changes it.
#[derive(Parser)]
#[command(name = "fastpathctl", max_term_width = 100, infer_subcommands = true)]
#[command(version = version(env!("CARGO_PKG_VERSION"), option_env!("LINERATE_COMMIT")))]
struct Cli {
    /// The control socket of the router
    #[arg(long, default_value = SOCKET, global = true)]
    socket: PathBuf,
    /// Print JSON instead of tables
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Show what the router does
    #[command(subcommand)]
    Show(ShowCommand),
    /// Reset counters
    #[command(subcommand)]
    Clear(Clear),
    /// Change the running router; its configuration file stays as it is
    #[command(subcommand)]
    Set(SetCommand),
    /// Capture a packet trace
    #[command(subcommand)]
    Trace(TraceCommand),
    /// Capture packets to a file
    #[command(subcommand)]
    Pcap(PcapCommand),
    /// Reload the configuration
    Reload {
        /// Another configuration file than the one that the router was started with
        file: Option<PathBuf>,
    },
}

/// The words of [`Show`], of which one takes another.
#[derive(Subcommand)]
enum ShowCommand {
    /// What each worker does, node by node
    Runtime {
        /// The most expensive call of each node instead
        max: Option<Max>,
    },
    /// Interfaces and what went through them
    #[command(visible_alias = "interface")]
    Interfaces {
        /// Their names; all if none is named
        names: Vec<String>,
    },
    /// What there is of IPv4, in the words of VPP
    #[command(subcommand)]
    Ip(IpCommand),
    /// What there is of IPv6, in the words of VPP
    #[command(subcommand)]
    Ip6(IpCommand),
    #[command(flatten)]
    Other(Show),
}

#[derive(Subcommand)]
enum IpCommand {
    /// Routes, as of show fib
    Fib {
        /// A prefix, or an address
        of: Option<String>,
    },
    /// Neighbours whose link address is known
    #[command(visible_alias = "neighbours")]
    Neighbors,
}

#[derive(Subcommand)]
enum PcapCommand {
    /// Begin with the next packets: rx and tx, max N, max-bytes-per-pkt N, intfc NAME, file NAME; or off, or status
    Trace {
        /// The words, in any order
        #[arg(required = true)]
        words: Vec<String>,
    },
}

#[derive(Clone, Copy, ValueEnum)]
enum Max {
    Max,
}

#[derive(Subcommand)]
enum TraceCommand {
    /// Trace the next packets, node by node
    Add {
        /// How many packets; before it may stand the node that takes them from devices, as VPP's users write
        #[arg(required = true, num_args = 1..=2, value_names = ["NODE", "COUNT"])]
        words: Vec<String>,
    },
}

#[derive(Subcommand)]
enum SetCommand {
    /// An interface
    Interface {
        /// Its name
        name: String,
        #[command(subcommand)]
        change: InterfaceCommand,
    },
    /// A route
    #[command(subcommand)]
    Route(RouteCommand),
    /// A neighbour whose address never changes
    #[command(subcommand)]
    Neighbour(NeighbourCommand),
}

#[derive(Subcommand)]
enum InterfaceCommand {
    /// Bring the interface up
    Up,
    /// Bring the interface down
    Down,
    /// Set the MTU, without link header
    Mtu {
        /// In bytes, from 68 to 9216
        bytes: u32,
    },
}

#[derive(Subcommand)]
enum RouteCommand {
    /// Packets to a prefix go there; what its route was before is forgotten
    Add {
        /// Like 10.0.0.0/8
        prefix: String,
        /// A next hop, ADDRESS@INTERFACE*WEIGHT, or its beginning; several share the flows
        #[arg(long, required_unless_present = "drop", conflicts_with = "drop")]
        via: Vec<String>,
        /// Packets are dropped
        #[arg(long)]
        drop: bool,
    },
    /// A prefix has no route any more
    Del {
        /// Like 10.0.0.0/8
        prefix: String,
    },
}

#[derive(Subcommand)]
enum NeighbourCommand {
    /// It is at an interface, with this MAC address
    Add {
        /// The interface
        interface: String,
        /// Its address
        address: String,
        /// Like 02:00:00:00:00:01
        mac: String,
    },
    /// It is forgotten
    Del {
        /// The interface
        interface: String,
        /// Its address
        address: String,
    },
}

fn main() -> ExitCode {
    let cli: Cli = match wording::command_line::parse(<Cli as clap::CommandFactory>::command()) {
        Ok(cli) => cli,
        Err(status) => return status,
    };
    let shown = Shown::of_command(&cli.command);
    let request = match request(cli.command) {
        Ok(request) => request,
        Err(misuse) => {
            eprintln!("fastpathctl: {misuse}");
            return ExitCode::from(2);
        }
    };
    let asked = Client::connect(&cli.socket).and_then(|mut client| client.ask(&request));
    match asked.map(|answer| shown.of(answer)) {
        Ok(answer) => {
            // The reader of the output may have seen enough.
            let _ = print(&answer, cli.json);
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("fastpathctl: {error}");
            ExitCode::FAILURE
        }
    }
}

fn request(command: Command) -> Result<Request, String> {
    Ok(match command {
        Command::Show(ShowCommand::Runtime { max: None }) => Request::Show(Show::Runtime),
        Command::Show(ShowCommand::Runtime { max: Some(Max::Max) }) => Request::Show(Show::RuntimeMax),
        Command::Show(ShowCommand::Interfaces { .. }) => Request::Show(Show::Interfaces),
        Command::Show(ShowCommand::Ip(IpCommand::Fib { of })) => {
            Request::Show(Show::Fib { version: IpVersion::Ip4, of })
        }
        Command::Show(ShowCommand::Ip6(IpCommand::Fib { of })) => {
            Request::Show(Show::Fib { version: IpVersion::Ip6, of })
        }
        Command::Show(ShowCommand::Ip(_) | ShowCommand::Ip6(_)) => Request::Show(Show::Neighbours),
        Command::Show(ShowCommand::Other(show)) => Request::Show(show),
        Command::Clear(clear) => Request::Clear(clear),
        Command::Trace(TraceCommand::Add { words }) => Request::Trace(traced(&words)?),
        Command::Pcap(PcapCommand::Trace { words }) => Request::Pcap(Pcap::parse(&words)?),
        Command::Set(set) => Request::Set(self::set(set)?),
        // The router may be in another directory.
        Command::Reload { file } => {
            Request::Reload { file: file.map(|file| std::path::absolute(&file).unwrap_or(file)) }
        }
    })
}

/// How many packets `trace add` is to trace: they are taken where they come from devices, however that node is called.
fn traced(words: &[String]) -> Result<u32, String> {
    let (count, nodes) = words.split_last().ok_or("trace add needs a number of packets")?;
    if let Some(node) = nodes.iter().find(|node| !node.ends_with("-input")) {
        return Err(format!(
            "packets are traced from where they arrive, not from {node}: write device-input, or no node"
        ));
    }
    count.parse().map_err(|_| format!("'{count}' is no number of packets"))
}

/// Which part of an answer was asked for.
enum Shown {
    All,
    /// Interfaces of these names.
    Interfaces(Vec<String>),
    /// Neighbours of one version of IP.
    Neighbours(IpVersion),
}

impl Shown {
    fn of_command(command: &Command) -> Self {
        match command {
            Command::Show(ShowCommand::Interfaces { names }) if !names.is_empty() => {
                Self::Interfaces(names.clone())
            }
            Command::Show(ShowCommand::Ip(IpCommand::Neighbors)) => Self::Neighbours(IpVersion::Ip4),
            Command::Show(ShowCommand::Ip6(IpCommand::Neighbors)) => Self::Neighbours(IpVersion::Ip6),
            _ => Self::All,
        }
    }

    /// The part of `answer`.
    fn of(&self, mut answer: Answer) -> Answer {
        match (self, &mut answer) {
            (Self::Interfaces(names), Answer::Interfaces(shown)) => {
                shown.interfaces.retain(|row| names.contains(&row.name));
            }
            (Self::Neighbours(version), Answer::Neighbours(shown)) => {
                let is_six = *version == IpVersion::Ip6;
                shown.neighbours.retain(|row| row.address.contains(':') == is_six);
            }
            _ => {}
        }
        answer
    }
}

fn set(command: SetCommand) -> Result<Set, String> {
    Ok(match command {
        SetCommand::Interface { name, change } => {
            let (up, mtu) = match change {
                InterfaceCommand::Up => (Some(true), None),
                InterfaceCommand::Down => (Some(false), None),
                InterfaceCommand::Mtu { bytes } => (None, Some(bytes)),
            };
            Set::Interface { name, up, mtu }
        }
        SetCommand::Route(RouteCommand::Add { prefix, via, .. }) => {
            let hops = via.iter().map(|text| hop(text)).collect::<Result<Vec<_>, _>>()?;
            Set::Route { prefix, to: if hops.is_empty() { To::Drop } else { To::Via(hops) } }
        }
        SetCommand::Route(RouteCommand::Del { prefix }) => Set::Route { prefix, to: To::Nothing },
        SetCommand::Neighbour(NeighbourCommand::Add { interface, address, mac }) => {
            Set::Neighbour { interface, address, mac: Some(mac) }
        }
        SetCommand::Neighbour(NeighbourCommand::Del { interface, address }) => {
            Set::Neighbour { interface, address, mac: None }
        }
    })
}

/// `ADDRESS[@INTERFACE][*WEIGHT]`.
fn hop(text: &str) -> Result<Hop, String> {
    let (text, weight) = match text.rsplit_once('*') {
        None => (text, None),
        Some((text, weight)) => {
            let number = weight.parse().map_err(|_| {
                format!("'{weight}' is no weight: write a whole number after the *, like 10.0.0.2*3")
            })?;
            (text, Some(number))
        }
    };
    let (gateway, interface) = match text.split_once('@') {
        None => (text, None),
        Some((gateway, interface)) => (gateway, Some(interface.to_owned())),
    };
    Ok(Hop { gateway: gateway.to_owned(), interface, weight })
}

/// Prints an answer as people or programs read it.
fn print(answer: &Answer, json: bool) -> io::Result<()> {
    let mut out = io::stdout().lock();
    if json {
        return writeln!(out, "{}", answer.json());
    }
    match answer {
        Answer::Done(done) => writeln!(io::stderr(), "fastpathctl: {done}"),
        answer => write!(out, "{answer}"),
    }
}
