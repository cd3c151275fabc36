//! Packets at an interface whose access lists keep states: those of flows that have one go on without being looked up; what
//! the others are is up to the list, if there is one for their direction.

use std::sync::Arc;

use super::{Direction, Node, Version};
use crate::dataplane::acl::{AccessList, Action};
use crate::dataplane::counters::{Counter, Reason};
use crate::dataplane::states::{Permission, States, Terms};
use crate::dataplane::vector::{Index, List, PACKETS, Packets};

/// Where packets are.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    /// The interface.
    pub interface: u16,
    /// What they are held against there.
    pub terms: Terms<'a>,
    /// Why those are dropped that the list denies.
    pub denied: Reason,
    /// The worker, by its number.
    pub worker: u16,
}

/// The counters of a worker at the lists of an interface, of what leaves and of what arrives.
#[derive(Clone, Copy)]
struct Counted<'a>([&'a [Counter]; 2]);

impl<'a> Counted<'a> {
    fn of(place: Place<'a>) -> Self {
        let counters = |list: &'a Arc<AccessList>| list.counters(place.worker);
        Self([false, true].map(|input| place.terms.filters.of(input).map_or(&[][..], counters)))
    }

    /// Counts a packet at the rule that lets it pass, or has let its flow begin.
    #[inline(always)]
    fn count(&self, Permission { input, rule }: Permission) {
        let [leaving, arriving] = self.0;
        if let Some(counter) = (if input { arriving } else { leaving }).get(rule) {
            counter.add(1);
        }
    }
}

/// Decides about the packets of an interface.
pub(super) fn decide<V: Version, D: Direction>(
    place: Place,
    states: Option<&mut States>,
    packets: &mut Packets,
    found: &mut [u32; PACKETS],
    (run, decided): (&[Index], &mut [Node]),
    onward: impl Fn(&mut Packets, Index) -> Node,
) {
    // The router has a table for each worker before any list keeps states.
    let Some(states) = states else { return packets.drop_all(run, Reason::AclStatesFull, decided) };
    let member = |at: usize| V::member(run.get(at).map_or(&[][..], |&index| packets.packet(index)));
    states.look_for(run.len(), (place.interface, !D::INPUT), member);
    states.misses.clear();
    let counted = Counted::of(place);
    for (at, (&index, next)) in run.iter().zip(&mut *decided).enumerate() {
        match states.pass(at, D::INPUT, &place.terms) {
            Some(permission) => {
                counted.count(permission);
                *next = onward(packets, index);
            }
            None => states.misses.push_if(at as u16, true),
        }
    }
    if states.misses.items().is_empty() {
        return;
    }
    match place.terms.filters.of(D::INPUT) {
        Some(list) => look_up::<V, D>(place, list, states, packets, found, (run, decided), onward),
        // What has no list may pass, and has no state of its own.
        None => {
            for &at in states.misses.items() {
                if let (Some(&index), Some(next)) =
                    (run.get(usize::from(at)), decided.get_mut(usize::from(at)))
                {
                    *next = onward(packets, index);
                }
            }
        }
    }
}

/// Holds those packets against a list that no state admits.
#[inline(never)]
fn look_up<V: Version, D: Direction>(
    place: Place,
    list: &AccessList,
    states: &mut States,
    packets: &mut Packets,
    found: &mut [u32; PACKETS],
    (run, decided): (&[Index], &mut [Node]),
    onward: impl Fn(&mut Packets, Index) -> Node,
) {
    let misses = std::mem::replace(&mut states.misses, List::EMPTY);
    let index_of = |at: u16| run.get(usize::from(at)).copied();
    let found = found.get_mut(..misses.items().len()).unwrap_or_default();
    let packet = |which: usize| {
        let index = misses.items().get(which).and_then(|&at| index_of(at));
        V::packet(index.map_or(&[][..], |index| packets.packet(index)))
    };
    V::classifier(list).find_all(packet, found);
    let counted = Counted::of(place);
    for (&at, &found) in misses.items().iter().zip(&*found) {
        let (Some(index), Some(next)) = (index_of(at), decided.get_mut(usize::from(at))) else { continue };
        let rule = list.rule(found);
        counted.count(Permission { input: D::INPUT, rule });
        let verdict = match list.action(rule) {
            Some(Action::Permit) => Ok(()),
            Some(Action::KeepState) => states.begin(usize::from(at), (D::INPUT, list, rule), &place.terms),
            Some(Action::Deny) => Err(place.denied),
            None if V::passes_unmatched(packets.packet(index)) => Ok(()),
            None => Err(place.denied),
        };
        *next = match verdict {
            Ok(()) => onward(packets, index),
            Err(reason) => packets.drop(index, reason),
        };
    }
}
