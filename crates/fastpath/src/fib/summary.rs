//! A summary of a table's root: what a range of its entries was painted with enters, what all entries of a block are, or
//! that they differ, leaves.
//!
//! A root of 24 bits has 64 MiB, and packets to many hosts wait for memory at each of its entries. Where few routes are
//! longer than 16 bits, nearly all of its blocks of 256 entries are of one route, and the summary, which a core's own
//! cache holds, tells it.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{io, iter};

use super::entry::Entry;
use super::memory::Words;

/// The binary logarithm of the entries of a block.
const BLOCK: u32 = 8;
/// A root of at most so many bytes is held by a core's own cache, and needs no summary.
const CACHED: usize = 2 << 20;
/// What stands for a block whose entries differ.
const DIFFERENT: Entry = Entry::to_node(0);

pub(super) struct Summary {
    blocks: Words,
    count: usize,
    /// How many blocks have entries that differ.
    different: AtomicUsize,
}

impl Summary {
    /// One of a root of `entries` entries that are all [`Entry::NONE`]; none of a root that needs none.
    pub fn new(entries: usize) -> io::Result<Option<Self>> {
        let count = entries >> BLOCK;
        let summary = || Ok(Self { blocks: Words::zeroed(count)?, count, different: AtomicUsize::new(0) });
        (Self::bytes(entries) > 0).then(summary).transpose()
    }

    /// Bytes of one of a root of `entries` entries.
    pub const fn bytes(entries: usize) -> usize {
        if entries * size_of::<Entry>() > CACHED { (entries >> BLOCK) * size_of::<Entry>() } else { 0 }
    }

    /// Whether lookups through it wait for memory less often: where most blocks differ, one access more is only in the way.
    #[inline]
    pub fn helps(&self) -> bool {
        self.different.load(Ordering::Relaxed) <= self.count / 2
    }

    /// What all entries of the block of the root's entry `at` are, or an entry that [leads to a node](Entry::is_node) if
    /// they differ. Whatever else it leads to may be older.
    #[inline(always)]
    pub fn relaxed(&self, at: usize) -> Entry {
        self.blocks.relaxed(at >> BLOCK)
    }

    /// Follows what was `painted` in `root`, which is not empty.
    pub fn refresh(&self, root: &Words, painted: &Range<usize>) {
        for block in painted.start >> BLOCK..=(painted.end - 1) >> BLOCK {
            let start = block << BLOCK;
            let first = root.relaxed(start);
            // What was painted is most likely to differ from the rest.
            let mut likely_first = iter::once(painted.start.max(start)).chain(start..start + (1 << BLOCK));
            let alike = !first.is_node() && likely_first.all(|at| root.relaxed(at) == first);
            self.set(block, if alike { first } else { DIFFERENT });
        }
    }

    fn set(&self, block: usize, entry: Entry) {
        let before = self.blocks.relaxed(block);
        if before == entry {
            return;
        }
        self.blocks.publish(block, entry);
        match (before.is_node(), entry.is_node()) {
            (false, true) => drop(self.different.fetch_add(1, Ordering::Relaxed)),
            (true, false) => drop(self.different.fetch_sub(1, Ordering::Relaxed)),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fib::{NextHop, Via};

    const ENTRIES: usize = 1 << 20;

    fn leaf(length: u8, hop: u32) -> Entry {
        Entry::leaf(length, Via::from(NextHop::new(hop).unwrap()))
    }

    #[test]
    fn a_block_is_told_as_long_as_its_entries_are_alike_and_a_full_table_needs_no_summary() {
        let (root, summary) = (Words::zeroed(ENTRIES).unwrap(), Summary::new(ENTRIES).unwrap().unwrap());
        let paint = |range: Range<usize>, entry| {
            range.clone().for_each(|at| root.publish(at, entry));
            summary.refresh(&root, &range);
        };
        assert!(summary.helps() && summary.relaxed(ENTRIES - 1) == Entry::NONE);
        paint(0..ENTRIES, leaf(0, 1));
        assert_eq!([0, 70_000, ENTRIES - 1].map(|at| summary.relaxed(at)), [leaf(0, 1); 3]);
        paint(513..514, leaf(20, 2));
        assert_eq!([511, 768].map(|at| summary.relaxed(at)), [leaf(0, 1); 2]);
        assert!([512, 513, 767].into_iter().all(|at| summary.relaxed(at).is_node()));
        paint(513..514, Entry::to_node(7));
        assert!(summary.relaxed(512).is_node());
        paint(513..514, leaf(0, 1));
        assert_eq!(summary.relaxed(513), leaf(0, 1));
        for block in 0..ENTRIES >> BLOCK {
            assert_eq!(summary.helps(), block <= (ENTRIES >> BLOCK) / 2, "{block}");
            paint(block << BLOCK..(block << BLOCK) + 1, leaf(20, 3));
        }
        paint(0..ENTRIES, leaf(20, 3));
        assert!(summary.helps());
    }

    #[test]
    fn a_small_root_has_no_summary() {
        assert!(Summary::new(CACHED / size_of::<Entry>()).unwrap().is_none());
        assert_eq!((Summary::bytes(1 << 18), Summary::bytes(1 << 24)), (0, 1 << 18));
    }
}
