//! How fast and how evenly this machine generates over a cable without a device, and what counting what arrives costs:
//! `cargo bench -p engine --bench cable -- ENGINE…`, as root, on an otherwise idle machine. Engines are `xdp` (the
//! default), `af_xdp` and `af_xdp-sockets`; `af_xdp-generic` and `af_xdp-generic-sockets` use interfaces without XDP.

#![allow(clippy::unwrap_used)] // a benchmark may end at its first error

#[path = "../crates/engine/tests/common/mod.rs"]
mod common;

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use engine::af_xdp::{AfXdpEngine, Counting, Options};
use engine::user_space::Crew;
use engine::{Engine, Load};
use traffic::FrameTable;

const RATES: [f64; 8] = [1e3, 1e4, 1e5, 3e5, 5e5, 1e6, 2e6, 4e6];
const TRIAL: Duration = Duration::from_secs(3);
const DRAIN: Duration = Duration::from_millis(100);
/// The core that generates.
const CORE: usize = 0;

fn main() {
    let named: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let named = if named.is_empty() { vec!["xdp".to_owned()] } else { named };
    for name in named {
        let table = common::table(&[64], 251, 1);
        let Some(mut engine) = start(&name, &table) else { return };
        common::receive_on(std::thread::available_parallelism().unwrap().get() - 1);
        put_receiving_first();
        println!("\n{name}\n");
        measure(&mut *engine);
    }
}

/// Has the ports' threads receive before all ordinary processes: where they starve, frames find a full queue.
fn put_receiving_first() {
    for task in tasks("/proc", &["napi/port"]) {
        let number = task.file_name().and_then(|name| name.to_str()?.parse().ok()).unwrap();
        // SAFETY: a system call without pointers.
        unsafe { nix::libc::setpriority(nix::libc::PRIO_PROCESS, number, -20) };
    }
}

/// The engine of this name over a cable of its own.
fn start(name: &str, table: &FrameTable) -> Option<Box<dyn Engine>> {
    let mut ports = common::cable()?;
    if name == "xdp" {
        return Some(Box::new(common::start(&ports, table)));
    }
    if name.contains("generic") {
        // An end of a veth has no thread to receive on without either GRO or XDP.
        ["port0", "port1"].iter().for_each(|port| common::run(&format!("ethtool -K {port} gro on")));
        ports = ports.map(|port| common::without_xdp(&port));
    }
    let counting = if name.ends_with("sockets") { Counting::Sockets } else { Counting::Cheaper };
    let options = Options { counting, ..Options::default() };
    let stop = Arc::new(AtomicBool::new(false));
    let crew = Crew { send_cores: &[CORE], receive_cores: &[], table, stop };
    let engine = AfXdpEngine::start(&[&ports[0], &ports[1]], None, options, &crew).unwrap();
    engine.modes_in_words().iter().for_each(|mode| eprintln!("{mode}"));
    Some(Box::new(engine))
}

/// Offers the highest rate, the rates below 80 % of it, and those 80 %.
fn measure(engine: &mut dyn Engine) {
    println!(
        "| load | offered against intended | unsent | forwarded | late p50 | late p99 | latency mean | receiving | \
         worker waited | stolen |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    let highest = (0..3).map(|_| row(engine, Load::Max)).fold(0.0, f64::max);
    for rate in RATES.into_iter().filter(|rate| *rate < 0.8 * highest).chain([0.8 * highest]) {
        row(engine, Load::Rate(rate));
    }
}

/// One trial and its line. Says how many frames left in a second.
fn row(engine: &mut dyn Engine, load: Load) -> f64 {
    let before = (engine.totals().unwrap().remove(0).lateness, Times::now());
    let interval = engine.begin(load).unwrap();
    engine.wait(TRIAL).unwrap();
    engine.begin(Load::Idle).unwrap();
    let after = Times::now();
    engine.wait(DRAIN).unwrap();
    let counts = engine.counts(interval).unwrap()[0];
    let late = engine.totals().unwrap().remove(0).lateness.since(&before.0);
    let percentile = |percent| late.percentile(percent).map_or("–".into(), |ns| format!("{ns} ns"));
    let seconds = TRIAL.as_secs_f64();
    println!(
        "| {load:?} | {} ({:+.4} %) | {} | {:.3} Mpps | {} | {} | {:.0} ns | {:.0} ns | {:.1} ms | {:.0} ms |",
        counts.offered,
        (counts.offered as f64 / counts.intended - 1.0) * 100.0,
        counts.unsent,
        counts.forwarded as f64 / seconds / 1e6,
        percentile(50.0),
        percentile(99.0),
        counts.latency_sum as f64 / counts.forwarded.max(1) as f64,
        (after.receiving - before.1.receiving) * 1e9 / counts.forwarded.max(1) as f64,
        (after.waited - before.1.waited) * 1e3,
        (after.stolen - before.1.stolen) * 1e3,
    );
    counts.offered as f64 / seconds
}

/// Seconds since some time ago.
struct Times {
    /// That the ports' kernel threads received.
    receiving: f64,
    /// That the worker could have run, and another task did.
    waited: f64,
    /// That the host took from the worker's core.
    stolen: f64,
}

impl Times {
    fn now() -> Self {
        let ticks: f64 = fs::read_to_string("/proc/stat")
            .unwrap()
            .lines()
            .find_map(|line| line.strip_prefix(&format!("cpu{CORE} "))?.split(' ').nth(7)?.parse().ok())
            .unwrap();
        Self {
            receiving: of_tasks("/proc", &["napi/port"], 0),
            waited: of_tasks("/proc/self/task", &["generate-", "af_xdp-"], 1),
            stolen: ticks / 100.0,
        }
    }
}

/// The directories of all tasks in `directory` whose name begins so.
fn tasks(directory: &str, names: &[&str]) -> impl Iterator<Item = PathBuf> {
    let tasks = fs::read_dir(directory).unwrap().flatten().map(|task| task.path());
    tasks.filter(|task| {
        let name = fs::read_to_string(task.join("comm")).unwrap_or_default();
        names.iter().any(|beginning| name.starts_with(beginning))
    })
}

/// Word `word` of their `schedstat` (ran, waited), in seconds.
fn of_tasks(directory: &str, names: &[&str], word: usize) -> f64 {
    let nanoseconds = tasks(directory, names).filter_map(|task| {
        let text = fs::read_to_string(task.join("schedstat")).ok()?;
        text.split_whitespace().nth(word)?.parse::<f64>().ok()
    });
    nanoseconds.sum::<f64>() / 1e9
}
