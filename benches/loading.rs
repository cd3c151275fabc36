//! How long a million IPv4 routes take to come into a router, step by step, and how much memory a router takes that was
//! started with them: `cargo bench -p fastpath --bench loading [PART OF A ROW'S NAME]`, on an otherwise idle machine.
//! The rows of the kernel need root: they fill the table of a network namespace of their own. With another build's
//! program in `LINERATE_BEFORE`, a row has that, too.
//!
//! All rows take turns, so that each has its share of the machine's fast and slow phases; figures are medians.

#![allow(clippy::unwrap_used)] // a benchmark may end at its first error

#[path = "loading/daemon.rs"]
mod daemon;
#[path = "fib/tables.rs"]
#[allow(dead_code)] // destinations are of no use here
mod tables;

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::net::Ipv4Addr;
use std::path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fastpath::fib::{Capacity, Fib, NextHop, Prefix};
use fastpath::kernel::{Change, Hop as KernelHop, Importer, Path, RouteChange, Watcher};
use fastpath::router::{Hop, Router};
use nix::sched::{CloneFlags, unshare};
use nix::unistd::geteuid;
use wire::MacAddress;

use crate::daemon::Written;

const TURNS: usize = 5;
/// The kernel's index of the interface, where the kernel is not asked.
const INDEX: u32 = 7;
/// The variable that names the program of another build.
const BEFORE: &str = "LINERATE_BEFORE";

/// Routes: address, length and the number of their gateway.
type Routes = [(u32, u8, u32)];

/// What is measured, and how.
type Row = (&'static str, fn(&Routes) -> Measured);

/// What one turn of a row measures.
#[derive(Clone, Copy)]
struct Measured {
    seconds: f64,
    /// MB that a program has in memory, and had at most; `NAN` where there is none.
    resident: f64,
    most: f64,
}

impl From<Duration> for Measured {
    fn from(took: Duration) -> Self {
        Self { seconds: took.as_secs_f64(), resident: f64::NAN, most: f64::NAN }
    }
}

fn main() {
    let wanted = env::args().skip(1).find(|argument| !argument.starts_with('-')).unwrap_or_default();
    let mut routes = tables::ip4(false).routes;
    // Within these are the router's own network, and what nobody may send to.
    routes.retain(|(address, ..)| ![10, 127].contains(&(address >> 24)));
    let mut rows: Vec<Row> = vec![
        ("table alone", |routes| table(routes).into()),
        ("router", |routes| router(routes).into()),
        ("importer and router", |routes| importer(routes).into()),
        ("program, table of routes", |routes| program(Written::Table, routes)),
        ("program, table of routes, 250,000 of IPv6 besides", |routes| {
            program(Written::BothInATable, routes)
        }),
        ("program, [[route]]", |routes| program(Written::Configuration, routes)),
    ];
    if env::var_os(BEFORE).is_some() {
        rows.push(("program of another build, [[route]]", before));
    }
    if geteuid().is_root() {
        rows.push(("kernel's table, read", |routes| kernel_read(routes).into()));
        rows.push(("kernel's table, into a router", |routes| kernel_imported(routes).into()));
    } else {
        eprintln!("skipped: the rows of the kernel need root");
    }
    rows.retain(|(name, _)| name.contains(&wanted));
    if rows.iter().any(|(name, _)| name.starts_with("kernel")) {
        fill_the_kernels_table(&routes);
    }
    let mut figures = vec![Vec::new(); rows.len()];
    for _ in 0..TURNS {
        for (figures, (_, measure)) in figures.iter_mut().zip(&rows) {
            figures.push(measure(&routes));
        }
    }
    println!(
        "| {} routes | loaded, s | resident, MB | resident at most, MB |\n|---|---|---|---|",
        routes.len()
    );
    for ((name, _), figures) in rows.into_iter().zip(figures) {
        let median = |of: fn(&Measured) -> f64| {
            let mut values: Vec<f64> = figures.iter().map(of).collect();
            values.sort_by(f64::total_cmp);
            values[TURNS / 2]
        };
        let written =
            |megabytes: f64| if megabytes.is_nan() { "–".to_owned() } else { format!("{megabytes:.0}") };
        let (resident, most) = (median(|of| of.resident), median(|of| of.most));
        println!("| {name} | {:.2} | {} | {} |", median(|of| of.seconds), written(resident), written(most));
    }
}

/// The router of this build as a program.
fn program(written: Written, routes: &Routes) -> Measured {
    daemon::start(path::Path::new(env!("CARGO_BIN_EXE_fastpath")), written, routes)
}

/// That of another build, which may know no tables.
fn before(routes: &Routes) -> Measured {
    let program = env::var_os(BEFORE).unwrap();
    daemon::start(program.as_ref(), Written::Configuration, routes)
}

fn gateway(number: u32) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, 1 + number as u8)
}

/// A router with an interface, on whose network all gateways are, and who brings the kernel's routes into it.
fn made(index: u32) -> (Router, Importer) {
    let mut router = Router::new().unwrap();
    let number = router.add_device("lan", MacAddress([2, 0, 0, 0, 0, 1]), 1500).unwrap();
    router.add_address(number, [10, 0, 0, 1].into(), 24).unwrap();
    let mut importer = Importer::default();
    importer.join(index, number);
    (router, importer)
}

/// That all are there, and how long since.
fn loaded(router: &Router, routes: &Routes, started: Instant) -> Duration {
    let took = started.elapsed();
    let mut reader = router.ip4();
    // Of the longest prefixes, within which no others are.
    for &(address, _, number) in routes.iter().filter(|(_, length, _)| *length == 24).take(1000) {
        let index = reader.pass().lookup(address, 0).index();
        let hop = Hop::Neighbour(0, gateway(number).into());
        assert_eq!(router.forwarding().adjacencies[index as usize].hop, hop);
    }
    took
}

fn table(routes: &Routes) -> Duration {
    let mut fib = Fib::<u32>::new(Capacity::of::<u32>()).unwrap();
    let started = Instant::now();
    for &(address, length, number) in routes {
        fib.insert(Prefix::new(address, length).unwrap(), NextHop::new(number).unwrap()).unwrap();
    }
    started.elapsed()
}

fn router(routes: &Routes) -> Duration {
    let (mut router, _) = made(INDEX);
    let started = Instant::now();
    for &(address, length, number) in routes {
        let hop = Hop::Neighbour(0, gateway(number).into());
        router.add_route(Prefix::new(address, length).unwrap(), &[hop]).unwrap();
    }
    loaded(&router, routes, started)
}

fn importer(routes: &Routes) -> Duration {
    let hop = |number| KernelHop { interface: INDEX, gateway: Some(gateway(number).into()), weight: 1 };
    let paths: Vec<Arc<Path>> =
        (0..=tables::HOPS as u32).map(|number| Arc::new(Path::through(vec![hop(number)]))).collect();
    let change = |&(address, length, number): &(u32, u8, u32)| {
        let path = Some(Arc::clone(&paths[number as usize]));
        Change::Route4(RouteChange { prefix: Prefix::new(address, length).unwrap(), path })
    };
    let changes: Vec<Change> = routes.iter().map(change).collect();
    let (mut router, importer) = made(INDEX);
    let started = Instant::now();
    for change in &changes {
        importer.apply(change, &mut router).unwrap();
    }
    loaded(&router, routes, started)
}

/// Moves to a network namespace whose main table has the routes.
fn fill_the_kernels_table(routes: &Routes) {
    unshare(CloneFlags::CLONE_NEWNET).unwrap();
    let mut text = "link add lan type veth peer name far\nlink set far up\nlink set lan up\n".to_owned();
    text.push_str("address add 10.0.0.1/24 dev lan\n");
    for &(address, length, number) in routes {
        writeln!(text, "route add {}/{length} via {}", Ipv4Addr::from(address), gateway(number)).unwrap();
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), text).unwrap();
    let done = Command::new("ip").arg("-batch").arg(file.path()).status().unwrap();
    assert!(done.success(), "ip -batch fails: see above");
}

/// Hands every change to `each` until the tables were read.
fn follow(mut each: impl FnMut(&Change)) {
    let mut watcher = Watcher::start().unwrap();
    let mut read = false;
    while !read {
        for change in watcher.changes(Duration::from_secs(10)).unwrap() {
            read |= change == Change::Synchronised;
            each(&change);
        }
    }
}

fn kernel_read(routes: &Routes) -> Duration {
    let (mut count, started) = (0, Instant::now());
    follow(|change| count += usize::from(matches!(change, Change::Route4(_))));
    let took = started.elapsed();
    assert!(count >= routes.len());
    took
}

fn kernel_imported(routes: &Routes) -> Duration {
    let (mut router, importer) = made(nix::net::if_::if_nametoindex("lan").unwrap());
    let started = Instant::now();
    follow(|change| importer.apply(change, &mut router).unwrap());
    loaded(&router, routes, started)
}
