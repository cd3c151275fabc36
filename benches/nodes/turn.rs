//! A turn of a benchmark of nodes: a worker and the nodes in the way of its frames enter; what these cost
//! leaves.

use std::time::{Duration, Instant};

use fastpath::counters::Counters;
use fastpath::device::Output;
use fastpath::node::Node;
use fastpath::vector::Frame;
use fastpath::worker::Worker;

/// How often each row has its turn.
pub const TURNS: usize = 7;
const TURN: Duration = Duration::from_millis(250);

/// What a turn measured: clocks a frame by node, and millions of frames a second.
pub struct Turn<const NODES: usize> {
    pub clocks: [f64; NODES],
    pub mpps: f64,
}

/// Has a worker forward for a while, which drops nothing.
pub fn turn<const NODES: usize>(
    worker: &mut Worker,
    counters: &Counters,
    nodes: [Node; NODES],
) -> Turn<NODES> {
    let read = || nodes.map(|node| counters.nodes[node as usize].clocks.get());
    for _ in 0..100 {
        worker.turn();
    }
    let (before, sent, started) = (read(), counters.balance().sent, Instant::now());
    while started.elapsed() < TURN {
        for _ in 0..100 {
            worker.turn();
        }
    }
    let seconds = started.elapsed().as_secs_f64();
    let balance = counters.balance();
    assert!(balance.holds() && balance.dropped == 0, "{balance:?}");
    let (after, sent) = (read(), (balance.sent - sent) as f64);
    let clocks = std::array::from_fn(|node| (after[node] - before[node]) as f64 / sent);
    Turn { clocks, mpps: sent / seconds * 1e-6 }
}

/// The median of a figure over turns.
pub fn median<const NODES: usize>(turns: &[Turn<NODES>], of: impl Fn(&Turn<NODES>) -> f64) -> f64 {
    let mut values: Vec<f64> = turns.iter().map(of).collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// A device that throws away what it sends.
pub struct Nowhere;

impl Output for Nowhere {
    fn transmit(&mut self, frames: &[Frame]) -> usize {
        frames.len()
    }
}
