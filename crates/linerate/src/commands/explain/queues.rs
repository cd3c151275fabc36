//! `linerate explain queues`: which queues of an interface the packets take, and how evenly; here, or on another
//! computer, core by core too.

use std::fs::File;
use std::io::IsTerminal;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use explain::queues::Usage;
use nix::sched::{CloneFlags, setns};
use report::terminal;
use serde_json::json;
use testbed::queue_use::Queues;
use testbed::{progress, stop};
use wording::usage::misuse;

use crate::Exit;
use crate::args;

/// Where `ip netns` keeps its namespaces.
const NAMED: &str = "/run/netns";

#[derive(clap::Args)]
pub struct Args {
    /// The interface
    #[arg(required_unless_present = "dut_host")]
    interface: Option<String>,
    /// Look at the ports of a device, as ssh takes it; nothing is changed there
    #[arg(long, value_name = "[USER@]HOST", requires = "dut_driver", conflicts_with_all = ["interface", "netns"])]
    dut_host: Option<String>,
    /// The device's driver: linux, freebsd, vpp, or a TOML file
    #[arg(long, value_name = "DRIVER", requires = "dut_host")]
    dut_driver: Option<String>,
    /// An option of the driver; port0 and port1 are needed
    #[arg(long = "dut-option", value_name = "KEY=VALUE", value_parser = args::key_value, requires = "dut_host")]
    dut_options: Vec<(String, String)>,
    /// Use sudo on the device
    #[arg(long, requires = "dut_host")]
    dut_sudo: bool,
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
        return Err(misuse("--interval must be greater than 0"));
    }
    if let Some(netns) = &args.netns {
        enter(netns)?;
    }
    let mut queues = match (&args.dut_host, &args.dut_driver, &args.interface) {
        (Some(host), Some(driver), _) => Queues::there(host, driver, &args.dut_options, args.dut_sudo)?,
        (_, _, interface) => Queues::here(interface.as_deref().unwrap_or_default())?,
    };
    let live = std::io::stderr().is_terminal() && !args.json;
    let intervals = args.count.or((!live).then_some(1));
    let stop = stop::flag()?;
    let mut view = View { live, shown: 0, json: args.json, begun: false };
    let (mut last, mut at) = (queues.read()?, Instant::now());
    let mut done = 0;
    while !stop::is_set(&stop) && intervals.is_none_or(|intervals| done < intervals) {
        stop::sleep(&stop, args.interval.saturating_sub(at.elapsed()));
        let (now, ended) = (queues.read()?, Instant::now());
        let usages = queues.since(&last, &now, (ended - at).as_secs_f64());
        if !usages.is_empty() {
            view.show(&usages);
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
struct View {
    /// Whether the table is drawn again in place.
    live: bool,
    /// Lines that the last table took.
    shown: usize,
    json: bool,
    begun: bool,
}

impl View {
    fn show(&mut self, usages: &[(String, Usage)]) {
        if self.json {
            usages
                .iter()
                .for_each(|(name, usage)| println!("{}", json!({ "interface": name, "usage": usage })));
        } else if self.live {
            let table = usages.iter().map(|(name, usage)| terminal::queues(name, usage, progress::colour()));
            let table = table.collect::<String>();
            // Up over the last table, and away with what is below.
            let back = if self.shown > 0 { format!("\x1b[{}A\x1b[J", self.shown) } else { String::new() };
            eprint!("{back}{table}");
            self.shown = table.lines().count();
        } else if !self.begun {
            usages.iter().for_each(|(name, usage)| eprint!("{}", terminal::queues(name, usage, false)));
        } else {
            let line = |(name, usage): &(String, Usage)| match usages.len() {
                1 => terminal::queues_line(usage),
                _ => format!("{name}: {}", terminal::queues_line(usage)),
            };
            usages.iter().for_each(|usage| eprintln!("{}", line(usage)));
        }
        self.begun = true;
    }
}
