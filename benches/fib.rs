//! Tables of routes as large as the Internet's, ours beside others:
//! `cargo bench -p fastpath --features dpdk --bench fib [PART OF A ROW'S NAME]`, on an otherwise idle
//! machine. Without the feature, the rows of DPDK are missing.
//!
//! Each row is a process of its own, so that its memory is its own, and all rows take turns, so that
//! each has its share of the machine's fast and slow phases. Figures are medians of the turns.

#![allow(clippy::unwrap_used)] // a benchmark may end at its first error

#[cfg(feature = "dpdk")]
#[path = "fib/dpdk_tables.rs"]
mod dpdk_tables;
#[path = "fib/pages.rs"]
mod pages;
#[path = "fib/rivals.rs"]
mod rivals;
#[path = "fib/tables.rs"]
mod tables;

use std::collections::BTreeMap;
use std::env;
use std::hint::black_box;
use std::process::Command;
use std::time::{Duration, Instant};

use fastpath::fib::Address;
use stats::random::Random;

use crate::rivals::Rival;
use crate::tables::Table;

const TURNS: usize = 3;
/// How often a turn looks all destinations up.
const ROUNDS: usize = 5;
/// How long a turn withdraws routes and inserts them again.
const UPDATING: Duration = Duration::from_millis(200);
/// The row that a process of this benchmark measures.
const ROW: &str = "LINERATE_FIB_ROW";

/// What one turn measures.
const COLUMNS: [&str; 7] = [
    "loaded, s",
    "memory, MB",
    "process at most, MB",
    "bulk, M/s",
    "bulk, clocks",
    "one after another, ns",
    "updates, k/s",
];

fn main() {
    if let Ok(row) = env::var(ROW) {
        return measure(&row);
    }
    let wanted = env::args().skip(1).find(|argument| !argument.starts_with('-')).unwrap_or_default();
    let rows: Vec<String> = rivals::rows().into_iter().filter(|row| row.contains(&wanted)).collect();
    let mut figures: BTreeMap<&str, Vec<Vec<f64>>> = BTreeMap::new();
    for _ in 0..TURNS {
        for row in &rows {
            figures.entry(row).or_default().push(turn(row));
        }
    }
    println!("| table | {} |\n|---|{}", COLUMNS.join(" | "), "---|".repeat(COLUMNS.len()));
    let mut sums: BTreeMap<&str, f64> = BTreeMap::new();
    for row in &rows {
        let turns = &figures[row.as_str()];
        let median = |column: usize| {
            let mut values: Vec<f64> = turns.iter().map(|turn| turn[column]).collect();
            values.sort_by(f64::total_cmp);
            values[values.len() / 2]
        };
        let cells: Vec<String> = (0..COLUMNS.len()).map(|column| written(median(column))).collect();
        println!("| {row} | {} |", cells.join(" | "));
        let sum = *sums.entry(row.split(':').next().unwrap()).or_insert(median(COLUMNS.len()));
        assert!((sum - median(COLUMNS.len())).abs() < 0.5, "{row} finds other next hops than the row before");
    }
}

fn written(value: f64) -> String {
    match value {
        _ if value.is_nan() => "–".into(),
        _ if value < 10.0 => format!("{value:.2}"),
        _ => format!("{value:.0}"),
    }
}

/// The figures of a process that measures `row`.
fn turn(row: &str) -> Vec<f64> {
    let output = Command::new(env::current_exe().unwrap()).env(ROW, row).output().unwrap();
    assert!(output.status.success(), "{row}: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.split_whitespace().map(|word| word.parse().unwrap()).collect()
}

fn measure(row: &str) {
    let (table, rival) = row.split_once(": ").unwrap();
    match table {
        "IPv4" => with(|| rivals::ip4(rival), &tables::ip4(false)),
        "IPv4 and longer" => with(|| rivals::ip4(rival), &tables::ip4(true)),
        _ => with(|| rivals::ip6(rival), &tables::ip6()),
    }
}

fn with<A: Address>(make: impl FnOnce() -> Box<dyn Rival<A>>, table: &Table<A>) {
    let (routes, destinations) = (&table.routes, &table.destinations);
    let before = pages::resident("VmRSS");
    let mut rival = make();
    let started = Instant::now();
    rival.load(routes);
    let loaded_s = started.elapsed().as_secs_f64();
    let memory = pages::resident("VmRSS") - before;
    rival.settle();
    let (bulk_s, sum) = bulk(rival.as_mut(), destinations);
    let single_s = one_after_another(rival.as_mut(), destinations);
    let updates_s = updates(rival.as_mut(), routes);
    let (again_s, again) = bulk(rival.as_mut(), destinations);
    assert_eq!(sum, again, "withdrawn and inserted again, the routes are others");
    let bulk_s = bulk_s.min(again_s);
    let clocks = bulk_s * pages::clock_hz();
    let peak = pages::resident("VmHWM");
    let micro = |seconds: f64| 1e-6 / seconds;
    println!(
        "{loaded_s} {memory} {peak} {} {clocks} {} {} {sum}",
        micro(bulk_s),
        single_s * 1e9,
        2e-3 / updates_s
    );
}

/// Seconds for each destination in bulk, and the sum of next hops.
fn bulk<A: Address>(rival: &mut dyn Rival<A>, destinations: &[A]) -> (f64, u64) {
    let mut hops = vec![0; destinations.len()];
    rival.bulk(destinations, &mut hops);
    let mut rounds: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let started = Instant::now();
            rival.bulk(black_box(destinations), black_box(&mut hops));
            started.elapsed().as_secs_f64() / destinations.len() as f64
        })
        .collect();
    rounds.sort_by(f64::total_cmp);
    (rounds[ROUNDS / 2], hops.iter().map(|hop| u64::from(*hop)).sum())
}

/// Seconds for each destination when the next is known only once the one before is found.
fn one_after_another<A: Address>(rival: &mut dyn Rival<A>, destinations: &[A]) -> f64 {
    let mut found = 0;
    let started = Instant::now();
    for at in 0..destinations.len() {
        // No next hop is that high, which only we know.
        found = rival.one(destinations[at ^ (found as usize >> 20)]);
    }
    black_box(found);
    started.elapsed().as_secs_f64() / destinations.len() as f64
}

/// Seconds for withdrawing a route and inserting it again.
fn updates<A: Address>(rival: &mut dyn Rival<A>, routes: &[(A, u8, u32)]) -> f64 {
    let (mut random, mut count) = (Random::new(8), 0);
    let started = Instant::now();
    while started.elapsed() < UPDATING {
        for _ in 0..10 {
            let (address, length, hop) = routes[random.below(routes.len())];
            rival.withdraw(address, length);
            rival.insert(address, length, hop);
        }
        count += 10;
    }
    started.elapsed().as_secs_f64() / f64::from(count)
}
