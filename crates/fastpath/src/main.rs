//! `fastpath`: a router that moves vectors of packets through a graph of nodes.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use fastpath::{config, daemon};

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
    let done = if cli.check {
        daemon::configuration(&cli.config).map(|config| log(&summary(&cli, &config)))
    } else {
        daemon::run(&cli.config, &log)
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            log(&format!("{error:#}"));
            // A wrong configuration is the user's to mend.
            ExitCode::from(if error.is::<config::Error>() { 2 } else { 1 })
        }
    }
}

fn summary(cli: &Cli, config: &config::Config) -> String {
    let (interfaces, routes) = (config.interfaces.len(), config.routes.len());
    let workers = config.workers.cores.len();
    format!(
        "{}: configuration OK: {workers} workers, {interfaces} interfaces, {routes} routes",
        cli.config.display()
    )
}

fn log(text: &str) {
    for line in text.lines() {
        eprintln!("fastpath: {line}");
    }
}
