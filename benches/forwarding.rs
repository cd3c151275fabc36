//! fastpath between two memifs on one core, a generator and sink on the other:
//! `cargo bench -p fastpath --bench forwarding [PART OF A ROW'S NAME]`, on an otherwise idle machine.
//!
//! The generator builds frames of 64 bytes with FCS in the ring itself, 256 at a time, and takes what
//! arrives at the second memif without looking into it. Beside fastpath's rows stands DPDK's testpmd, which
//! hands frames on without reading them (`io`), or exchanges their link addresses (`macswap`). All rows take
//! turns, so that each has its share of the machine's fast and slow phases; figures are medians of the turns.

#![allow(clippy::unwrap_used)] // a benchmark may end at its first error

#[path = "forwarding/driver.rs"]
mod driver;
#[path = "forwarding/router.rs"]
mod router;
#[path = "fib/tables.rs"]
#[allow(dead_code)] // only the IPv4 table is used
mod tables;
#[path = "forwarding/template.rs"]
mod template;
#[path = "forwarding/testpmd.rs"]
mod testpmd;

use crate::driver::{Driver, Measured};
use crate::tables::Table;

const TURNS: usize = 5;

/// What forwards.
#[derive(Clone, Copy)]
enum Device {
    /// fastpath, as a router with so many routes.
    Routes(usize),
    /// fastpath, as a cross connect.
    CrossConnect,
    /// testpmd in this mode.
    Testpmd(&'static str),
}

/// A row's name, what forwards, and to how many destinations.
const ROWS: [(&str, Device, usize); 7] = [
    ("testpmd io", Device::Testpmd("io"), 1),
    ("testpmd macswap", Device::Testpmd("macswap"), 1),
    ("fastpath cross connect", Device::CrossConnect, 1),
    ("fastpath IPv4, 1 route, 1 destination", Device::Routes(1), 1),
    ("fastpath IPv4, 1 M routes, 1 k destinations", Device::Routes(1_000_000), 1000),
    ("fastpath IPv4, 1 M routes, 200 k destinations", Device::Routes(1_000_000), 200_000),
    ("fastpath IPv4, 1 M routes, 1 M destinations", Device::Routes(1_000_000), 1_000_000),
];

fn main() {
    let wanted = std::env::args().skip(1).find(|argument| !argument.starts_with('-')).unwrap_or_default();
    let rows: Vec<_> = ROWS.iter().filter(|(name, ..)| name.contains(&wanted)).collect();
    let table = tables::ip4(false);
    let mut figures: Vec<Vec<Measured>> = rows.iter().map(|_| Vec::new()).collect();
    for _ in 0..TURNS {
        for ((_, device, destinations), figures) in rows.iter().zip(&mut figures) {
            figures.push(turn(*device, *destinations, &table));
        }
    }
    println!(
        "| device | Mpps | of testpmd io | packets a vector | clocks a packet | offered, Mpps |\n|---|---|---|---|---|---|"
    );
    let io = median(&figures[0], |measured| measured.mpps);
    for ((name, ..), figures) in rows.iter().zip(&figures) {
        let of = |what: fn(&Measured) -> f64| median(figures, what);
        println!(
            "| {name} | {:.2} | {:.2} | {} | {} | {:.1} |",
            of(|measured| measured.mpps),
            of(|measured| measured.mpps) / io,
            written(of(|measured| measured.vector)),
            written(of(|measured| measured.clocks)),
            of(|measured| measured.offered_mpps),
        );
    }
}

fn median(figures: &[Measured], of: impl Fn(&Measured) -> f64) -> f64 {
    let mut values: Vec<f64> = figures.iter().map(of).collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn written(value: f64) -> String {
    if value.is_nan() { "–".into() } else { format!("{value:.0}") }
}

fn turn(device: Device, destinations: usize, table: &Table<u32>) -> Measured {
    let sockets = driver::sockets();
    match device {
        Device::Testpmd(mode) => {
            let _testpmd = testpmd::start(mode, &sockets);
            Driver::connect(&sockets).measure(&driver::destinations(1, destinations, table), None)
        }
        Device::CrossConnect => {
            let router = router::start(0, &sockets, table);
            Driver::connect(&sockets).measure(&driver::destinations(1, 1, table), Some(&router))
        }
        Device::Routes(routes) => {
            let router = router::start(routes, &sockets, table);
            Driver::connect(&sockets)
                .measure(&driver::destinations(routes, destinations, table), Some(&router))
        }
    }
}
