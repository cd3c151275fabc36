//! The table that packets are looked up in: routes are painted into it, entries leave.
//!
//! A trie of blocks of entries: the root has one for every value of the first [`Address::ROOT`] bits, a
//! node below one for every value of the next [`Address::STRIDE`] bits. An entry leads to a node, or is
//! the longest route for all addresses that get there, and knows that route's length. (For IPv4 that is
//! DIR-24-8-BASIC: Gupta, Lin, McKeown, Routing lookups in hardware at memory access speeds, 1998.)
//!
//! A route that is painted replaces, below its prefix, the entries of routes that are no longer than
//! itself. That is right for one that is new, and for one that is withdrawn, whose entries are exactly
//! those, and which the covering route then replaces.

use std::io;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::atomic::{Ordering, fence};

use super::VECTOR;
use super::address::{Address, Prefix};
use super::entry::Entry;
use super::epoch::Epochs;
use super::memory::Words;
use super::pool::Pool;
use super::summary::Summary;

/// The table; its writer is the holder of the pool of its nodes.
pub(super) struct Trie<A> {
    root: Words,
    /// Of the root, where that is large.
    summary: Option<Summary>,
    nodes: Words,
    _addresses: PhantomData<fn(A)>,
}

/// The root or a node: entries for each value of some bits of an address.
struct Block<'a> {
    words: &'a Words,
    start: usize,
    /// The first of the bits.
    offset: u8,
    bits: u8,
}

/// Room to look up the addresses of a vector. It is made once: to clear it costs a short vector more than to look it up.
pub struct Search {
    /// What has been found of each address.
    found: [Entry; VECTOR],
    open: Open,
}

/// The addresses of a vector that are not found yet, in its order.
struct Open {
    count: usize,
    /// Which of the vector.
    at: [u8; VECTOR],
    /// The node that each has got to.
    entries: [Entry; VECTOR],
    /// The bits that follow, first bit first.
    bits: [u64; VECTOR],
}

/// What paints: a route, and where nodes come from.
struct Brush<'a, A> {
    prefix: Prefix<A>,
    leaf: Entry,
    pool: &'a mut Pool,
    epochs: &'a Epochs,
}

impl<A: Address> Trie<A> {
    pub fn new(nodes: u32) -> io::Result<Self> {
        let nodes = Words::zeroed(nodes as usize * entries(A::STRIDE))?;
        let (root, summary) = (Words::zeroed(entries(A::ROOT))?, Summary::new(entries(A::ROOT))?);
        Ok(Self { root, summary, nodes, _addresses: PhantomData })
    }

    /// Bytes of the root, its summary and so many nodes.
    pub fn bytes(nodes: usize) -> usize {
        let words = entries(A::ROOT) + nodes * entries(A::STRIDE);
        words * size_of::<Entry>() + Summary::bytes(entries(A::ROOT))
    }

    /// The entry of an address, which leads to no node.
    #[inline]
    pub fn find(&self, address: A) -> Entry {
        self.follow(self.root.acquire(address.bits(0, A::ROOT)), address, A::ROOT)
    }

    /// Where `entry` leads to for an address whose first `offset` bits led to it.
    #[inline]
    fn follow(&self, mut entry: Entry, address: A, mut offset: u8) -> Entry {
        while entry.is_node() {
            entry = self.nodes.acquire(start::<A>(entry) + address.bits(offset, A::STRIDE));
            offset += A::STRIDE;
        }
        entry
    }

    /// The entries of as many addresses, at most [`VECTOR`]. Level by level: the loads of one level do
    /// not depend on each other, and there is little else between them, so that the processor waits for
    /// many at a time.
    #[inline]
    pub fn find_bulk<'a>(&self, addresses: &[A], search: &'a mut Search) -> &'a [Entry] {
        self.begin(addresses, search);
        let Search { found, open } = search;
        let mut offset = A::ROOT;
        while open.count > 0 && offset + A::STRIDE <= u64::BITS as u8 {
            open.descend(A::STRIDE, found, |entry, within| self.nodes.relaxed(start::<A>(entry) + within));
            offset += A::STRIDE;
        }
        for &at in &open.at[..open.count] {
            let entry = &mut found[usize::from(at)];
            *entry = self.follow(*entry, addresses[usize::from(at)], offset);
        }
        // What the caller finds through the entries is at least as new, too.
        fence(Ordering::Acquire);
        &found[..addresses.len()]
    }

    /// The root's entries of addresses, and those that lead to nodes. If the summary helps, only those are looked up in the
    /// root that it does not tell.
    #[inline(always)]
    fn begin(&self, addresses: &[A], search: &mut Search) {
        let root_index = |address: A| address.bits(0, A::ROOT);
        let summary = self.summary.as_ref().filter(|summary| summary.helps());
        let Some(summary) = summary else {
            return search.begin(addresses, A::ROOT, |address| self.root.relaxed(root_index(address)));
        };
        search.begin(addresses, 0, |address| summary.relaxed(root_index(address)));
        search.open.descend(A::ROOT, &mut search.found, |_, at| self.root.relaxed(at));
    }

    /// Has every address of `prefix` whose route is no longer lead to `leaf`; false, and nothing has
    /// changed, if no node is left.
    pub fn paint(&self, prefix: Prefix<A>, leaf: Entry, pool: &mut Pool, epochs: &Epochs) -> bool {
        let root = Block { words: &self.root, start: 0, offset: 0, bits: A::ROOT };
        let painted = self.paint_in(&root, &mut Brush { prefix, leaf, pool, epochs });
        if let (true, Some(summary)) = (painted, &self.summary) {
            summary.refresh(&self.root, &root.range(prefix));
        }
        painted
    }

    fn paint_in(&self, block: &Block, brush: &mut Brush<A>) -> bool {
        if brush.prefix.length() <= block.end() {
            self.fill(block, block.range(brush.prefix), brush);
            return true;
        }
        let at = block.range(brush.prefix).start;
        let mut entry = block.words.relaxed(at);
        if !entry.is_node() {
            let Some(number) = brush.pool.take(brush.epochs) else { return false };
            let inherited = entry;
            entry = Entry::to_node(number);
            let node = self.node(entry, block.end());
            node.all().for_each(|at| node.words.prepare(at, inherited));
            block.words.publish(at, entry);
        }
        let node = self.node(entry, block.end());
        let painted = self.paint_in(&node, brush);
        if let Some(inherited) = node.inherited() {
            block.words.publish(at, inherited);
            brush.pool.retire(entry.node(), brush.epochs);
        }
        painted
    }

    /// Paints a range of entries and all below.
    fn fill(&self, block: &Block, range: Range<usize>, brush: &Brush<A>) {
        for at in range {
            let entry = block.words.relaxed(at);
            if entry.is_node() {
                let node = self.node(entry, block.end());
                self.fill(&node, node.all(), brush);
            } else if entry.length() <= brush.prefix.length() {
                block.words.publish(at, brush.leaf);
            }
        }
    }

    fn node(&self, entry: Entry, offset: u8) -> Block<'_> {
        Block { words: &self.nodes, start: start::<A>(entry), offset, bits: A::STRIDE }
    }
}

impl Search {
    pub fn new() -> Box<Self> {
        let entries = [Entry::NONE; VECTOR];
        Box::new(Self {
            found: entries,
            open: Open { count: 0, at: [0; VECTOR], entries, bits: [0; VECTOR] },
        })
    }

    /// Begins with what `load` tells of each address by its first `offset` bits.
    #[inline(always)]
    fn begin<A: Address>(&mut self, addresses: &[A], offset: u8, load: impl Fn(A) -> Entry) {
        for (address, entry) in addresses.iter().zip(self.found.iter_mut()) {
            *entry = load(*address);
        }
        self.open.count = 0;
        for (at, (address, entry)) in addresses.iter().zip(self.found.iter()).enumerate() {
            self.open.keep(at as u8, *entry, address.head() << offset);
        }
    }
}

impl Open {
    /// Goes one level down for all of them: `load` says where an entry leads to with the next `bits` bits.
    #[inline(always)]
    fn descend(&mut self, bits: u8, found: &mut [Entry; VECTOR], load: impl Fn(Entry, usize) -> Entry) {
        // What the entries lead to is at least as new as they are.
        fence(Ordering::Acquire);
        let count = std::mem::take(&mut self.count);
        for (entry, left) in self.entries[..count].iter_mut().zip(&self.bits) {
            *entry = load(*entry, (left >> (u64::BITS - u32::from(bits))) as usize);
        }
        for index in 0..count {
            let (at, entry) = (self.at[index], self.entries[index]);
            found[usize::from(at)] = entry;
            self.keep(at, entry, self.bits[index] << bits);
        }
    }

    /// Keeps an address if it is not found yet: without a branch, since nobody can guess which are. There
    /// is room for a vector.
    #[inline(always)]
    fn keep(&mut self, at: u8, entry: Entry, bits: u64) {
        let last = self.count % VECTOR;
        (self.at[last], self.entries[last], self.bits[last]) = (at, entry, bits);
        self.count += usize::from(entry.is_node());
    }
}

impl Block<'_> {
    /// The first bit after its own; beyond an address's last one if that has fewer.
    fn end(&self) -> u8 {
        self.offset + self.bits
    }

    fn all(&self) -> Range<usize> {
        self.start..self.start + entries(self.bits)
    }

    /// The entries of a prefix that ends here, or the one that a longer prefix is below of.
    fn range<A: Address>(&self, prefix: Prefix<A>) -> Range<usize> {
        let first = self.start + prefix.address().bits(self.offset, self.bits);
        first..first + entries(self.end().saturating_sub(prefix.length()))
    }

    /// The entry that all are copies of, if no route ends here or below.
    fn inherited(&self) -> Option<Entry> {
        let first = self.words.relaxed(self.start);
        let inherits = !first.is_node() && first.length() <= self.offset;
        (inherits && self.all().all(|at| self.words.relaxed(at) == first)).then_some(first)
    }
}

/// How many entries stand for so many bits.
const fn entries(bits: u8) -> usize {
    1 << bits
}

/// Where the node that `entry` leads to begins.
#[inline(always)]
fn start<A: Address>(entry: Entry) -> usize {
    (entry.node() as usize) << A::STRIDE
}
