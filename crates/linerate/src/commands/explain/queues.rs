//! `linerate explain queues`: which queues of an interface the packets take, and how evenly.

use std::fs::File;
use std::io::IsTerminal;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use explain::queues::{self, Reading, Usage};
use nix::net::if_::if_nametoindex;
use nix::sched::{CloneFlags, setns};
use report::terminal;
use serde_json::json;
use testbed::{progress, stop};
use wording::usage::misuse;

use crate::Exit;
use crate::args;

/// Where `ip netns` keeps its namespaces.
const NAMED: &str = "/run/netns";

#[derive(clap::Args)]
pub struct Args {
    /// The interface
    interface: String,
    /// How often to report
    #[arg(long, short, value_name = "TIME", default_value = "1s", value_parser = args::duration)]
    interval: Duration,
    /// How many intervals [default: on a terminal until Ctrl-C, else 1]
    #[arg(long, short, value_name = "N")]
    count: Option<u64>,
    /// The network namespace: a name of `ip netns`, or a path such as /proc/PID/ns/net
    #[arg(long, value_name = "NAME|PATH")]
    netns: Option<String>,
    /// Print each interval as a line of JSON on standard output
    #[arg(long)]
    json: bool,
}

pub fn main(args: &Args) -> Result<Exit> {
    if args.interval.is_zero() {
        return Err(misuse("in no time no packets pass: give an --interval above 0"));
    }
    if let Some(netns) = &args.netns {
        enter(netns)?;
    }
    let index = if_nametoindex(args.interface.as_str()).map_err(|_| {
        misuse(format!("there is no interface '{}' here: `ip link` lists those there are", args.interface))
    })?;
    let live = std::io::stderr().is_terminal() && !args.json;
    let intervals = args.count.or((!live).then_some(1));
    let stop = stop::flag()?;
    let mut view = View { interface: &args.interface, live, shown: 0, json: args.json, begun: false };
    let read = || Reading::take(&args.interface, index).map_err(|reason| anyhow!(reason));
    let (mut last, mut at) = (read()?, Instant::now());
    let mut done = 0;
    while !stop::is_set(&stop) && intervals.is_none_or(|intervals| done < intervals) {
        stop::sleep(&stop, args.interval.saturating_sub(at.elapsed()));
        let (now, ended) = (read()?, Instant::now());
        // A source that appears or goes, as when a driver is reset, begins anew.
        if now.source == last.source {
            view.show(&now.since(&last, (ended - at).as_secs_f64(), &queues::cores(index)));
            done += 1;
        }
        (last, at) = (now, ended);
    }
    Ok(Exit::Done)
}

/// Moves the calling thread, the only one so far, into a network namespace.
fn enter(name: &str) -> Result<()> {
    let path = if name.contains('/') { Path::new(name).to_owned() } else { Path::new(NAMED).join(name) };
    let file = File::open(&path)
        .map_err(|cause| misuse(format!("there is no network namespace {}: {cause}", path.display())))?;
    setns(file, CloneFlags::CLONE_NEWNET)
        .with_context(|| format!("cannot enter the network namespace {}; run as root", path.display()))
}

/// What is shown of each interval.
struct View<'a> {
    interface: &'a str,
    /// Whether the table is drawn again in place.
    live: bool,
    /// Lines that the last table took.
    shown: usize,
    json: bool,
    begun: bool,
}

impl View<'_> {
    fn show(&mut self, usage: &Usage) {
        if self.json {
            println!("{}", json!({ "interface": self.interface, "usage": usage }));
        } else if self.live {
            let table = terminal::queues(self.interface, usage, progress::colour());
            // Up over the last table, and away with what is below.
            let back = if self.shown > 0 { format!("\x1b[{}A\x1b[J", self.shown) } else { String::new() };
            eprint!("{back}{table}");
            self.shown = table.lines().count();
        } else if !self.begun {
            eprint!("{}", terminal::queues(self.interface, usage, false));
        } else {
            eprintln!("{}", terminal::queues_line(usage));
        }
        self.begun = true;
    }
}
