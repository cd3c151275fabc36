//! Groups of next hops: members enter, the next hop of every flow leaves.
//!
//! A group has 256 buckets, each with one next hop, and a flow's hash picks a bucket. Every place in the
//! list of members gets 256 / members of them, those at the beginning one more where that leaves a
//! remainder. When members change, a bucket changes only if its next hop now has fewer:
//! - a member leaves: its buckets are dealt out, and no other one changes, since no place gets fewer;
//! - members join at the end of the list: they get their buckets from others, and no other one changes.
//!
//! So flows move no more than they must (as in RFC 2992, section 1.1, but for the least possible share).

use std::collections::{BTreeMap, HashMap};
use std::io;

use super::Error;
use super::entry::{Entry, Group, NextHop, Via};
use super::memory::Words;

/// Buckets of a group, and its most members.
pub(super) const BUCKETS: usize = 256;

/// The buckets of all groups. A bucket is an entry that leads to a next hop.
pub(super) struct Groups {
    buckets: Words,
}

impl Groups {
    pub fn new(groups: u32) -> io::Result<Self> {
        Ok(Self { buckets: Words::zeroed(groups as usize * BUCKETS)? })
    }

    /// The next hop of `via`, for a packet of which `flow` says the hash.
    #[inline(always)]
    pub fn resolve(&self, via: Via, flow: impl FnOnce() -> u32) -> NextHop {
        match via.group() {
            None => NextHop(via.next_hop().map_or(0, NextHop::index)),
            Some(group) => {
                let bucket = self.buckets.acquire(start(group) + flow() as usize % BUCKETS);
                bucket.via().next_hop().unwrap_or(NextHop::NONE)
            }
        }
    }

    /// How many buckets each next hop has, in the order of these.
    pub fn shares(&self, group: Group) -> Vec<(NextHop, usize)> {
        let mut shares = BTreeMap::new();
        for bucket in 0..BUCKETS {
            if let Some(hop) = self.buckets.relaxed(start(group) + bucket).via().next_hop() {
                *shares.entry(hop).or_default() += 1;
            }
        }
        shares.into_iter().collect()
    }

    /// Forgets the members of a group that no reader can find.
    pub fn clear(&self, group: Group) {
        (0..BUCKETS).for_each(|bucket| self.buckets.prepare(start(group) + bucket, Entry::NONE));
    }

    /// Shares the buckets of `group` out among `members`, of which there are 1 to 256.
    pub fn share_out(&self, group: Group, members: &[NextHop]) {
        let mut buckets = [NextHop::NONE; BUCKETS];
        for (bucket, hop) in buckets.iter_mut().enumerate() {
            let entry = self.buckets.relaxed(start(group) + bucket);
            *hop = entry.via().next_hop().unwrap_or(NextHop::NONE);
        }
        let before = buckets;
        share_out(&mut buckets, members);
        for (bucket, hop) in buckets.into_iter().enumerate() {
            if hop != before[bucket] {
                self.buckets.publish(start(group) + bucket, Entry::leaf(0, hop.into()));
            }
        }
    }
}

/// Whether a group may have so many members.
///
/// # Errors
/// [`Error::Members`] unless there are 1 to 256.
pub fn check_members(count: usize) -> Result<(), Error> {
    if (1..=BUCKETS).contains(&count) { Ok(()) } else { Err(Error::Members { count }) }
}

fn start(group: Group) -> usize {
    group.0 as usize * BUCKETS
}

/// Gives each member its share of `buckets`, and leaves to each what it has of that.
fn share_out(buckets: &mut [NextHop; BUCKETS], members: &[NextHop]) {
    let mut due: HashMap<NextHop, usize> = HashMap::new();
    for (place, &member) in members.iter().enumerate() {
        let extra = usize::from(place < BUCKETS % members.len());
        *due.entry(member).or_default() += BUCKETS / members.len() + extra;
    }
    let keep = buckets.map(|hop| match due.get_mut(&hop) {
        Some(left) if *left > 0 => {
            *left -= 1;
            true
        }
        _ => false,
    });
    // In the order of the members, so that the result does not depend on chance.
    let mut dealt = members.iter().flat_map(|member| {
        let count = due.remove(member).unwrap_or(0);
        std::iter::repeat_n(*member, count)
    });
    for (hop, _) in buckets.iter_mut().zip(keep).filter(|(_, keep)| !keep) {
        *hop = dealt.next().unwrap_or(NextHop::NONE);
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn shares(members: &[NextHop], buckets: &[NextHop; BUCKETS]) -> Vec<usize> {
        members.iter().map(|member| buckets.iter().filter(|hop| *hop == member).count()).collect()
    }

    fn hops(count: usize) -> Vec<NextHop> {
        (1..=count as u32).map(NextHop).collect()
    }

    #[test]
    fn a_next_hop_that_stands_twice_gets_twice_the_share() {
        let mut buckets = [NextHop::NONE; BUCKETS];
        share_out(&mut buckets, &[NextHop(1), NextHop(2), NextHop(1)]);
        assert_eq!(shares(&hops(2), &buckets), [171, 85]);
    }

    proptest! {
        #[test]
        fn flows_move_no_more_than_they_must(
            count in 1..=BUCKETS,
            leaving in vec(any::<prop::sample::Index>(), 0..8),
            joining in 0..8usize,
        ) {
            let mut members = hops(count);
            let mut buckets = [NextHop::NONE; BUCKETS];
            share_out(&mut buckets, &members);
            for leaves in leaving {
                if members.len() == 1 {
                    break;
                }
                let left = members.remove(leaves.index(members.len()));
                let before = buckets;
                share_out(&mut buckets, &members);
                let stayed = before.iter().zip(&buckets).filter(|(old, _)| **old != left);
                prop_assert!(stayed.into_iter().all(|(old, new)| old == new));
            }
            for joins in 0..joining.min(BUCKETS - members.len()) {
                members.push(NextHop(1_000 + joins as u32));
                let before = buckets;
                share_out(&mut buckets, &members);
                let moved = before.iter().zip(&buckets).filter(|(old, new)| old != new).count();
                prop_assert_eq!(moved, BUCKETS / members.len());
            }
            let shares = shares(&members, &buckets);
            prop_assert_eq!(shares.iter().sum::<usize>(), BUCKETS);
            let even = BUCKETS / members.len();
            prop_assert!(shares.iter().all(|share| *share == even || *share == even + 1), "{shares:?}");
        }
    }
}
