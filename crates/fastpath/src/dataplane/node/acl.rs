//! What the four nodes of access lists have in common: packets enter; those that the list of their interface permits
//! go on, all others are dropped without a word to their sender. Each is counted by the rule that matched it. Where a
//! list of the interface keeps states, the packets of known flows go on without being looked up.

mod stateful;

use std::mem;

use wire::{ipv6, neighbour};

use super::Node;
use crate::dataplane::acl::classifier::{Classifier, Packet};
use crate::dataplane::acl::field::Value;
use crate::dataplane::acl::key::{self, service};
use crate::dataplane::acl::{AccessList, Action};
use crate::dataplane::counters::{Counter, Reason};
use crate::dataplane::flow::member::{self, Member};
use crate::dataplane::forwarding::Forwarding;
use crate::dataplane::graph::Context;
use crate::dataplane::states::{self, Terms};
use crate::dataplane::vector::{Index, PACKETS, Packets};

use self::stateful::Place;

/// A version of IP, as access lists see its packets.
pub(super) trait Version {
    /// Its addresses.
    type Address: Value;

    /// By which rules are found.
    fn classifier(list: &AccessList) -> &Classifier<Self::Address>;

    /// What rules look at in a packet.
    type Packet<'a>: Packet<Self::Address>;

    /// A packet of these bytes.
    fn packet(bytes: &[u8]) -> Self::Packet<'_>;

    /// What a packet is to a flow.
    fn member(packet: &[u8]) -> Member;

    /// Whether a packet goes on though no rule matches it.
    fn passes_unmatched(packet: &[u8]) -> bool;
}

/// IPv4.
pub(super) struct Ip4;

impl Version for Ip4 {
    type Address = u32;

    #[inline(always)]
    fn classifier(list: &AccessList) -> &Classifier<u32> {
        list.ip4()
    }

    type Packet<'a> = key::Ip4<'a>;

    #[inline(always)]
    fn packet(bytes: &[u8]) -> key::Ip4<'_> {
        key::Ip4(bytes)
    }

    #[inline(always)]
    fn member(packet: &[u8]) -> Member {
        member::of_ip4(packet)
    }

    fn passes_unmatched(_: &[u8]) -> bool {
        false
    }
}

/// IPv6.
pub(super) struct Ip6;

impl Version for Ip6 {
    type Address = u128;

    #[inline(always)]
    fn classifier(list: &AccessList) -> &Classifier<u128> {
        list.ip6()
    }

    type Packet<'a> = key::Ip6<'a>;

    #[inline(always)]
    fn packet(bytes: &[u8]) -> key::Ip6<'_> {
        key::Ip6(bytes)
    }

    #[inline(always)]
    fn member(packet: &[u8]) -> Member {
        member::of_ip6(packet)
    }

    /// Neighbour discovery passes, as ARP does.
    #[cold]
    fn passes_unmatched(packet: &[u8]) -> bool {
        let of = |kind: u8| service(ipv6::ICMP, u32::from(kind));
        let service = key::Ip6(packet).service();
        service == of(neighbour::SOLICITATION) || service == of(neighbour::ADVERTISEMENT)
    }
}

/// Which list of which interface a packet is held against.
pub(super) trait Direction {
    /// Whether packets arrive there, and do not leave.
    const INPUT: bool;

    /// The interface.
    fn interface(forwarding: &Forwarding, packets: &Packets, index: Index) -> u16;
}

/// In: that of the interface that it arrived at.
pub(super) struct Input;

impl Direction for Input {
    const INPUT: bool = true;

    #[inline(always)]
    fn interface(_: &Forwarding, packets: &Packets, index: Index) -> u16 {
        packets.arrived[index]
    }
}

/// Out: that of the interface that its adjacency leads out by.
pub(super) struct Output;

impl Direction for Output {
    const INPUT: bool = false;

    #[inline(always)]
    fn interface(forwarding: &Forwarding, packets: &Packets, index: Index) -> u16 {
        let adjacency = forwarding.adjacencies.get(packets.adjacency[index] as usize);
        adjacency.map_or(u16::MAX, |adjacency| adjacency.interface)
    }
}

/// Sends those packets to `node` that go on and whose interface has a list that what arrives is held against.
#[inline(never)]
pub(super) fn divert(
    forwarding: &Forwarding,
    packets: &Packets,
    (vector, next): (&[Index], &mut [Node]),
    node: Node,
) {
    let has_list = |index: Index| {
        let interface = forwarding.interfaces.get(usize::from(packets.arrived[index]));
        interface.is_some_and(|interface| interface.filters.look_at_input())
    };
    for (&index, next) in vector.iter().zip(next) {
        if *next != Node::ErrorDrop && has_list(index) {
            *next = node;
        }
    }
}

/// Decides about a vector, run by run of packets of one interface: those that are permitted go where `onward` says,
/// the others are dropped for `denied`.
#[inline(always)]
pub(super) fn process<V: Version, D: Direction>(
    context: &mut Context,
    packets: &mut Packets,
    (mut vector, mut next): (&[Index], &mut [Node]),
    denied: Reason,
    onward: impl Fn(&Forwarding, &mut Packets, Index) -> Node,
) {
    let Context { forwarding, scratch, worker, states, .. } = context;
    let forwarding: &Forwarding = forwarding;
    let onward = |packets: &mut Packets, index| onward(forwarding, packets, index);
    while let Some(&first) = vector.first() {
        let number = D::interface(forwarding, packets, first);
        let is_same = |index: &&Index| D::interface(forwarding, packets, **index) == number;
        let count = vector.iter().take_while(is_same).count();
        let runs = vector.split_at_checked(count).zip(mem::take(&mut next).split_at_mut_checked(count));
        let Some(((run, others), (decided, undecided))) = runs else { return };
        (vector, next) = (others, undecided);
        let filters = forwarding.interfaces.get(usize::from(number)).map(|interface| &interface.filters);
        if let Some(filters) = filters.filter(|filters| filters.keep_states()) {
            let terms = Terms::new(filters, &forwarding.timeouts, states::now());
            let place = Place { interface: number, terms, denied, worker: *worker };
            stateful::decide::<V, D>(
                place,
                states.as_deref_mut(),
                packets,
                &mut scratch.rules,
                (run, decided),
                onward,
            );
            continue;
        }
        let Some(list) = filters.and_then(|filters| filters.of(D::INPUT)) else {
            // It had one when the packets were sent here.
            run.iter().zip(decided).for_each(|(&index, next)| *next = onward(packets, index));
            continue;
        };
        let held = Held { list, counters: list.counters(*worker), denied };
        held.decide::<V>(packets, &mut scratch.rules, (run, decided), onward);
    }
}

/// What packets are held against that have no states.
struct Held<'a> {
    list: &'a AccessList,
    /// Those of this worker.
    counters: &'a [Counter],
    /// Why those are dropped that the list denies.
    denied: Reason,
}

impl Held<'_> {
    /// Decides about packets; `found` is room for a number of each.
    #[inline(always)]
    fn decide<V: Version>(
        &self,
        packets: &mut Packets,
        found: &mut [u32; PACKETS],
        (run, decided): (&[Index], &mut [Node]),
        onward: impl Fn(&mut Packets, Index) -> Node,
    ) {
        let found = found.get_mut(..run.len()).unwrap_or_default();
        let packet = |at: usize| V::packet(run.get(at).map_or(&[][..], |&index| packets.packet(index)));
        V::classifier(self.list).find_all(packet, found);
        let next_of = |action, packets: &mut Packets, index| {
            let passes = match action {
                Some(Action::Permit | Action::KeepState) => true,
                Some(Action::Deny) => false,
                None => V::passes_unmatched(packets.packet(index)),
            };
            if passes { onward(packets, index) } else { packets.drop(index, self.denied) }
        };
        let decided = run.iter().zip(decided);
        if let Some(found) = common(found) {
            let action = self.count(found, run.len());
            decided.for_each(|(&index, next)| *next = next_of(action, packets, index));
        } else {
            let decided = decided.zip(&*found);
            decided
                .for_each(|((&index, next), &found)| *next = next_of(self.count(found, 1), packets, index));
        }
    }

    /// Counts packets at the rule that was found; says what becomes of them.
    #[inline(always)]
    fn count(&self, found: u32, packets: usize) -> Option<Action> {
        let rule = self.list.rule(found);
        if let Some(counter) = self.counters.get(rule) {
            counter.add(packets as u64);
        }
        self.list.action(rule)
    }
}

/// The rule that was found for all packets, where it is one.
#[inline(always)]
fn common(found: &[u32]) -> Option<u32> {
    let first = *found.first()?;
    (found.iter().fold(0, |others, &rule| others | (rule ^ first)) == 0).then_some(first)
}
