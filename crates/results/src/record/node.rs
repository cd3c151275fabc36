//! What the nodes of a device did that is a graph of them, as VPP is.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What each node has done since the device started, by thread and node.
pub type NodeRuntimes = BTreeMap<(String, String), NodeRuntime>;

/// A node of the graph, on one of the device's threads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Node {
    /// The thread, like `vpp_wk_0`.
    pub thread: String,
    /// The node, like `ip4-lookup`.
    pub name: String,
    /// What it had done before the first frame.
    pub before: NodeRuntime,
    /// What it had done after the last one was waited for.
    pub after: NodeRuntime,
}

/// What a node did, as the device tells it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NodeRuntime {
    /// How often it was called.
    pub calls: u64,
    /// Packets that it was given.
    pub vectors: u64,
    /// How often it paused.
    pub suspends: u64,
    /// Clocks of the processor's time stamp counter for each packet; for each call, or pause, where it was
    /// given none. The device tells three digits of it.
    pub clocks: f64,
}

impl NodeRuntime {
    /// What its clocks are divided by.
    fn parts(self) -> u64 {
        [self.vectors, self.calls, self.suspends].into_iter().find(|count| *count > 0).unwrap_or(0)
    }

    /// All its clocks.
    #[must_use]
    pub fn spent(self) -> f64 {
        self.clocks * self.parts() as f64
    }

    /// Packets a call: the more, the busier the device and the cheaper each of them.
    #[must_use]
    pub fn vectors_per_call(self) -> f64 {
        self.vectors as f64 / self.calls.max(1) as f64
    }
}

impl Node {
    /// The nodes in `after`, each with what it had done in `before`. One that is told of only once it was called
    /// had done nothing.
    #[must_use]
    pub fn since(before: &NodeRuntimes, after: NodeRuntimes) -> Vec<Self> {
        let node = |((thread, name), after)| {
            let key = (thread, name);
            let before = before.get(&key).copied().unwrap_or_default();
            Self { thread: key.0, name: key.1, before, after }
        };
        after.into_iter().map(node).collect()
    }

    /// Packets that `nodes` were given meanwhile: as many as the busiest of them, on all threads together, since each
    /// passes several.
    #[must_use]
    pub fn packets(nodes: &[Self]) -> u64 {
        let mut packets: BTreeMap<&str, u64> = BTreeMap::new();
        for node in nodes {
            *packets.entry(&node.name).or_default() += node.meanwhile().map_or(0, |did| did.vectors);
        }
        packets.into_values().max().unwrap_or(0)
    }

    /// Whether `nodes` were given at least half of what the device `forwarded` meanwhile, in frames. Where its kernel
    /// forwards most packets beside the graph, the clocks of nodes are not what a packet costs.
    #[must_use]
    pub fn had_most(nodes: &[Self], forwarded: u64) -> bool {
        Self::packets(nodes) >= forwarded / 2
    }

    /// What it did meanwhile; absent if its counters were set back.
    #[must_use]
    pub fn meanwhile(&self) -> Option<NodeRuntime> {
        let (before, after) = (self.before, self.after);
        let meanwhile = NodeRuntime {
            calls: after.calls.checked_sub(before.calls)?,
            vectors: after.vectors.checked_sub(before.vectors)?,
            suspends: after.suspends.checked_sub(before.suspends)?,
            clocks: 0.0,
        };
        let spent = (after.spent() - before.spent()).max(0.0);
        Some(NodeRuntime { clocks: spent / meanwhile.parts().max(1) as f64, ..meanwhile })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_that_was_not_told_of_before_had_done_nothing() {
        let key = |name: &str| ("vpp_wk_0".to_owned(), name.to_owned());
        let told = |calls| NodeRuntime { calls, ..NodeRuntime::default() };
        let before = NodeRuntimes::from([(key("memif-input"), told(7))]);
        let after = NodeRuntimes::from([(key("memif-input"), told(9)), (key("ip4-lookup"), told(2))]);
        let calls = Node::since(&before, after).into_iter().map(|node| (node.before.calls, node.after.calls));
        assert_eq!(calls.collect::<Vec<_>>(), [(0, 2), (7, 9)]);
    }

    #[test]
    fn nodes_had_most_packets_unless_others_came_back_beside_them() {
        let node = |thread: &str, name: &str, vectors: u64| Node {
            thread: thread.to_owned(),
            name: name.to_owned(),
            before: NodeRuntime { vectors: 100, ..NodeRuntime::default() },
            after: NodeRuntime { vectors: 100 + vectors, ..NodeRuntime::default() },
        };
        let nodes = [node("0", "ip4-input", 300), node("1", "ip4-input", 200), node("0", "tx", 290)];
        assert_eq!(Node::packets(&nodes), 500);
        // Packets that are lost after a node, and a little more that came back, change nothing.
        assert!(Node::had_most(&nodes, 0) && Node::had_most(&nodes, 1_000));
        assert!(!Node::had_most(&nodes, 1_002));
        assert!(!Node::had_most(&[], 2));
    }

    #[test]
    fn what_a_node_did_meanwhile_is_what_it_did_more_than_before() {
        let told = |calls, vectors, clocks| NodeRuntime { calls, vectors, suspends: 0, clocks };
        let node =
            |before, after| Node { thread: "vpp_wk_0".into(), name: "memif-input".into(), before, after };
        // It polled without finding packets before: 1000 calls of 70 clocks.
        let meanwhile = node(told(1000, 0, 70.0), told(3000, 20_000, 10.0)).meanwhile().unwrap();
        assert_eq!((meanwhile.calls, meanwhile.vectors), (2000, 20_000));
        assert!((meanwhile.clocks - (200_000.0 - 70_000.0) / 20_000.0).abs() < 1e-9, "{meanwhile:?}");
        assert!((meanwhile.vectors_per_call() - 10.0).abs() < 1e-9);
        assert_eq!(node(told(5, 0, 1.0), told(4, 0, 1.0)).meanwhile(), None);
        assert_eq!(node(told(5, 0, 1.0), told(5, 0, 1.0)).meanwhile(), Some(NodeRuntime::default()));
    }
}
