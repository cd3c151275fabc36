//! `linerate profile`: what can be sent, and what exactly a profile sends.

use anyhow::Result;
use traffic::{Endpoint, Endpoints};
use wire::{MacAddress, human};

use crate::Exit;
use crate::args::Traffic;

#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(clap::Subcommand)]
enum Action {
    /// List the built-in profiles and their tunables
    List,
    /// Show the first frames that a profile sends
    Show {
        #[command(flatten)]
        traffic: Traffic,
        /// How many frames
        #[arg(long, default_value_t = 10)]
        count: usize,
    },
}

pub fn main(args: &Args) -> Result<Exit> {
    match &args.action {
        None | Some(Action::List) => print!("{}", traffic::builtin::listing()),
        Some(Action::Show { traffic, count }) => show(traffic, *count)?,
    }
    Ok(Exit::Done)
}

/// So many of something, as `1 frame` or `251 frames`.
fn counted(count: u64, name: &str) -> String {
    format!("{} {name}{}", human::count(count), if count == 1 { "" } else { "s" })
}

fn show(traffic: &Traffic, count: usize) -> Result<()> {
    let profile = traffic.profile()?;
    let endpoint = |port| Endpoint {
        source: MacAddress([2, 0, 0, 0, port, 2]),
        destination: MacAddress([2, 0, 0, 0, port, 1]),
    };
    let table = profile.table(&Endpoints([endpoint(0), endpoint(1)]), traffic.directions());
    print!("{}", table.show(count));
    println!(
        "{}, {} in each direction, mean frame size {:.1} bytes",
        counted(table.rows.len() as u64, "frame"),
        counted(table.flows(0), "flow"),
        table.mean_frame_size(),
    );
    for note in profile.notes() {
        println!("{note}");
    }
    Ok(())
}
