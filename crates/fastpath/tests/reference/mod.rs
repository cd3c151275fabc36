//! The table as anyone would believe it: a tree with one bit a level.

use fastpath::fib::{Address, Prefix, Via};

/// Routes, and the longest for every address.
#[derive(Default)]
pub struct Reference {
    via: Option<Via>,
    below: [Option<Box<Reference>>; 2],
}

impl Reference {
    pub fn insert<A: Address>(&mut self, prefix: Prefix<A>, via: Via) -> Option<Via> {
        self.node(prefix).via.replace(via)
    }

    pub fn withdraw<A: Address>(&mut self, prefix: Prefix<A>) -> Option<Via> {
        self.node(prefix).via.take()
    }

    pub fn lookup<A: Address>(&self, address: A) -> Option<Via> {
        let (mut node, mut found) = (self, self.via);
        for bit in 0..A::WIDTH {
            let Some(below) = &node.below[address.bits(bit, 1)] else { break };
            node = below;
            found = node.via.or(found);
        }
        found
    }

    fn node<A: Address>(&mut self, prefix: Prefix<A>) -> &mut Self {
        let mut node = self;
        for bit in 0..prefix.length() {
            node = node.below[prefix.address().bits(bit, 1)].get_or_insert_default();
        }
        node
    }
}
