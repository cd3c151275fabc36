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
    /// What a forwarded frame costs the device's core, at a low load, a middle one and saturation
    Cost(cost::Args),
    /// What stands out in records of runs and why it matters, in sentences
    Findings(findings::Args),
    /// In which functions the device's core spends its time under a steady load, as a drawing
    Flamegraph(flamegraph::Args),
    /// Which queues of an interface the packets take, and how evenly
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
