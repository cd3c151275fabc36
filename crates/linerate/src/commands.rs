//! The subcommands: one module for each, which reads its flags, calls and prints.

mod bench;
mod compare;
mod count;
mod device;
mod doctor;
mod explain;
mod export;
mod generator;
mod lab;
mod latency;
mod profile;
mod ramp;
mod remote;
mod report;
mod rfc2544;
mod saturate;
mod search;
mod send;
mod soak;
mod verify;

use anyhow::Result;
use clap::{CommandFactory, Parser, Subcommand};

use crate::exit::Exit;
use crate::run::LoadTest;

/// Finds out how fast routers really forward packets.
///
/// Linerate sends traffic through a device under test (DUT) between two ports and counts what
/// comes back. The device is one of its own (--dut, in network namespaces on this machine) or
/// yours, between two interfaces (--ports A,B).
#[derive(Parser)]
#[command(version, propagate_version = true, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub enum Command {
    /// Raise the load step by step to line rate, and find where frames begin to be lost
    Ramp(LoadTest<ramp::Args>),
    /// Send at full rate, and see what emerges
    Saturate(LoadTest<saturate::Args>),
    /// Search for the highest loads without loss (NDR) and with little (PDR)
    Search(LoadTest<search::Args>),
    /// Measure the distribution of the latency at chosen loads
    Latency(LoadTest<latency::Args>),
    /// Keep one load up for a long time, and see what goes wrong
    Soak(LoadTest<soak::Args>),
    /// Run the benchmarking tests of RFC 2544 at each frame size
    Rfc2544(rfc2544::Args),
    /// Run a set of load tests against several devices, and compare them
    Bench(bench::Args),
    /// Send a profile until told to stop, or a capture as it is
    Send(Box<send::Args>),
    /// Measure how fast a generator sends, or builds frames: this one or another program
    Generator(generator::Args),
    /// Count what arrives at an interface
    Count(count::Args),
    /// Explain why a device is no faster: cost, flamegraph, queues
    Explain(explain::Args),
    /// Show profiles, and the frames that they send
    Profile(profile::Args),
    /// Keep a lab of network namespaces open, and look inside
    Lab(lab::Args),
    /// Try drivers of devices that are reached by ssh
    Remote(remote::Args),
    /// Certify how far the tester is off, and find its own ceiling
    Verify(verify::Args),
    /// Compare repeats of several configurations, and say what they prove
    Compare(compare::Args),
    /// Draw records as one HTML page
    Report(report::Args),
    /// Convert records for other programs
    Export(export::Args),
    /// Say what this machine can and cannot do, each with its remedy
    Doctor(doctor::Args),
    /// The device of a load test in user space, which starts it
    #[command(hide = true)]
    UserSpaceDevice(device::Forward),
    /// The router of a load test in user space, which starts it
    #[command(hide = true)]
    UserSpaceRouter(device::Route),
}

/// The subcommands as the help lists them.
const GROUPS: [(&str, &[&str]); 4] = [
    ("Measure", &["ramp", "saturate", "search", "latency", "soak", "rfc2544", "bench"]),
    ("Traffic", &["send", "count", "profile"]),
    ("Results", &["compare", "report", "export"]),
    ("Set-up", &["lab", "remote", "doctor", "verify", "explain", "generator"]),
];

/// The command line, whose help lists the subcommands in groups.
pub fn command() -> clap::Command {
    let command = Cli::command();
    let mut template = "{about-with-newline}\n{usage-heading} {usage}\n".to_owned();
    for (group, names) in GROUPS {
        template += &format!("\n{group}:\n");
        for name in names {
            let about = command.find_subcommand(name).and_then(clap::Command::get_about);
            template += &format!("  {name:10} {}\n", about.map(ToString::to_string).unwrap_or_default());
        }
    }
    command.help_template(
        template
            + "\nOptions:\n{options}\n\n'linerate COMMAND -h' shows the flags that most people need, \
        --help all of them.",
    )
}

/// Does what `command` says.
///
/// # Errors
/// Why it could not be done, with the remedy.
pub fn run(command: &Command) -> Result<Exit> {
    match command {
        Command::Ramp(test) => test.main(),
        Command::Saturate(test) => test.main(),
        Command::Search(test) => test.main(),
        Command::Latency(test) => test.main(),
        Command::Soak(test) => test.main(),
        Command::Rfc2544(args) => rfc2544::main(args),
        Command::Bench(args) => bench::main(args),
        Command::Send(args) => send::main(args),
        Command::Generator(args) => generator::main(args),
        Command::Count(args) => count::main(args),
        Command::Explain(args) => explain::main(args),
        Command::Profile(args) => profile::main(args),
        Command::Lab(args) => lab::main(args),
        Command::Remote(args) => remote::main(args),
        Command::Verify(args) => verify::main(args),
        Command::Compare(args) => compare::main(args),
        Command::Report(args) => report::main(args),
        Command::Export(args) => export::main(args),
        Command::Doctor(args) => doctor::main(args),
        Command::UserSpaceDevice(args) => device::forward(args),
        Command::UserSpaceRouter(args) => device::route(args),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_lists_every_subcommand_once_and_fits_a_screen() {
        let mut listed: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        let command = Cli::command();
        let shown = command.get_subcommands().filter(|command| !command.is_hide_set());
        let mut there: Vec<&str> = shown.map(clap::Command::get_name).collect();
        listed.sort_unstable();
        there.sort_unstable();
        assert_eq!(listed, there);
        let help = super::command().render_help().to_string();
        assert!(help.lines().count() <= 40, "{help}");
    }

    #[test]
    fn the_short_help_of_a_ramp_fits_a_screen() {
        let mut ramp = super::command().find_subcommand("ramp").unwrap().clone();
        let help = ramp.render_help().to_string();
        assert!(help.lines().count() <= 40, "{help}");
        assert!(help.contains("--dut") && !help.contains("--receive-cores"), "{help}");
    }
}
