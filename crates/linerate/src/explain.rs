//! `linerate explain`: why a device is no faster.

use anyhow::Result;

use crate::{Ending, explain_cost, explain_flamegraph};

#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    /// What a forwarded frame costs the device's core, at a low load, a middle one and saturation
    Cost(explain_cost::Args),
    /// In which functions the device's core spends its time under a steady load, as a drawing
    Flamegraph(explain_flamegraph::Args),
}

pub fn main(args: &Args) -> Result<Ending> {
    match &args.what {
        What::Cost(args) => explain_cost::main(args),
        What::Flamegraph(args) => explain_flamegraph::main(args),
    }
}
