//! Workers on cores of their own: a table of routes, destinations and queues enter; what they forward in a while leaves.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use fastpath::counters::Counters;
use fastpath::device::Output;
use fastpath::fib::Prefix;
use fastpath::flow::rss::Rss;
use fastpath::handoff::Handoff;
use fastpath::node::Node;
use fastpath::router::{Hop, Router};
use fastpath::vector::VECTOR;
use fastpath::worker::{Receive, Worker};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;
use stats::random::Random;
use wire::MacAddress;

use crate::memory::{Memory, OURS};
use crate::tables::Table;
use crate::turn::Nowhere;

const WARM: Duration = Duration::from_millis(50);
const TURN: Duration = Duration::from_millis(250);
/// The calling thread.
const THIS: Pid = Pid::from_raw(0);

/// Where workers take frames from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queues {
    /// Each from a queue of its own.
    Own,
    /// The first one from the only queue; it hands those of the others' flows over.
    Shared,
}

impl Queues {
    pub fn name(self) -> &'static str {
        match self {
            Self::Own => "a queue each",
            Self::Shared => "one queue, rss",
        }
    }
}

/// What workers did in a turn.
#[derive(Clone)]
pub struct Figure {
    /// All together.
    pub mpps: f64,
    /// The same in a second of the time that each had its core: what other processes took of it does not count.
    pub own_mpps: f64,
    /// Of each worker in what was sent, 0 to 1.
    pub shares: Vec<f64>,
    /// Of all nodes of all workers, for each frame that was sent.
    pub clocks: f64,
}

impl Figure {
    /// Of two turns.
    pub fn mean([one, other]: [Self; 2]) -> Self {
        let mean = |one: f64, other: f64| f64::midpoint(one, other);
        let shares = one.shares.iter().zip(&other.shares).map(|(one, other)| mean(*one, *other)).collect();
        Self {
            mpps: mean(one.mpps, other.mpps),
            own_mpps: mean(one.own_mpps, other.own_mpps),
            shares,
            clocks: mean(one.clocks, other.clocks),
        }
    }

    /// The one with the median rate.
    pub fn median(mut turns: Vec<Self>) -> Self {
        turns.sort_by(|one, other| one.mpps.total_cmp(&other.mpps));
        turns.swap_remove(turns.len() / 2)
    }
}

/// The cores that this process may use.
pub fn cores() -> Vec<usize> {
    let usable = sched_getaffinity(THIS).unwrap();
    (0..CpuSet::count()).filter(|core| usable.is_set(*core).unwrap_or(false)).collect()
}

/// Workers, each with its core and what it counts.
pub struct Team {
    workers: Vec<(usize, Worker, Arc<Counters>)>,
}

impl Team {
    /// One on each of `cores`, of a router that is sent frames to these destinations.
    pub fn new((router, destinations): &mut (Router, Vec<u32>), queues: Queues, cores: &[usize]) -> Self {
        let rss = Arc::new(Rss::new(cores.len()));
        let mut inputs: Vec<Vec<Receive>> = cores.iter().map(|_| Vec::new()).collect();
        match queues {
            Queues::Own => {
                for (at, inputs) in inputs.iter_mut().enumerate() {
                    let mut own = destinations.clone();
                    own.rotate_left(at * destinations.len() / cores.len());
                    inputs.push(Receive::new(0, Box::new(Memory::new(own, VECTOR))));
                }
            }
            Queues::Shared => {
                let mut receive = Receive::new(0, Box::new(Memory::new(destinations.clone(), VECTOR)));
                if cores.len() > 1 {
                    let (handoff, ways) = Handoff::new(rss, 0, cores.len());
                    receive.handoff = Some(handoff);
                    for way in ways {
                        inputs[way.to].push(Receive::new(0, way.input));
                    }
                }
                inputs[0].push(receive);
            }
        }
        let workers = inputs.into_iter().zip(cores).map(|(inputs, core)| {
            let counters = Arc::new(Counters::default());
            let outputs: Vec<Box<dyn Output>> = vec![Box::new(Nowhere)];
            (*core, Worker::new(inputs, outputs, router.attach(), Arc::clone(&counters)), counters)
        });
        Self { workers: workers.collect() }
    }

    /// Has all of them forward for a while, at once.
    pub fn run(self) -> Figure {
        let begin = Barrier::new(self.workers.len());
        let turns: Vec<Turn> = thread::scope(|scope| {
            let begin = &begin;
            let working: Vec<_> = self
                .workers
                .into_iter()
                .map(|(core, worker, counters)| scope.spawn(move || forward(core, worker, &counters, begin)))
                .collect();
            working.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let rates: Vec<f64> = turns.iter().map(|turn| turn.sent as f64 / turn.seconds * 1e-6).collect();
        let (mpps, sent) = (rates.iter().sum::<f64>(), turns.iter().map(|turn| turn.sent).sum::<u64>());
        let clocks: u64 = turns.iter().map(|turn| turn.clocks).sum();
        Figure {
            mpps,
            own_mpps: turns.iter().map(|turn| turn.sent as f64 / turn.own_seconds * 1e-6).sum(),
            shares: rates.iter().map(|rate| rate / mpps).collect(),
            clocks: clocks as f64 / sent as f64,
        }
    }
}

/// What one worker did in a turn.
struct Turn {
    /// Frames that it sent.
    sent: u64,
    /// Of all its nodes.
    clocks: u64,
    /// How long that took, and how much of it the worker had its core.
    seconds: f64,
    own_seconds: f64,
}

/// How long this thread has had a core so far, in seconds.
fn own_time() -> f64 {
    Duration::from(clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap()).as_secs_f64()
}

/// Forwards on `core`.
fn forward(core: usize, mut worker: Worker, counters: &Counters, begin: &Barrier) -> Turn {
    let mut set = CpuSet::new();
    set.set(core).unwrap();
    sched_setaffinity(THIS, &set).unwrap();
    begin.wait();
    let mut turn = |length: Duration| {
        let started = Instant::now();
        while started.elapsed() < length {
            for _ in 0..100 {
                worker.turn();
            }
        }
        started.elapsed().as_secs_f64()
    };
    turn(WARM);
    let read = || {
        let nodes = counters.nodes.iter().enumerate().filter(|(node, _)| *node != Node::DeviceInput as usize);
        (counters.balance().sent, nodes.map(|(_, node)| node.clocks.get()).sum::<u64>())
    };
    let (before, own) = (read(), own_time());
    let seconds = turn(TURN);
    let (after, own_seconds) = (read(), own_time() - own);
    // The worker that is late finds the other one still at work.
    begin.wait();
    Turn { sent: after.0 - before.0, clocks: after.1 - before.1, seconds, own_seconds }
}

/// A router with so many routes, and destinations within them.
pub fn router(table: &Table<u32>, routes: usize, count: usize) -> (Router, Vec<u32>) {
    let mut router = Router::new().unwrap();
    router.add_device("memory0", OURS, 1500).unwrap();
    let neighbours: Vec<_> = (0..16).map(|last| IpAddr::from(Ipv4Addr::new(10, 0, 0, last))).collect();
    for (at, address) in neighbours.iter().enumerate() {
        router.set_neighbour(0, *address, MacAddress([2, 0, 0, 0, 1, at as u8])).unwrap();
    }
    if routes == 1 {
        router.add_route(Prefix::new(16u32 << 24, 8).unwrap(), &[Hop::Neighbour(0, neighbours[0])]).unwrap();
        let mut random = Random::new(7);
        return (router, (0..count).map(|_| (16 << 24) + random.below(1 << 24) as u32).collect());
    }
    for &(address, length, hop) in &table.routes[..routes] {
        let hop = Hop::Neighbour(0, neighbours[hop as usize % 16]);
        router.add_route(Prefix::new(address, length).unwrap(), &[hop]).unwrap();
    }
    (router, table.destinations[..count].to_vec())
}
