//! `linerate build-rate`: how fast this machine builds frames without sending them, as ipgen's -X.

use std::time::Duration;

use anyhow::Result;
use rivals::build_rate::{Place, Wanted, measure, show};
use testbed::stop;
use traffic::IpVersion;
use traffic::tunable::{Size, Vm};

use crate::{Exit, args};

#[derive(clap::Args)]
pub struct Args {
    /// Frame sizes in bytes with FCS [default: 64,128,256,512,1024,1280,1518,4096,9216]
    #[arg(long, value_name = "SIZE,…", value_delimiter = ',')]
    sizes: Vec<Size>,
    /// How flows vary: none, var1, var2, random or tuple
    #[arg(long, default_value = "var2")]
    vm: Vm,
    /// IP version
    #[arg(long, default_value = "4")]
    ip: IpVersion,
    /// The cores that build: figures are of the first one, the first two, and so on [default: all]
    #[arg(long, value_name = "CORE,…", value_delimiter = ',')]
    cores: Vec<usize>,
    /// Where frames go: memory, memif, net_null or net_memif [default: all that this program was built for]
    #[arg(long, value_name = "PLACE,…", value_delimiter = ',')]
    onto: Vec<Place>,
    /// How long each figure is measured, up to a minute
    #[arg(long, value_name = "TIME", default_value = "200ms", value_parser = args::duration)]
    duration: Duration,
    /// Print the figures as JSON on standard output
    #[arg(long)]
    json: bool,
}

pub fn main(args: &Args) -> Result<Exit> {
    let wanted = Wanted {
        sizes: args.sizes.clone(),
        flows: args.vm,
        ip: args.ip,
        cores: args.cores.clone(),
        onto: args.onto.clone(),
        duration: args.duration,
    };
    let Some(found) = measure(&wanted, &*stop::flag()?)? else { return Ok(Exit::Failed) };
    eprint!("{}", show(&found.figures));
    found.notes.iter().for_each(|note| eprintln!("{note}"));
    if args.json {
        println!("{}", serde_json::to_string_pretty(&found.figures)?);
    }
    Ok(Exit::Done)
}
