//! `linerate verify`: runs the tester against reference devices, and shows the certificate.

mod ceiling;

use anyhow::Result;
use testbed::progress::colour;
use testbed::{stop, verify};

use crate::Exit;

#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(subcommand)]
    what: Option<What>,
    /// The short form, in about 25 s: one capacity of 200 to 500 kpps instead of ten of 30 to 900
    /// kpps, and shorter loads
    #[arg(long)]
    quick: bool,
    /// Seed of the capacities, which are drawn at random [default: from the clock]
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
    /// Print the result as JSON on standard output
    #[arg(long)]
    json: bool,
}

#[derive(clap::Subcommand)]
enum What {
    /// Measure the tester's own maximum rate and its latency, with a cable between its ports (loopback)
    Ceiling(Box<ceiling::Args>),
}

pub fn main(args: &Args) -> Result<Exit> {
    match &args.what {
        Some(What::Ceiling(args)) => ceiling::main(args),
        None => certify(args),
    }
}

/// Measures reference devices.
fn certify(args: &Args) -> Result<Exit> {
    let certificate = verify::certify(args.quick, args.seed, stop::flag()?)?;
    eprintln!("\n{}", report::terminal::certificate(&certificate, colour()));
    if args.json {
        println!("{}", serde_json::to_string_pretty(&certificate)?);
    }
    Ok(if certificate.holds() { Exit::Done } else { Exit::Failed })
}
