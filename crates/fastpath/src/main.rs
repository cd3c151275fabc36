//! `fastpath`: a router that moves vectors of packets through a graph of nodes.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use fastpath::control::log::Log;
use fastpath::{config, daemon};
use rights::Capability;
use rights::system_calls::{self, Duty};
use wording::command_line::version;

/// How long what is still to be said may keep the program.
const FAREWELL: Duration = Duration::from_millis(500);

/// A router that moves vectors of packets through a graph of nodes.
///
/// It runs until SIGINT or SIGTERM ends it, and reads its configuration again on SIGHUP. fastpathctl shows
/// what it does, and changes it.
#[derive(Parser)]
#[command(version = version(env!("CARGO_PKG_VERSION"), option_env!("LINERATE_COMMIT")), max_term_width = 100)]
struct Cli {
    /// The configuration, in TOML
    config: PathBuf,
    /// Only check the configuration
    #[arg(long)]
    check: bool,
    /// Run as this user, who must be able to read the configuration and to write where the control socket is
    #[arg(long, value_name = "NAME", conflicts_with = "check")]
    user: Option<String>,
}

/// What a router needs that is not root: interfaces of the kernel by AF_XDP, and taps and routes beside it; programs of
/// its own there; precedence for its workers.
const NEEDED: [Capability; 5] = [
    Capability::CAP_NET_ADMIN,
    Capability::CAP_NET_RAW,
    Capability::CAP_BPF,
    Capability::CAP_PERFMON,
    Capability::CAP_SYS_NICE,
];

fn main() -> ExitCode {
    let cli: Cli = match wording::command_line::parse(<Cli as clap::CommandFactory>::command()) {
        Ok(cli) => cli,
        Err(status) => return status,
    };
    // Before there are other threads, which would go on as before.
    if let Some(Err(error)) = cli.user.as_ref().map(|user| rights::become_user(user, &NEEDED)) {
        let _ = writeln!(io::stderr(), "fastpath: {error}");
        return ExitCode::FAILURE;
    }
    let confined = system_calls::give_up(Duty::Router);
    let log = Log::start(io::stderr(), "fastpath: ");
    if let Err(error) = confined {
        log.say(&format!("all system calls are kept: {error}"));
    }
    let done = if cli.check {
        daemon::configuration(&cli.config).map(|config| log.say(&summary(&cli, &config)))
    } else {
        daemon::run(&cli.config, &|text| log.say(text))
    };
    let status = match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            log.say(&format!("{error:#}"));
            // A wrong configuration is the user's to mend.
            ExitCode::from(if error.is::<config::Error>() { 2 } else { 1 })
        }
    };
    log.end(FAREWELL);
    status
}

fn summary(cli: &Cli, config: &config::Config) -> String {
    let (interfaces, routes) = (config.interfaces.len(), config.routes.len());
    let workers = config.workers.cores.len();
    format!(
        "{}: configuration OK: {workers} workers, {interfaces} interfaces, {routes} routes",
        cli.config.display()
    )
}
