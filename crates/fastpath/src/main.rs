//! `fastpath`: a router that moves vectors of packets through a graph of nodes.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use fastpath::control::log::Log;
use fastpath::{config, daemon};

/// How long what is still to be said may keep the program.
const FAREWELL: Duration = Duration::from_millis(500);

/// A router that moves vectors of packets through a graph of nodes.
///
/// It runs until SIGINT or SIGTERM ends it, and reads its configuration again on SIGHUP. fastpathctl shows
/// what it does, and changes it.
#[derive(Parser)]
#[command(version, max_term_width = 100)]
struct Cli {
    /// The configuration, in TOML
    config: PathBuf,
    /// Only check the configuration
    #[arg(long)]
    check: bool,
}

fn main() -> ExitCode {
    let cli: Cli = match wording::command_line::parse(<Cli as clap::CommandFactory>::command()) {
        Ok(cli) => cli,
        Err(status) => return status,
    };
    let log = Log::start(io::stderr(), "fastpath: ");
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
