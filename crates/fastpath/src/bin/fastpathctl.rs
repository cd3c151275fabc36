//! `fastpathctl`: shows what a running fastpath does, and changes it.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand, ValueEnum};
use fastpath::client::Client;
use fastpath::config::SOCKET;
use fastpath::control::{Answer, Clear, Hop, Request, Set, Show, To};

/// Shows what a running fastpath does, and changes it.
#[derive(Parser)]
#[command(name = "fastpathctl", version, max_term_width = 100)]
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
    #[command(flatten)]
    Other(Show),
}

#[derive(Clone, Copy, ValueEnum)]
enum Max {
    Max,
}

#[derive(Subcommand)]
enum TraceCommand {
    /// Trace the next packets of each worker, node by node
    Add {
        /// How many packets
        count: u32,
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
    let request = match request(cli.command) {
        Ok(request) => request,
        Err(misuse) => {
            eprintln!("fastpathctl: {misuse}");
            return ExitCode::from(2);
        }
    };
    match Client::connect(&cli.socket).and_then(|mut client| client.ask(&request)) {
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
        Command::Show(ShowCommand::Other(show)) => Request::Show(show),
        Command::Clear(clear) => Request::Clear(clear),
        Command::Trace(TraceCommand::Add { count }) => Request::Trace(count),
        Command::Set(set) => Request::Set(self::set(set)?),
        // The router may be in another directory.
        Command::Reload { file } => {
            Request::Reload { file: file.map(|file| std::path::absolute(&file).unwrap_or(file)) }
        }
    })
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
