//! What a worker had counted at a moment, as plain numbers. Counters are never set back: what was counted
//! since a moment is the difference to what had been counted then.

use crate::dataplane::counters::{Balance, Call, Counters};

/// What a node did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeCounts {
    /// How often it had packets.
    pub calls: u64,
    /// How many it had.
    pub vectors: u64,
    /// Clocks of the time stamp counter for them.
    pub clocks: u64,
}

/// What went through an interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InterfaceCounts {
    /// Packets that arrived.
    pub received: u64,
    /// Their bytes, without FCS.
    pub received_bytes: u64,
    /// Packets that the device took.
    pub sent: u64,
    /// Their bytes, without FCS.
    pub sent_bytes: u64,
    /// Packets that were to leave there, and found the TX ring full.
    pub no_room: u64,
    /// Packets that had arrived there, and were dropped.
    pub dropped: u64,
    /// Packets that had arrived there, and went to the kernel.
    pub punted: u64,
}

/// All that a worker counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// By [`crate::dataplane::node::Node`].
    pub nodes: Vec<NodeCounts>,
    /// By node: the dearest call since these were last cleared, which is nothing to subtract.
    pub dearest: Vec<Call>,
    /// By [`crate::dataplane::counters::Reason`].
    pub reasons: Vec<u64>,
    /// By interface.
    pub interfaces: Vec<InterfaceCounts>,
    /// Packets that nodes made.
    pub made: u64,
    /// How often it asked its devices for frames.
    pub loops: u64,
    /// How often none had any.
    pub idle_loops: u64,
    /// Clocks of the time stamp counter for those.
    pub idle_clocks: u64,
}

impl Snapshot {
    /// What `counters` have counted.
    #[must_use]
    pub fn of(counters: &Counters) -> Self {
        let node = |node: &crate::dataplane::counters::NodeCounters| NodeCounts {
            calls: node.calls.get(),
            vectors: node.vectors.get(),
            clocks: node.clocks.get(),
        };
        let interface = |interface: &crate::dataplane::counters::InterfaceCounters| InterfaceCounts {
            received: interface.received.get(),
            received_bytes: interface.received_bytes.get(),
            sent: interface.sent.get(),
            sent_bytes: interface.sent_bytes.get(),
            no_room: interface.no_room.get(),
            dropped: interface.dropped.get(),
            punted: interface.punted.get(),
        };
        Self {
            nodes: counters.nodes.iter().map(node).collect(),
            dearest: counters.nodes.iter().map(|node| node.dearest.get()).collect(),
            reasons: counters.reasons.iter().map(crate::dataplane::counters::Counter::get).collect(),
            interfaces: counters.interfaces.iter().map(interface).collect(),
            made: counters.made.get(),
            loops: counters.loops.get(),
            idle_loops: counters.idle_loops.get(),
            idle_clocks: counters.idle_clocks.get(),
        }
    }

    /// What was counted since `before`.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        Self { dearest: self.dearest.clone(), ..self.with(before, u64::wrapping_sub) }
    }

    /// What this worker and another counted.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        let dearest = self.dearest.iter().zip(padded(&other.dearest));
        let dearest = dearest.map(|(one, other)| other.max(*one)).collect();
        Self { dearest, ..self.with(other, u64::wrapping_add) }
    }

    /// Packets that arrived, that nodes made, that were sent, dropped and punted.
    #[must_use]
    pub fn balance(&self) -> Balance {
        let sum = |what: fn(&InterfaceCounts) -> u64| self.interfaces.iter().map(what).sum();
        Balance {
            received: sum(|interface| interface.received),
            made: self.made,
            sent: sum(|interface| interface.sent),
            dropped: sum(|interface| interface.dropped),
            punted: sum(|interface| interface.punted),
        }
    }

    /// Every number of `self` joined with the same of `other`, or with 0 where that has fewer; without the
    /// dearest calls.
    fn with(&self, other: &Self, join: fn(u64, u64) -> u64) -> Self {
        let node = |(one, other): (&NodeCounts, NodeCounts)| NodeCounts {
            calls: join(one.calls, other.calls),
            vectors: join(one.vectors, other.vectors),
            clocks: join(one.clocks, other.clocks),
        };
        let interface = |(one, other): (&InterfaceCounts, InterfaceCounts)| InterfaceCounts {
            received: join(one.received, other.received),
            received_bytes: join(one.received_bytes, other.received_bytes),
            sent: join(one.sent, other.sent),
            sent_bytes: join(one.sent_bytes, other.sent_bytes),
            no_room: join(one.no_room, other.no_room),
            dropped: join(one.dropped, other.dropped),
            punted: join(one.punted, other.punted),
        };
        Self {
            nodes: self.nodes.iter().zip(padded(&other.nodes)).map(node).collect(),
            dearest: Vec::new(),
            reasons: self
                .reasons
                .iter()
                .zip(padded(&other.reasons))
                .map(|(one, other)| join(*one, other))
                .collect(),
            interfaces: self.interfaces.iter().zip(padded(&other.interfaces)).map(interface).collect(),
            made: join(self.made, other.made),
            loops: join(self.loops, other.loops),
            idle_loops: join(self.idle_loops, other.idle_loops),
            idle_clocks: join(self.idle_clocks, other.idle_clocks),
        }
    }
}

fn padded<T: Copy + Default>(list: &[T]) -> impl Iterator<Item = T> + '_ {
    list.iter().copied().chain(std::iter::repeat(T::default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_counted_since_a_moment_is_the_difference() {
        let counters = Counters::default();
        counters.nodes[1].calls.add(3);
        counters.reasons[2].add(5);
        counters.interfaces[7].received.add(9);
        let before = Snapshot::of(&counters);
        assert_eq!(before.since(&before).nodes[1], NodeCounts::default());
        counters.nodes[1].calls.add(4);
        counters.interfaces[7].received.add(1);
        let since = Snapshot::of(&counters).since(&before);
        assert_eq!((since.nodes[1].calls, since.reasons[2], since.interfaces[7].received), (4, 0, 1));
        assert_eq!(since.and(&before), Snapshot::of(&counters));
        assert_eq!(before.since(&Snapshot::default()), before);
    }

    #[test]
    fn the_dearest_call_stays_until_it_is_cleared() {
        let counters = Counters::default();
        let dearest = &counters.nodes[1].dearest;
        for (clocks, vectors) in [(500, 3), (499, 256), (500, 9)] {
            dearest.note(clocks, vectors);
        }
        let snapshot = Snapshot::of(&counters);
        assert_eq!(snapshot.since(&snapshot).dearest[1], Call { clocks: 500, vectors: 3 });
        dearest.note(u64::MAX, 512);
        assert_eq!(dearest.get(), Call { clocks: u64::MAX >> 16, vectors: 512 });
        assert_eq!(snapshot.and(&Snapshot::of(&counters)).dearest[1], dearest.get());
        dearest.clear();
        assert_eq!(dearest.get(), Call::default());
    }
}
