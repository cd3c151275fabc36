//! `linerate profile`: what can be sent, what exactly a profile sends, and how a card would spread it over its queues.

use anyhow::Result;
use clap::ValueEnum;
use traffic::spread::{RssFields, RssKey};
use traffic::{Directions, Endpoint, Endpoints, FrameTable};
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
        #[command(flatten)]
        forecast: Forecast,
    },
}

/// How a card would spread the frames over its queues.
#[derive(clap::Args)]
struct Forecast {
    /// Show how a card with so many receive queues would spread the frames (RSS by Toeplitz)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=128))]
    queues: Option<u8>,
    /// The key of the hash
    #[arg(long, value_name = "KEY", default_value = "microsoft", requires = "queues")]
    rss_key: Key,
    /// What is hashed: addresses and ports, or addresses alone, as many cards do with UDP by default
    #[arg(long, value_name = "FIELDS", default_value = "ports", requires = "queues")]
    rss_fields: Fields,
}

#[derive(Clone, Copy, ValueEnum)]
enum Key {
    Microsoft,
    Symmetric,
}

#[derive(Clone, Copy, ValueEnum)]
enum Fields {
    Ports,
    Addresses,
}

impl Forecast {
    /// What becomes of the frames of `table` in each of its directions.
    fn show(&self, table: &FrameTable, directions: Directions) {
        let Some(queues) = self.queues else { return };
        let key = match self.rss_key {
            Key::Microsoft => RssKey::Microsoft,
            Key::Symmetric => RssKey::Symmetric,
        };
        let fields = match self.rss_fields {
            Fields::Ports => RssFields::Ports,
            Fields::Addresses => RssFields::Addresses,
        };
        let ways: &[u8] = if directions == Directions::Both { &[0, 1] } else { &[0] };
        for way in ways {
            println!("port {way} -> port {}:", 1 - way);
            print!("{}", table.spread(*way, queues.into(), key, fields).show());
        }
    }
}

pub fn main(args: &Args) -> Result<Exit> {
    match &args.action {
        None | Some(Action::List) => print!("{}", traffic::builtin::listing()),
        Some(Action::Show { traffic, count, forecast }) => show(traffic, *count, forecast)?,
    }
    Ok(Exit::Done)
}

/// So many of something, as `1 frame` or `251 frames`.
fn counted(count: u64, name: &str) -> String {
    format!("{} {name}{}", human::count(count), if count == 1 { "" } else { "s" })
}

fn show(traffic: &Traffic, count: usize, forecast: &Forecast) -> Result<()> {
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
    forecast.show(&table, traffic.directions());
    for note in profile.notes() {
        println!("{note}");
    }
    Ok(())
}
