//! The adjacencies of next hops: hops enter, indices leave, one for each hop as long as a route, a group or a
//! neighbour holds it.
//!
//! An index that nobody holds any more may still be in a worker's hands, which looked it up before the route
//! went away. It is given to another hop only after every worker has ended the turn that it was in: a worker
//! keeps no index from one turn to the next. Each shows how many turns it has ended ([`Turns`]).
//!
//! Why the next turn does not find it: the route is stored away, then a sequentially consistent fence, then the
//! turns are read, *t*. The worker shows *t* + 1, then runs such a fence with every pass over the routes (see
//! `fib::epoch`), then looks. Since the router did not see *t* + 1, its fence came first, and the worker sees
//! that the route is gone.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::sync::{Arc, Weak};

use super::Hop;
use crate::fib::{Error, NextHop};

/// How many turns a worker has ended, away from what others write.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Turns(AtomicU64);

impl Turns {
    fn ended(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }

    /// A turn has ended. For the worker alone.
    #[inline(always)]
    pub fn end(&self) {
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(1), Ordering::Release);
    }
}

/// A hop that has an index.
#[derive(Debug)]
struct Held {
    hop: Hop,
    uses: usize,
    /// The edition that it was made for.
    edition: u64,
}

/// An index that waits for workers to end their turns.
#[derive(Debug)]
struct Retired {
    index: NextHop,
    /// By worker, how many turns it had ended.
    turns: Vec<(Weak<Turns>, u64)>,
}

/// All next hops.
#[derive(Debug, Default)]
pub(super) struct Hops {
    indices: HashMap<Hop, NextHop>,
    /// By index; the first is that of no hop.
    held: Vec<Option<Held>>,
    free: Vec<NextHop>,
    retired: VecDeque<Retired>,
    workers: Vec<Weak<Turns>>,
    /// How often adjacencies were published.
    edition: u64,
}

impl Hops {
    /// For one more worker.
    pub fn attach(&mut self) -> Arc<Turns> {
        let turns = Arc::<Turns>::default();
        self.workers.push(Arc::downgrade(&turns));
        turns
    }

    /// The index of a hop, if it has one.
    pub fn get(&self, hop: Hop) -> Option<NextHop> {
        self.indices.get(&hop).copied()
    }

    /// The hop of an index.
    pub fn hop(&self, index: NextHop) -> Option<Hop> {
        self.held.get(index.index() as usize)?.as_ref().map(|held| held.hop)
    }

    /// All hops that have an index.
    pub fn iter(&self) -> impl Iterator<Item = (Hop, NextHop)> + '_ {
        self.indices.iter().map(|(&hop, &index)| (hop, index))
    }

    /// The index of a hop that is held once more, and whether it is a new one, whose adjacency is to be made.
    pub fn hold(&mut self, hop: Hop) -> Result<(NextHop, bool), Error> {
        if let Some(&index) = self.indices.get(&hop) {
            if let Some(Some(held)) = self.held.get_mut(index.index() as usize) {
                held.uses += 1;
            }
            return Ok((index, false));
        }
        let index = self.take()?;
        let at = index.index() as usize;
        if at >= self.held.len() {
            self.held.resize_with(at + 1, || None);
        }
        self.held[at] = Some(Held { hop, uses: 1, edition: self.edition });
        self.indices.insert(hop, index);
        Ok((index, true))
    }

    /// An index is held once less.
    pub fn release(&mut self, index: NextHop) {
        let Some(place) = self.held.get_mut(index.index() as usize) else { return };
        let Some(held) = place else { return };
        held.uses -= 1;
        if held.uses > 0 {
            return;
        }
        self.indices.remove(&held.hop);
        *place = None;
        fence(Ordering::SeqCst);
        self.workers.retain(|turns| turns.strong_count() > 0);
        let turns = self.workers.iter().filter_map(|turns| Some((turns.clone(), turns.upgrade()?.ended())));
        self.retired.push_back(Retired { index, turns: turns.collect() });
    }

    /// Whether the adjacency of an index was made since adjacencies were last published.
    pub fn is_new(&self, index: NextHop) -> bool {
        let held = self.held.get(index.index() as usize).and_then(Option::as_ref);
        held.is_some_and(|held| held.edition == self.edition)
    }

    /// Adjacencies have been published.
    pub fn published(&mut self) {
        self.edition += 1;
    }

    /// An index that nobody holds.
    fn take(&mut self) -> Result<NextHop, Error> {
        while let Some(retired) = self.retired.pop_front_if(|retired| retired.is_out_of_hands()) {
            self.free.push(retired.index);
        }
        match self.free.pop() {
            Some(index) => Ok(index),
            None => NextHop::new(self.held.len().max(1) as u32),
        }
    }
}

impl Retired {
    /// Whether every worker has ended its turn or is gone.
    fn is_out_of_hands(&self) -> bool {
        self.turns.iter().all(|(turns, then)| turns.upgrade().is_none_or(|turns| turns.ended() != *then))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataplane::counters::Reason;

    fn index(hops: &mut Hops, number: u16) -> u32 {
        hops.hold(Hop::Neighbour(number, [10, 0, 0, 1].into())).unwrap().0.index()
    }

    #[test]
    fn a_hop_keeps_its_index_as_long_as_it_is_held() {
        let mut hops = Hops::default();
        assert_eq!(index(&mut hops, 1), 1);
        assert_eq!(index(&mut hops, 2), 2);
        assert_eq!(index(&mut hops, 1), 1);
        let (first, new) = hops.hold(Hop::Neighbour(1, [10, 0, 0, 1].into())).unwrap();
        assert!(!new && hops.is_new(first));
        hops.published();
        assert!(!hops.is_new(first));
        for _ in 0..2 {
            hops.release(first);
            assert_eq!(hops.get(Hop::Neighbour(1, [10, 0, 0, 1].into())), Some(first));
        }
        hops.release(first);
        assert_eq!(hops.get(Hop::Neighbour(1, [10, 0, 0, 1].into())), None);
        let (again, new) = hops.hold(Hop::Drop(Reason::Ip4Blackhole)).unwrap();
        assert!(new && again == first && hops.is_new(again), "nobody can have it in hand");
    }

    #[test]
    fn an_index_in_a_workers_hands_is_not_given_to_another_hop() {
        let mut hops = Hops::default();
        let workers = [hops.attach(), hops.attach()];
        let (first, _) = hops.hold(Hop::Punt).unwrap();
        hops.release(first);
        assert_eq!(index(&mut hops, 2), 2);
        workers[0].end();
        assert_eq!(index(&mut hops, 3), 3);
        workers[1].end();
        assert_eq!(index(&mut hops, 4), first.index());
        hops.release(first);
        workers[0].end();
        assert_eq!(index(&mut hops, 5), 4);
        drop(workers);
        assert_eq!(index(&mut hops, 6), first.index());
    }
}
