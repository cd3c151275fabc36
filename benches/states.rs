//! What states of flows cost fastpath: `cargo bench -p fastpath --bench states`, on an otherwise idle machine.
//!
//! First the table alone, with up to a million states: clocks of the time stamp counter to find the state of a packet
//! and to note the packet there, of vectors of 256 as the router has them. Caches are warm as they are there: what is read
//! of a vector is fetched for all its packets before it is read, and the states of a million flows, 84 MB, are in
//! memory and not in caches. Then clocks to begin a flow, and the longest pauses that beginning and ageing make. At last
//! whole nodes of the graph without a list, with one and with one that keeps states. Rows take turns; figures are
//! medians of the turns.

#![allow(clippy::unwrap_used)] // a benchmark may end at its first error

#[path = "nodes/filtered.rs"]
mod filtered;
#[path = "nodes/memory.rs"]
mod memory;
#[path = "forwarding/template.rs"]
mod template;
#[path = "nodes/turn.rs"]
mod turn;

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fastpath::acl::{AccessList, Action, Addresses, Carried, Filters, Rule};
use fastpath::clock::clocks;
use fastpath::flow::member::{Asker, Member, Part};
use fastpath::forwarding::Forwarding;
use fastpath::router::Router;
use fastpath::states::{Mailbox, States, Table, Terms, Timeouts, now};
use fastpath::vector::VECTOR;
use nix::time::{ClockId, clock_gettime};
use stats::random::Random;

use crate::filtered::{FORWARDING, NODES, set_up};
use crate::memory::OURS;
use crate::turn::{TURNS, median, turn};

/// How long a row finds states in a turn.
const TURN: Duration = Duration::from_millis(200);
const MILLION: usize = 1_000_000;

fn main() {
    lookups();
    pauses();
    nodes();
}

/// A list that keeps a state of everything, or of nothing.
fn list(action: Action) -> Arc<AccessList> {
    AccessList::new("list", vec![Rule { action, addresses: Addresses::Any, carried: Carried::Any }])
}

/// A packet of the flow of this number, which no two have.
fn member(number: usize) -> Member {
    Member {
        part: Part::Begins,
        is_ip6: false,
        protocol: 17,
        flags: 0,
        asker: Asker::None,
        source: 0x1000_0000 + (number % 1000) as u128,
        destination: 0x3000_0000 + (number / 1000) as u128,
        source_port: 1025,
        destination_port: 12,
    }
}

/// States of so many flows, and packets of these in any order.
struct Known {
    states: Box<States>,
    /// By the numbers of their flows.
    packets: Vec<u32>,
    filters: Filters,
    timeouts: Timeouts,
    /// Flows that found no room.
    refused: usize,
}

impl Known {
    fn new(flows: usize) -> Self {
        let mailbox = Arc::<Mailbox>::default();
        mailbox.give(Table::new((flows + flows / 16).max(1) as u32).unwrap());
        let states = States::take(&mailbox).unwrap();
        let filters = Filters { input: Some(list(Action::KeepState)), output: None };
        let mut random = Random::new(flows as u64);
        let packets = (0..MILLION).map(|_| random.below(flows) as u32).collect();
        let mut known = Self { states, packets, filters, timeouts: Timeouts::default(), refused: 0 };
        for first in (0..flows).step_by(VECTOR) {
            known.begin(first, VECTOR.min(flows - first), &mut Pauses::default());
        }
        known
    }

    /// Has so many flows begin; `pauses` hear of each.
    fn begin(&mut self, first: usize, count: usize, pauses: &mut Pauses) {
        let Self { states, filters, timeouts, refused, .. } = self;
        let terms = Terms::new(filters, timeouts, now());
        states.look_for(count, (0, false), |at| member(first + at));
        for at in 0..count {
            pauses.of(|| {
                assert!(states.pass(at, true, &terms).is_none());
                let list = filters.input.as_ref().unwrap();
                // One line in a million has no word left when the table is full.
                *refused += usize::from(states.begin(at, (true, list, 0), &terms).is_err());
            });
        }
    }

    /// Clocks for a packet, of the median vector: others on the core make few of them longer.
    fn find(&mut self) -> f64 {
        let (began, mut vectors) = (Instant::now(), Vec::new());
        let Self { states, packets, filters, timeouts, .. } = self;
        while began.elapsed() < TURN {
            for vector in packets.chunks_exact(VECTOR) {
                let start = clocks();
                let terms = Terms::new(filters, timeouts, now());
                states.look_for(VECTOR, (0, false), |at| member(vector[at] as usize));
                for at in 0..VECTOR {
                    black_box(states.pass(at, true, &terms));
                }
                vectors.push(clocks() - start);
            }
        }
        vectors.sort_unstable();
        vectors[vectors.len() / 2] as f64 / VECTOR as f64
    }
}

/// A table of lookups.
fn lookups() {
    let mut rows: Vec<_> =
        [1000, 65_536, MILLION].map(|flows| (flows, Known::new(flows), Vec::new())).into_iter().collect();
    for _ in 0..TURNS {
        for (_, known, turns) in &mut rows {
            turns.push(known.find());
        }
    }
    println!("| states | clocks to find one and note a packet |\n|---|---|");
    for (flows, _, turns) in &mut rows {
        turns.sort_by(f64::total_cmp);
        println!("| {flows} | {:.1} |", turns[turns.len() / 2]);
    }
}

/// Calls: the clocks of the time stamp counter of each, and the nanoseconds that its thread had a core, in which others
/// that had it meanwhile have no part.
#[derive(Default)]
struct Pauses {
    clocks: Vec<u64>,
    own: Vec<u64>,
}

impl Pauses {
    fn of(&mut self, call: impl FnOnce()) {
        let (own, start) = (own_time(), clocks());
        call();
        let took = (clocks() - start, own_time() - own);
        self.clocks.push(took.0);
        self.own.push(took.1);
    }

    /// A row of a table.
    fn row(&mut self, name: &str) {
        let Self { clocks, own } = self;
        clocks.sort_unstable();
        own.sort_unstable();
        let count = own.len();
        let micros = |nanoseconds: u64| nanoseconds as f64 / 1e3;
        println!(
            "| {name} | {count} | {} | {:.1} | {:.1} | {} |",
            clocks[count / 2],
            micros(own[count - 1 - count / 10_000]),
            micros(own[count - 1]),
            own.iter().filter(|own| micros(**own) > 100.0).count()
        );
    }
}

/// Nanoseconds that this thread has had a core: a call to the kernel, which is a part of each pause.
fn own_time() -> u64 {
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap();
    time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64
}

/// A table of the pauses while a million flows begin, live and end.
fn pauses() {
    let mut known = Known::new(0);
    let mailbox = Arc::<Mailbox>::default();
    mailbox.give(Table::new(MILLION as u32 + 1000).unwrap());
    known.states = States::take(&mailbox).unwrap();
    // One whose interface has the list, so that states live on, and one without.
    let mut router = Router::new().unwrap();
    router.add_device("memory0", OURS, 1500).unwrap();
    router.set_filters(0, known.filters.clone()).unwrap();
    let (with, without) = (router.forwarding().clone(), Forwarding::default());
    let (mut beginning, mut living, mut ending) = (Pauses::default(), Pauses::default(), Pauses::default());
    for first in (0..MILLION).step_by(VECTOR) {
        known.begin(first, VECTOR.min(MILLION - first), &mut beginning);
    }
    let now = now();
    for _ in 0..8192 {
        living.of(|| known.states.age(&with, now));
    }
    assert!(known.refused < 100, "{} flows found no room", known.refused);
    while mailbox.tally.revoked.get() + (known.refused as u64) < MILLION as u64 {
        ending.of(|| known.states.age(&without, now));
    }
    println!(
        "\n| call | calls | median clocks | µs, 99.99 % | µs, longest | over 100 µs |\n|---|---|---|---|---|---|"
    );
    beginning.row("a flow begins");
    living.row("a step of ageing, all live on");
    ending.row("a step of ageing, all end");
}

/// A table of clocks a frame by node.
fn nodes() {
    let none = Filters::default;
    let input = |action| [Filters { input: Some(list(action)), output: None }, none()];
    let cases = [
        ("no list, 65,536 flows", [none(), none()], 65_536),
        ("permit, 65,536 flows", input(Action::Permit), 65_536),
        ("keep-state, 1,000 flows", input(Action::KeepState), 1000),
        ("keep-state, 65,536 flows", input(Action::KeepState), 65_536),
        ("no list, a million flows", [none(), none()], MILLION),
        ("keep-state, a million flows", input(Action::KeepState), MILLION),
    ];
    let mut rows: Vec<_> =
        cases.into_iter().map(|(name, filters, flows)| (name, set_up(filters, flows), Vec::new())).collect();
    for _ in 0..TURNS {
        for (_, (worker, counters, _router), turns) in &mut rows {
            turns.push(turn(worker, counters, NODES));
        }
    }
    let names: Vec<&str> = NODES.iter().map(|node| node.name()).collect();
    println!(
        "\n| list | {} | forwarding | Mpps |\n|---|{}",
        names.join(" | "),
        "---|".repeat(NODES.len() + 2)
    );
    for (name, _, turns) in &rows {
        let cells: Vec<_> = (0..NODES.len()).map(|node| median(turns, |turn| turn.clocks[node])).collect();
        let cells: Vec<_> = cells.iter().map(|clocks| format!("{clocks:.1}")).collect();
        let forwarding = median(turns, |turn| turn.clocks[FORWARDING].iter().sum());
        println!(
            "| {name} | {} | {forwarding:.1} | {:.1} |",
            cells.join(" | "),
            median(turns, |turn| turn.mpps)
        );
    }
}
