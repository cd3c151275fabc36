//! `linerate explain`: why a device is no faster.

mod cost;
mod findings;
mod flamegraph;
mod queues;

use anyhow::Result;

use crate::Exit;

#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    /// Measure what a forwarded frame costs the device's core, at a low load, a middle one and saturation
    Cost(cost::Args),
    /// Say what stands out in records of runs, and why it matters
    Findings(findings::Args),
    /// Draw a flame graph: the functions in which the device's core spends its time under a steady load
    Flamegraph(flamegraph::Args),
    /// Show which queues of an interface the packets take, and how evenly
    Queues(queues::Args),
}

pub fn main(args: &Args) -> Result<Exit> {
    match &args.what {
        What::Cost(args) => cost::main(args),
        What::Findings(args) => findings::main(args),
        What::Flamegraph(args) => flamegraph::main(args),
        What::Queues(args) => queues::main(args),
    }
}
