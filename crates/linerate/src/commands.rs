//! The subcommands: one module for each, which reads its flags, calls and prints.

mod bench;
mod build_rate;
mod compare;
mod count;
mod device;
mod doctor;
mod explain;
mod export;
mod generate;
mod generator;
mod lab;
mod latency;
mod profile;
mod queues;
mod ramp;
mod remote;
mod replay;
mod report;
mod rfc2544;
mod saturate;
mod search;
mod self_test;
mod soak;
mod verify;

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::exit::Exit;

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
    Ramp(ramp::Args),
    /// Send at full rate, and see what emerges
    Saturate(saturate::Args),
    /// Search for the highest loads without loss (NDR) and with little (PDR)
    Search(search::Args),
    /// Measure the distribution of the latency at chosen loads
    Latency(latency::Args),
    /// Keep one load up for a long time, and see what goes wrong
    Soak(soak::Args),
    /// Run the benchmarking tests of RFC 2544 at each frame size
    Rfc2544(rfc2544::Args),
    /// Run a set of load tests against several devices, and compare them
    Bench(bench::Args),
    /// Generate traffic until told to stop, as pkt-gen does
    Gen(generate::Args),
    /// Replay a capture as it is, at its own pace or another, and keep what comes back
    Replay(replay::Args),
    /// Measure how fast a generator sends, ours or another program
    Generator(generator::Args),
    /// Find out how fast this machine builds frames, without sending them, as ipgen's -X
    BuildRate(build_rate::Args),
    /// Count what arrives at an interface
    Count(count::Args),
    /// Explain why a device is no faster
    Explain(explain::Args),
    /// Show which queues of an interface the packets take, and how evenly
    Queues(queues::Args),
    /// Show profiles, and the frames that they send
    Profile(profile::Args),
    /// Keep a lab of network namespaces open, and look inside
    Lab(lab::Args),
    /// Try drivers of devices that are other computers, without a load test
    Dut(remote::Args),
    /// Measure devices of known truth, and certify how far the tester is off
    Verify(verify::Args),
    /// Compare repeats of several configurations, and say what they prove
    Compare(compare::Args),
    /// Draw records as one HTML page
    Report(report::Args),
    /// Convert records for other programs
    Export(export::Args),
    /// Find out what the tester itself reaches, with a cable between its ports
    SelfTest(self_test::Args),
    /// Say what this machine can and cannot do, each with its remedy
    Doctor(doctor::Args),
    /// The device of a load test in user space, which starts it
    #[command(hide = true)]
    UserSpaceDevice(device::Forward),
    /// The router of a load test in user space, which starts it
    #[command(hide = true)]
    UserSpaceRouter(device::Route),
}

/// Does what `command` says.
///
/// # Errors
/// Why it could not be done, with the remedy.
pub fn run(command: &Command) -> Result<Exit> {
    match command {
        Command::Ramp(args) => ramp::main(args),
        Command::Saturate(args) => saturate::main(args),
        Command::Search(args) => search::main(args),
        Command::Latency(args) => latency::main(args),
        Command::Soak(args) => soak::main(args),
        Command::Rfc2544(args) => rfc2544::main(args),
        Command::Bench(args) => bench::main(args),
        Command::Gen(args) => generate::main(args),
        Command::Replay(args) => replay::main(args),
        Command::Generator(args) => generator::main(args),
        Command::BuildRate(args) => build_rate::main(args),
        Command::Count(args) => count::main(args),
        Command::Explain(args) => explain::main(args),
        Command::Queues(args) => queues::main(args),
        Command::Profile(args) => profile::main(args),
        Command::Lab(args) => lab::main(args),
        Command::Dut(args) => remote::main(args),
        Command::Verify(args) => verify::main(args),
        Command::Compare(args) => compare::main(args),
        Command::Report(args) => report::main(args),
        Command::Export(args) => export::main(args),
        Command::SelfTest(args) => self_test::main(args),
        Command::Doctor(args) => doctor::main(args),
        Command::UserSpaceDevice(args) => device::forward(args),
        Command::UserSpaceRouter(args) => device::route(args),
    }
}
