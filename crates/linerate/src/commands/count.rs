//! `linerate count`: what arrives at a port or two, until told to stop.

use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use engine::listening::Listener;
use engine::{Error, Totals};
use lab::holder;
use serde_json::{Value, json};
use testbed::counting::Counting;
use testbed::stop;
use testbed::target::EngineName;
use wire::human;
use wording::usage::misuse;

use crate::Exit;
use crate::args;

#[derive(clap::Args)]
#[command(group = clap::ArgGroup::new("place").args(["port", "ports", "port0", "lab"]).required(true).multiple(true))]
pub struct Args {
    /// One port: an interface, or with --engine memif or dpdk a port of user space. Frames of Linerate end there; at
    /// an interface all others go on to the kernel
    port: Option<String>,
    /// Two interfaces, one for each direction
    #[arg(long, value_name = "A,B", value_delimiter = ',', num_args = 1, conflicts_with_all = ["port", "port0"])]
    ports: Option<Vec<String>>,
    /// Two ports of user space, as in memif:socket=/run/memif.sock,role=server or net_af_packet0,iface=eth1
    #[arg(long, value_name = "DEVICE", requires = "port1", conflicts_with = "port")]
    port0: Option<String>,
    /// Port 1 in user space
    #[arg(long, value_name = "DEVICE", requires = "port0")]
    port1: Option<String>,
    /// In an open lab (`linerate lab up NAME`): at its two ports where none is named
    #[arg(long, value_name = "NAME")]
    lab: Option<String>,
    /// What receives: xdp in the kernel; af_xdp by AF_XDP sockets; dpdk or memif in user space; auto is memif for a
    /// memif, else xdp
    #[arg(long, value_name = "ENGINE", default_value = "auto")]
    engine: EngineName,
    /// Cores that receive, one worker each, which share the queues of each port: not for xdp, which counts where the
    /// card's interrupts are served
    #[arg(long, value_name = "CORE,…", value_delimiter = ',', default_value = "0", hide_short_help = true)]
    cores: Vec<usize>,
    /// Twice: let DPDK take an interface even if it carries the default route or this login
    #[arg(long, action = clap::ArgAction::Count, hide_short_help = true)]
    force: u8,
    /// How long to count [default: until Ctrl-C]
    #[arg(long, value_name = "TIME", value_parser = args::duration)]
    duration: Option<Duration>,
    /// How often to report
    #[arg(long, short, value_name = "TIME", default_value = "1s", value_parser = args::duration)]
    interval: Duration,
    /// Print a summary as JSON on standard output
    #[arg(long)]
    json: bool,
}

/// How often it is asked whether frames are still counted.
const LOOK: Duration = Duration::from_millis(200);

pub fn main(args: &Args) -> Result<Exit> {
    let stop = stop::flag()?;
    let opened = args.lab.as_deref().map(holder::tester).transpose().map_err(lab::Error::from)?;
    if args.ports.as_ref().is_some_and(|ports| ports.len() != 2) {
        return Err(misuse("--ports takes two interfaces, as in --ports eth1,eth2"));
    }
    let named = args.port0.iter().chain(&args.port1).chain(&args.port).chain(args.ports.iter().flatten());
    let mut ports: Vec<String> = named.cloned().collect();
    if let (Some((_, those)), true) = (&opened, ports.is_empty()) {
        ports.clone_from(those);
    }
    let counting = Counting {
        ports,
        namespace: opened.as_ref().map(|(namespace, _)| namespace),
        engine: args.engine,
        cores: args.cores.clone(),
        force: args.force,
    };
    let mut listener = counting.start()?;
    if let Some(why) = counting.why() {
        eprintln!("engine: {why}");
    }
    let clock = Instant::now();
    let (mut last, mut at, mut failure) = (read(&*listener, &counting.ports)?, Duration::ZERO, None);
    while failure.is_none()
        && !stop::is_set(&stop)
        && args.duration.is_none_or(|duration| clock.elapsed() < duration)
    {
        let left = args.duration.map_or(args.interval, |duration| duration.saturating_sub(clock.elapsed()));
        let end = clock.elapsed() + args.interval.min(left);
        while failure.is_none() && !stop::is_set(&stop) && clock.elapsed() < end {
            stop::sleep(&stop, LOOK.min(end.saturating_sub(clock.elapsed())));
            failure = listener.check().err();
        }
        let (now, elapsed) = (read(&*listener, &counting.ports)?, clock.elapsed());
        for (now, last) in now.iter().zip(&last) {
            eprintln!("{}{}", now.prefix(counting.ports.len()), now.line(last, (elapsed - at).as_secs_f64()));
        }
        (last, at) = (now, elapsed);
    }
    let elapsed = clock.elapsed().as_secs_f64();
    last.iter().for_each(|port| eprint!("{}", port.summary(counting.ports.len(), elapsed)));
    if args.json {
        println!("{}", summary(listener.engine(), &last, elapsed, failure.as_ref()));
    }
    // A port that was there when counting began is not wrongly named: the run failed, whatever went wrong.
    failure.map_or(Ok(Exit::Done), |failure| Err(anyhow!("{failure}")))
}

/// What arrived at one port since the start.
struct Arrived {
    port: String,
    totals: Totals,
    /// Frames that found no room, and are not in the totals.
    missed: u64,
}

/// What arrived at each of `ports`.
fn read(listener: &dyn Listener, ports: &[String]) -> Result<Vec<Arrived>, Error> {
    let arrived = |(number, port): (usize, &String)| {
        Ok(Arrived { port: port.clone(), totals: listener.totals(number)?, missed: listener.missed(number)? })
    };
    ports.iter().enumerate().map(arrived).collect()
}

impl Arrived {
    /// Frames of Linerate, whichever port they left by.
    fn ours(&self) -> u64 {
        self.totals.forwarded + self.totals.returned
    }

    /// Which port a line is of, where there are several.
    fn prefix(&self, ports: usize) -> String {
        if ports > 1 { format!("{}: ", self.port) } else { String::new() }
    }

    fn line(&self, last: &Self, seconds: f64) -> String {
        let rate = |now: u64, last: u64| human::pps(now.saturating_sub(last) as f64 / seconds.max(1e-9));
        let latency = self.totals.latency.since(&last.totals.latency);
        let latency = latency.percentile(50.0).map_or(String::new(), |p50| {
            let p99 = latency.percentile(99.0).unwrap_or(p50);
            format!(", latency p50 {:.1} µs, p99 {:.1} µs", p50 as f64 / 1e3, p99 as f64 / 1e3)
        });
        let others = rate(self.totals.foreign, last.totals.foreign);
        format!("{} and {others} others{latency}", rate(self.ours(), last.ours()))
    }

    fn summary(&self, ports: usize, seconds: f64) -> String {
        let prefix = self.prefix(ports);
        let mut text = format!(
            "{prefix}counted {} frames of Linerate and {} others in {seconds:.2} s; {} duplicate, {} reordered\n",
            human::count(self.ours()),
            human::count(self.totals.foreign),
            human::count(self.totals.duplicates),
            human::count(self.totals.reordered),
        );
        if self.missed > 0 {
            let missed = human::count(self.missed);
            text +=
                &format!("{prefix}the tester had no room for {missed} that arrived: they are not counted\n");
        }
        text
    }

    fn json(&self) -> Value {
        let Totals { foreign, duplicates, reordered, latency, .. } = &self.totals;
        json!({
            "port": self.port,
            "frames": self.ours(),
            "foreign": foreign,
            "duplicates": duplicates,
            "reordered": reordered,
            "missed": self.missed,
            "latency_p50_ns": latency.percentile(50.0),
            "latency_p99_ns": latency.percentile(99.0),
        })
    }
}

/// All ports together, and each.
fn summary(engine: &str, ports: &[Arrived], elapsed: f64, failure: Option<&Error>) -> Value {
    let mut all = Arrived { port: String::new(), totals: Totals::default(), missed: 0 };
    for Arrived { totals, missed, .. } in ports {
        all.totals.forwarded += totals.forwarded;
        all.totals.returned += totals.returned;
        all.totals.foreign += totals.foreign;
        all.totals.duplicates += totals.duplicates;
        all.totals.reordered += totals.reordered;
        all.totals.latency.add(&totals.latency);
        all.missed += missed;
    }
    let mut summary = all.json();
    if let Value::Object(fields) = &mut summary {
        fields.remove("port");
        fields.insert("engine".to_owned(), engine.into());
        fields.insert("elapsed_s".to_owned(), elapsed.into());
        fields.insert("failure".to_owned(), failure.map(ToString::to_string).into());
        fields.insert("ports".to_owned(), ports.iter().map(Arrived::json).collect());
    }
    summary
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrived(port: &str, forwarded: u64, returned: u64) -> Arrived {
        let totals = Totals { forwarded, returned, foreign: 1, ..Totals::default() };
        Arrived { port: port.to_owned(), totals, missed: 2 }
    }

    #[test]
    fn two_ports_are_told_apart_and_added_up() {
        let ports = [arrived("eth1", 3, 1), arrived("eth2", 5, 0)];
        let failure = Error::Failed("eth1 vanished".to_owned());
        let summary = summary("af_xdp", &ports, 2.0, Some(&failure));
        assert_eq!(
            (&summary["frames"], &summary["foreign"], &summary["missed"]),
            (&9.into(), &2.into(), &4.into())
        );
        assert_eq!(
            (&summary["ports"][1]["port"], &summary["ports"][1]["frames"]),
            (&"eth2".into(), &5.into())
        );
        assert_eq!((&summary["engine"], &summary["failure"]), (&"af_xdp".into(), &"eth1 vanished".into()));
        let told = ports[0].summary(2, 2.0);
        assert!(told.starts_with("eth1: counted 4 frames of Linerate and 1 others"), "{told}");
        assert!(told.contains("no room for 2"), "{told}");
        assert!(ports[0].summary(1, 2.0).starts_with("counted 4"));
    }
}
