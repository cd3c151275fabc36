//! A worker: it asks its receive queues for frames in turn, and sends each vector through the graph.

use std::sync::Arc;

use crate::clock::clocks;
use crate::counters::Counters;
use crate::device::{Input, Output};
use crate::fib::Reader;
use crate::forwarding::Forwarding;
use crate::graph::{Context, Graph};
use crate::node::Node;
use crate::publish::Subscriber;
use crate::vector::Packets;

/// A receive queue that a worker serves.
pub struct Receive {
    /// The device that it is of.
    pub device: u16,
    /// The queue.
    pub input: Box<dyn Input>,
}

/// A worker, of one thread.
pub struct Worker {
    context: Context,
    graph: Graph,
    packets: Box<Packets>,
    inputs: Vec<Receive>,
    /// When the last turn ended.
    clock: u64,
}

impl Worker {
    /// One that serves `inputs`, and sends by `outputs`, of which there is one for each device.
    #[must_use]
    pub fn new(
        inputs: Vec<Receive>,
        outputs: Vec<Box<dyn Output>>,
        mut updates: Subscriber<Forwarding>,
        ip4: Reader<u32>,
        ip6: Reader<u128>,
        counters: Arc<Counters>,
    ) -> Self {
        let forwarding = updates.news().unwrap_or_default();
        let context =
            Context { forwarding, updates, ip4, ip6, counters, outputs, device: 0, beside: Vec::new() };
        Self { context, graph: Graph::default(), packets: Packets::new(), inputs, clock: clocks() }
    }

    /// Asks each receive queue once, and forwards what it has. Returns how many frames there were.
    pub fn turn(&mut self) -> usize {
        self.context.update();
        let begin = self.clock;
        let mut received = 0;
        for receive in &mut self.inputs {
            let count = receive.input.receive(self.packets.lent());
            if count == 0 {
                continue;
            }
            received += count;
            self.context.device = receive.device;
            self.packets.begin(count);
            self.clock =
                self.graph.run(&mut self.context, &mut self.packets, Node::DeviceInput, count, self.clock);
            self.packets.end();
            receive.input.release();
        }
        let counters = &self.context.counters;
        counters.loops.add(1);
        if received == 0 {
            self.clock = clocks();
            counters.idle_loops.add(1);
            counters.idle_clocks.add(self.clock.wrapping_sub(begin));
        }
        received
    }
}
