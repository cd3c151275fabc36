//! The processes of devices that are this program itself. `linerate` starts them, people do not.

use std::path::PathBuf;

use anyhow::Result;
use dut::DutSpec;
use dut::program::{fastpath, forward};

use crate::Exit;

/// The device of a load test in user space.
#[derive(clap::Args)]
pub struct Forward {
    /// The device
    dut: DutSpec,
    /// Queues of each port
    #[arg(long)]
    queues: u16,
    /// The abstract sockets of port 0 and port 1
    #[arg(long, num_args = 2, required = true)]
    sockets: Vec<String>,
    /// The file of its counters
    #[arg(long)]
    counters: PathBuf,
}

/// The router of a load test.
#[derive(clap::Args)]
pub struct Route {
    /// The configuration, as text
    configuration: String,
    /// Rules of its access list, beside the last one, which permits everything
    #[arg(long)]
    rules: Option<fastpath::Rules>,
    /// Routes of its table
    #[arg(long)]
    routes: Option<usize>,
}

pub fn forward(args: &Forward) -> Result<Exit> {
    match forward::run(&args.dut, args.queues, &args.sockets, &args.counters)? {}
}

pub fn route(args: &Route) -> Result<Exit> {
    fastpath::run(&args.configuration, args.rules, args.routes)?;
    Ok(Exit::Done)
}
