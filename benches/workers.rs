//! What two workers forward against one, without a tester: `cargo bench -p fastpath --bench workers`, on an otherwise
//! idle machine with two cores.
//!
//! Each worker is a thread on a core of its own. Frames of 64 bytes with FCS lie in 2,048 buffers for each queue, which a
//! device in memory lends 256 at a time, with their headers written anew; what is sent is thrown away. `a queue each`:
//! every worker polls its own, as with a card of several queues. `one queue, rss`: the first worker polls the only queue and
//! hands the frames of the other's flows over. All rows take turns; figures are medians of the turns. A turn goes once over
//! the cores in each order, since cores of one host differ: its figure is the mean. `Mpps of own time` leaves out what other
//! processes took of the cores, which Mpps does not. Rows that are marked as a model were not measured.

#![allow(clippy::unwrap_used)] // a benchmark may end at its first error

#[path = "nodes/memory.rs"]
mod memory;
#[path = "fib/tables.rs"]
#[allow(dead_code)] // only the IPv4 table is used
mod tables;
#[path = "workers/team.rs"]
mod team;
#[path = "forwarding/template.rs"]
mod template;
#[path = "nodes/turn.rs"]
#[allow(dead_code)] // only what is sent nowhere, and how many turns
mod turn;

use crate::team::{Figure, Queues, Team};
use crate::turn::TURNS;

/// A table of routes, and how many destinations.
struct Case {
    name: &'static str,
    routes: usize,
    destinations: usize,
}

const CASES: [Case; 3] = [
    Case { name: "1 route, 512 destinations", routes: 1, destinations: 512 },
    Case { name: "1 M routes, 1 k destinations", routes: 1_000_000, destinations: 1000 },
    Case { name: "1 M routes, 1 M destinations", routes: 1_000_000, destinations: 1_000_000 },
];
/// Most workers of the model.
const MODEL: usize = 4;

fn main() {
    let cores = team::cores();
    let table = tables::ip4(false);
    println!(
        "| case | queues | workers | Mpps | times one | Mpps of own time | times one | shares | clocks a frame |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for case in &CASES {
        let mut rows: Vec<(Queues, usize, Vec<Figure>)> =
            [(Queues::Own, 1), (Queues::Own, 2), (Queues::Shared, 1), (Queues::Shared, 2)]
                .into_iter()
                .filter(|(_, workers)| *workers <= cores.len())
                .map(|(queues, workers)| (queues, workers, Vec::new()))
                .collect();
        let mut router = team::router(&table, case.routes, case.destinations);
        for _ in 0..TURNS {
            for (queues, workers, turns) in &mut rows {
                let orders = [cores.clone(), cores.iter().rev().copied().collect()];
                let both = orders.map(|cores| Team::new(&mut router, *queues, &cores[..*workers]).run());
                turns.push(Figure::mean(both));
            }
        }
        let rows = rows.into_iter().map(|(queues, workers, turns)| (queues, workers, Figure::median(turns)));
        let rows: Vec<_> = rows.collect();
        for (queues, workers, figure) in &rows {
            let one = rows.iter().find(|row| (row.0, row.1) == (*queues, 1)).map_or(figure, |row| &row.2);
            let shares: Vec<String> =
                figure.shares.iter().map(|share| format!("{:.0} %", share * 100.0)).collect();
            println!(
                "| {} | {} | {workers} | {:.1} | {:.2} | {:.1} | {:.2} | {} | {:.1} |",
                case.name,
                queues.name(),
                figure.mpps,
                figure.mpps / one.mpps,
                figure.own_mpps,
                figure.own_mpps / one.own_mpps,
                shares.join(" + "),
                figure.clocks
            );
        }
        model(case, &rows);
    }
    if cores.len() < 2 {
        println!("\nThis machine has one core: two workers need two.");
    }
}

/// What more workers would forward with a queue each, if what two lose to each other were what every further one loses
/// (the universal scalability law without its second order).
fn model(case: &Case, rows: &[(Queues, usize, Figure)]) {
    let rate =
        |count| rows.iter().find(|row| (row.0, row.1) == (Queues::Own, count)).map(|row| row.2.own_mpps);
    let (Some(one), Some(two)) = (rate(1), rate(2)) else { return };
    let lost = (2.0 * one / two - 1.0).max(0.0);
    for workers in 3..=MODEL {
        let times = workers as f64 / (1.0 + lost * (workers - 1) as f64);
        let mpps = one * times;
        println!(
            "| {} | a queue each | {workers}, a model | – | – | {mpps:.1} | {times:.2} | – | – |",
            case.name
        );
    }
}
