//! Which of the kernel's routes of one prefix counts: routes enter as the kernel tells them, changes of
//! the one that it uses leave.
//!
//! The kernel may hold several routes of a prefix and uses the one with the lowest metric; of equal ones
//! the first in its list. It tells when one comes, by which place it took, and when one goes; not always:
//! some go unsaid with an interface, and notifications can be lost. So tables are read again from time to
//! time: what was not seen again has gone.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::{Path, RouteChange};
use crate::fib::{Address, Prefix};

/// Where a new route stands among those of its prefix and metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Where the first one was, which it replaces.
    Replace,
    /// Before all others.
    First,
    /// After all others.
    Last,
    /// Where that one was whose next hops it has too (IPv6 adds to a route one by one).
    Join,
}

/// Whether what the kernel told agrees with what was known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Agreement {
    /// It does.
    Agrees,
    /// Something went unsaid: the tables should be read again.
    Doubtful,
}

/// A route that the kernel holds.
#[derive(Clone, Debug)]
struct Candidate {
    metric: u32,
    /// When it was last seen.
    reading: u32,
    path: Arc<Path>,
}

/// All routes of the kernel's main table.
pub(super) struct Candidates<A> {
    /// The one that the kernel uses. Nearly all prefixes have no other.
    best: HashMap<Prefix<A>, Candidate>,
    /// The others, where there are some, by metric and then as they stand in the kernel's list.
    others: HashMap<Prefix<A>, Vec<Candidate>>,
    paths: Paths,
    /// How many times the table was read.
    reading: u32,
}

impl<A: Address> Candidates<A> {
    pub fn new() -> Self {
        Self { best: HashMap::new(), others: HashMap::new(), paths: Paths::default(), reading: 0 }
    }

    /// The table is about to be read, from its beginning.
    pub fn begin_reading(&mut self) {
        self.reading = self.reading.wrapping_add(1);
    }

    /// A route was read.
    pub fn read(&mut self, prefix: Prefix<A>, metric: u32, path: Path) -> Option<RouteChange<A>> {
        let candidate = self.candidate(metric, path);
        let candidate = match self.note(prefix, candidate) {
            Ok(change) => return change,
            Err(candidate) => candidate,
        };
        let reading = self.reading;
        self.edit(prefix, |list| {
            list.retain(|other| !candidate.equals(other));
            let before = |other: &Candidate| {
                other.metric < metric || other.metric == metric && other.reading == reading
            };
            let at = list.iter().take_while(|other| before(other)).count();
            list.insert(at, candidate);
        })
    }

    /// The table was read to its end: what was not in it has gone.
    pub fn end_reading(&mut self, mut changed: impl FnMut(RouteChange<A>)) {
        let reading = self.reading;
        let stale = |candidate: &Candidate| candidate.reading != reading;
        let among_best = self.best.iter().filter(|(_, best)| stale(best)).map(|(prefix, _)| *prefix);
        let among_others = self.others.iter().filter(|(_, list)| list.iter().any(stale));
        let touched: HashSet<Prefix<A>> = among_best.chain(among_others.map(|(prefix, _)| *prefix)).collect();
        for prefix in touched {
            if let Some(change) = self.edit(prefix, |list| list.retain(|candidate| !stale(candidate))) {
                changed(change);
            }
        }
    }

    /// The kernel told of a route that came.
    pub fn add(
        &mut self,
        prefix: Prefix<A>,
        metric: u32,
        path: Path,
        place: Place,
    ) -> Option<RouteChange<A>> {
        let candidate = self.candidate(metric, path);
        let candidate = match self.note(prefix, candidate) {
            Ok(change) => return change,
            Err(candidate) => candidate,
        };
        self.edit(prefix, |list| insert(list, candidate, place))
    }

    /// The kernel told of a route, or of next hops of one, that went.
    pub fn remove(
        &mut self,
        prefix: Prefix<A>,
        metric: u32,
        path: &Path,
    ) -> (Option<RouteChange<A>>, Agreement) {
        let mut agreement = Agreement::Agrees;
        // The rest of a route from which next hops went is a path like any other.
        let mut paths = std::mem::take(&mut self.paths);
        let change = self.edit(prefix, |list| {
            let same = |other: &Candidate| other.metric == metric;
            if let Some(at) = list.iter().position(|other| same(other) && *other.path == *path) {
                list.remove(at);
                return;
            }
            let shares =
                |other: &Candidate| same(other) && other.path.without(path).as_ref() != Some(&*other.path);
            let Some(at) = list.iter().position(shares) else { return };
            match list[at].path.without(path) {
                Some(left) => list[at].path = paths.share(left),
                None => drop(list.remove(at)),
            }
            // IPv4 routes go as a whole, so this one was not as it was known.
            if u32::from(A::WIDTH) == u32::BITS {
                agreement = Agreement::Doubtful;
            }
        });
        self.paths = paths;
        (change, agreement)
    }

    /// How many prefixes have a route.
    #[cfg(test)]
    fn len(&self) -> usize {
        self.best.len()
    }

    fn candidate(&mut self, metric: u32, path: Path) -> Candidate {
        Candidate { metric, reading: self.reading, path: self.paths.share(path) }
    }

    /// Notes the only route of a prefix, as nearly all have, without a list of them; gives the route back where
    /// there are others.
    fn note(&mut self, prefix: Prefix<A>, candidate: Candidate) -> Result<Option<RouteChange<A>>, Candidate> {
        match self.best.entry(prefix) {
            Entry::Vacant(place) => {
                let path = Some(Arc::clone(&candidate.path));
                place.insert(candidate);
                Ok(Some(RouteChange { prefix, path }))
            }
            Entry::Occupied(mut known) if known.get().equals(&candidate) && self.others.is_empty() => {
                known.insert(candidate);
                Ok(None)
            }
            Entry::Occupied(_) => Err(candidate),
        }
    }

    /// Lets `edit` change the routes of a prefix, best first, and says if that changed the best.
    fn edit(&mut self, prefix: Prefix<A>, edit: impl FnOnce(&mut Vec<Candidate>)) -> Option<RouteChange<A>> {
        let before = self.best.remove(&prefix);
        let old = before.as_ref().map(|best| Arc::clone(&best.path));
        let mut list: Vec<Candidate> = before.into_iter().collect();
        if !self.others.is_empty() {
            list.extend(self.others.remove(&prefix).into_iter().flatten());
        }
        edit(&mut list);
        let mut left = list.into_iter();
        let best = left.next();
        let path = best.as_ref().map(|best| Arc::clone(&best.path));
        if let Some(best) = best {
            self.best.insert(prefix, best);
        }
        if left.len() > 0 {
            self.others.insert(prefix, left.collect());
        }
        (path != old).then_some(RouteChange { prefix, path })
    }
}

impl Candidate {
    fn equals(&self, other: &Self) -> bool {
        self.metric == other.metric && self.path == other.path
    }
}

/// Does to a list what the kernel did to its own. The kernel holds no route twice.
fn insert(list: &mut Vec<Candidate>, new: Candidate, place: Place) {
    let metric = new.metric;
    let first = |list: &[Candidate]| list.partition_point(|other| other.metric < metric);
    match place {
        Place::Replace => {
            let at = first(list);
            if list.get(at).is_some_and(|other| other.metric == metric) {
                list.remove(at);
            }
            list.retain(|other| !new.equals(other));
            list.insert(at, new);
        }
        Place::First => {
            list.retain(|other| !new.equals(other));
            list.insert(first(list), new);
        }
        Place::Last => {
            list.retain(|other| !new.equals(other));
            list.insert(list.partition_point(|other| other.metric <= metric), new);
        }
        Place::Join => {
            let joined = |other: &Candidate| other.metric == metric && other.path.is_within(&new.path);
            let end = list.partition_point(|other| other.metric <= metric);
            let at = list.iter().position(joined).unwrap_or(end);
            list.retain(|other| !joined(other));
            list.insert(at, new);
        }
    }
}

/// Paths, each kept once however many routes take it.
#[derive(Default)]
struct Paths {
    known: HashSet<Arc<Path>>,
    /// How many there were when those that no route takes any more were last thrown out.
    in_use: usize,
}

impl Paths {
    fn share(&mut self, path: Path) -> Arc<Path> {
        if let Some(known) = self.known.get(&path) {
            return Arc::clone(known);
        }
        if self.known.len() > 2 * self.in_use + 64 {
            self.known.retain(|path| Arc::strong_count(path) > 1);
            self.in_use = self.known.len();
        }
        let path = Arc::new(path);
        self.known.insert(Arc::clone(&path));
        path
    }
}

#[cfg(test)]
mod tests;
