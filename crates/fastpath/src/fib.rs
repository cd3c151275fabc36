//! The forwarding information base: routes enter, the next hop of every destination leaves.
//!
//! ```text
//! insert, withdraw ──► Fib: Rib (exact routes) ──► Trie, Groups ──► Reader ──► Pass ──► next hops
//!                      one writer                  shared words     one a worker
//! ```
//!
//! One thread owns the [`Fib`] and changes it. Each worker owns a [`Reader`], begins a [`Pass`] for
//! every vector of packets and looks destinations up in it. Nothing that a reader does waits for the
//! writer or for another reader: entries are words that are loaded and stored whole.
//!
//! # What a reader sees
//! - Of one route that changes, every address has the old next hop or the new one, nothing else. A
//!   route over many entries changes entry by entry, so that two addresses may differ for a moment.
//! - A node is filled before the entry that leads to it is stored with `Release`; readers load entries
//!   with `Acquire` (in bulk: `Relaxed`, and an `Acquire` fence before anything is followed). So a reader
//!   that finds a node finds it filled. The same holds for groups, and for whatever the writer's thread wrote
//!   of a next hop elsewhere before it inserted the first route through it.
//! - A node or group that was taken out is used again only after every pass has ended that may have
//!   found it; `epoch` says why that is certain.

mod address;
mod entry;
mod epoch;
mod error;
mod group;
mod memory;
mod pool;
mod rib;
mod summary;
mod trie;

use std::sync::Arc;

pub use self::address::{Address, Prefix};
pub use self::entry::{Group, NextHop, Via};
pub use self::error::Error;
pub use self::group::check_members;

use self::entry::Entry;
use self::epoch::{Epochs, Slot};
use self::group::Groups;
use self::pool::Pool;
use self::rib::Rib;
use self::trie::{Search, Trie};

/// The most addresses that one step of a bulk lookup works on; more are taken in several steps.
pub const VECTOR: usize = 256;

/// For how much address space is set aside. Memory is taken when it is first written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// Nodes below the root, of [`Address::STRIDE`] bits each.
    pub nodes: u32,
    /// Groups of next hops.
    pub groups: u32,
}

impl Capacity {
    /// Enough for several times today's whole Internet.
    #[must_use]
    pub const fn of<A: Address>() -> Self {
        Self { nodes: A::NODES, groups: 4096 }
    }
}

/// How much is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Routes.
    pub routes: usize,
    /// Nodes that lookups go through.
    pub nodes: usize,
    /// Nodes that were taken out, and that a pass may still be in.
    pub retired: usize,
    /// Groups of next hops.
    pub groups: usize,
    /// Bytes of the root, its summary, and every node that was ever used.
    pub bytes: usize,
}

/// What the writer and the readers share.
struct Shared<A> {
    trie: Trie<A>,
    groups: Groups,
    epochs: Epochs,
}

/// A forwarding information base for one kind of address: its writer.
pub struct Fib<A> {
    shared: Arc<Shared<A>>,
    rib: Rib<A>,
    nodes: Pool,
    groups: Pool,
    /// By group, how many routes go through it; `None` is no group.
    uses: Vec<Option<usize>>,
}

impl<A: Address> Fib<A> {
    /// One without routes.
    ///
    /// # Errors
    /// [`Error::Memory`] when there is not so much address space.
    pub fn new(capacity: Capacity) -> Result<Self, Error> {
        let trie = Trie::new(capacity.nodes)?;
        let groups = Groups::new(capacity.groups)?;
        Ok(Self {
            shared: Arc::new(Shared { trie, groups, epochs: Epochs::default() }),
            rib: Rib::default(),
            nodes: Pool::new(capacity.nodes),
            groups: Pool::new(capacity.groups),
            uses: Vec::new(),
        })
    }

    /// For one more worker.
    #[must_use]
    pub fn reader(&self) -> Reader<A> {
        Reader {
            shared: Arc::clone(&self.shared),
            slot: self.shared.epochs.register(),
            search: Search::new(),
        }
    }

    /// Has packets to `prefix` go through `via`, unless a longer prefix holds them; returns what they
    /// went through before, if this very prefix had a route.
    ///
    /// # Errors
    /// [`Error::Full`], [`Error::NoGroup`]; nothing has changed then.
    pub fn insert(&mut self, prefix: Prefix<A>, via: impl Into<Via>) -> Result<Option<Via>, Error> {
        let via = via.into();
        self.hold(via)?;
        let leaf = Entry::leaf(prefix.length(), via);
        if !self.shared.trie.paint(prefix, leaf, &mut self.nodes, &self.shared.epochs) {
            self.release(via);
            return Err(Error::Full { what: "nodes", capacity: self.nodes.capacity() });
        }
        let before = self.rib.insert(prefix, via);
        if let Some(before) = before {
            self.release(before);
        }
        Ok(before)
    }

    /// Takes the route of `prefix` away, so that its packets go by the next shorter prefix; returns
    /// what they went through, or `None` if there was no such route.
    pub fn withdraw(&mut self, prefix: Prefix<A>) -> Option<Via> {
        let via = self.rib.remove(prefix)?;
        let leaf = self.rib.cover(prefix).map_or(Entry::NONE, |(length, via)| Entry::leaf(length, via));
        let painted = self.shared.trie.paint(prefix, leaf, &mut self.nodes, &self.shared.epochs);
        debug_assert!(painted, "the nodes of a route are there as long as it is");
        self.release(via);
        Some(via)
    }

    /// What packets go through by the route of this very prefix.
    #[must_use]
    pub fn get(&self, prefix: Prefix<A>) -> Option<Via> {
        self.rib.get(prefix)
    }

    /// All routes, in no order.
    pub fn routes(&self) -> impl Iterator<Item = (Prefix<A>, Via)> + '_ {
        self.rib.iter()
    }

    /// How many of 256 flows through `via` go to each next hop, in the order of these.
    #[must_use]
    pub fn shares(&self, via: Via) -> Vec<(NextHop, usize)> {
        match via.group() {
            Some(group) => self.shared.groups.shares(group),
            None => via.next_hop().map(|hop| (hop, group::BUCKETS)).into_iter().collect(),
        }
    }

    /// A new group of next hops, over which packets are spread by flow. A next hop that stands twice
    /// among the members gets twice the share.
    ///
    /// # Errors
    /// [`Error::Members`] unless there are 1 to 256 members; [`Error::Full`].
    pub fn add_group(&mut self, members: &[NextHop]) -> Result<Group, Error> {
        check_members(members.len())?;
        let full = Error::Full { what: "groups", capacity: self.groups.capacity() };
        let index = self.groups.take(&self.shared.epochs).ok_or(full)?;
        let group = Group(index);
        self.shared.groups.clear(group);
        self.shared.groups.share_out(group, members);
        let at = index as usize;
        self.uses.resize(self.uses.len().max(at + 1), None);
        self.uses[at] = Some(0);
        Ok(group)
    }

    /// Gives a group other members. Flows of members that stay do not move when others leave, and when
    /// others join at the end of the list only as many move as these get.
    ///
    /// # Errors
    /// [`Error::Members`] unless there are 1 to 256 members; [`Error::NoGroup`].
    pub fn set_group(&mut self, group: Group, members: &[NextHop]) -> Result<(), Error> {
        check_members(members.len())?;
        self.uses_of(group)?;
        self.shared.groups.share_out(group, members);
        Ok(())
    }

    /// Removes a group that no route goes through.
    ///
    /// # Errors
    /// [`Error::GroupInUse`], [`Error::NoGroup`].
    pub fn remove_group(&mut self, group: Group) -> Result<(), Error> {
        match self.uses_of(group)? {
            0 => {
                self.uses[group.0 as usize] = None;
                self.groups.retire(group.0, &self.shared.epochs);
                Ok(())
            }
            &mut routes => Err(Error::GroupInUse { group: group.0, routes }),
        }
    }

    /// How much is used.
    #[must_use]
    pub fn usage(&self) -> Usage {
        Usage {
            routes: self.rib.len(),
            nodes: self.nodes.used(),
            retired: self.nodes.retired(),
            groups: self.groups.used(),
            bytes: Trie::<A>::bytes(self.nodes.touched()),
        }
    }

    fn uses_of(&mut self, group: Group) -> Result<&mut usize, Error> {
        let uses = self.uses.get_mut(group.0 as usize).and_then(Option::as_mut);
        uses.ok_or(Error::NoGroup { group: group.0 })
    }

    /// One route more goes through `via`.
    fn hold(&mut self, via: Via) -> Result<(), Error> {
        if let Some(group) = via.group() {
            *self.uses_of(group)? += 1;
        }
        Ok(())
    }

    /// One route less goes through `via`, which was held.
    fn release(&mut self, via: Via) {
        if let Some(Ok(uses)) = via.group().map(|group| self.uses_of(group)) {
            *uses -= 1;
        }
    }
}

/// A worker's access to a [`Fib`].
pub struct Reader<A> {
    shared: Arc<Shared<A>>,
    slot: Arc<Slot>,
    search: Box<Search>,
}

impl<A: Address> Reader<A> {
    /// Begins a pass, in which destinations can be looked up. It should end with the vector of packets
    /// that it is for: what the writer takes out meanwhile is not used again before that.
    pub fn pass(&mut self) -> Pass<'_, A> {
        self.shared.epochs.enter(&self.slot);
        Pass { reader: self }
    }
}

impl<A> Drop for Reader<A> {
    fn drop(&mut self) {
        self.shared.epochs.forget(&self.slot);
    }
}

/// A worker's lookups for one vector of packets.
pub struct Pass<'a, A> {
    reader: &'a mut Reader<A>,
}

impl<A: Address> Pass<'_, A> {
    /// The next hop of a packet to `address`; a group chooses by `flow`, a hash whose low eight bits are
    /// evenly spread.
    #[must_use]
    pub fn lookup(&self, address: A, flow: u32) -> NextHop {
        let shared = &self.reader.shared;
        shared.groups.resolve(shared.trie.find(address).via(), || flow)
    }

    /// The next hops of packets to `addresses`, as many as there are of both. `flow` says the flow hash
    /// of the packet at an index, and is asked only where a group has to choose.
    pub fn lookup_bulk(&mut self, addresses: &[A], flow: impl Fn(usize) -> u32, hops: &mut [NextHop]) {
        let Reader { shared, search, .. } = &mut *self.reader;
        let vectors = addresses.chunks(VECTOR).zip(hops.chunks_mut(VECTOR));
        for (vector, (addresses, hops)) in vectors.enumerate() {
            let entries = shared.trie.find_bulk(addresses, search);
            for (at, (hop, entry)) in hops.iter_mut().zip(entries).enumerate() {
                *hop = shared.groups.resolve(entry.via(), || flow(vector * VECTOR + at));
            }
        }
    }
}

impl<A> Drop for Pass<'_, A> {
    fn drop(&mut self) {
        self.reader.slot.leave();
    }
}
