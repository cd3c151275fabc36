//! Finds the first of many rules that a packet matches, without a walk over them: rules enter as ranges of four
//! fields, in their order; for the four values of a packet, the number of the first rule that holds them leaves.
//!
//! Each field is cut where the range of a rule begins or ends. The values between two cuts are in the ranges of the
//! same rules: a set, with a bit for each rule. A lookup finds the set of each field by binary search. The rules
//! that hold the packet are in all four sets, and the first of them is the lowest bit that all have (Lakshman and
//! Stiliadis, "High-Speed Policy-based Packet Forwarding Using Efficient Multi-dimensional Range Matching", SIGCOMM
//! 1998). A set begins with a bit for each of its words that is not zero, so that of thousands of bits a few words
//! are read (aggregated bit vectors: Baboescu and Varghese, "Scalable Packet Classification", SIGCOMM 2001).
//!
//! N rules make at most 2 N + 1 intervals of a field, each with a set of N bits. So memory and the time to build are
//! at most N² bits and steps of one word for each field, whatever the rules are; nothing grows with what packets hold.

use std::array;
use std::ops::RangeInclusive;

use super::field::{Field, Shape, Value};

/// How many packets are looked up at once, so that one does not wait for what another reads.
const LANES: usize = 8;

/// What is found where no rule holds a packet.
pub const NONE: u32 = u32::MAX;

/// The values of a packet, whose addresses are of type `A`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key<A> {
    /// The address that it comes from.
    pub source: A,
    /// The address that it goes to.
    pub destination: A,
    /// Its protocol and the port that it goes to, in one number: a rule with ports has a protocol.
    pub service: u32,
    /// The port that it comes from.
    pub source_port: u32,
}

/// The values that a rule holds, as those of [`Key`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ranges<A> {
    /// Of [`Key::source`].
    pub source: RangeInclusive<A>,
    /// Of [`Key::destination`].
    pub destination: RangeInclusive<A>,
    /// Of [`Key::service`].
    pub service: RangeInclusive<u32>,
    /// Of [`Key::source_port`].
    pub source_port: RangeInclusive<u32>,
}

impl<A: Value> Ranges<A> {
    /// Whether they hold all values of a packet.
    #[must_use]
    pub fn hold(&self, key: &Key<A>) -> bool {
        self.source.contains(&key.source)
            && self.destination.contains(&key.destination)
            && self.service.contains(&key.service)
            && self.source_port.contains(&key.source_port)
    }
}

/// Rules, made ready to be looked up.
#[derive(Debug)]
pub struct Classifier<A> {
    source: Field<A>,
    destination: Field<A>,
    service: Field<u32>,
    source_port: Field<u32>,
    shape: Shape,
}

impl<A: Value> Classifier<A> {
    /// That of these rules; one that is `None` holds no packet.
    #[must_use]
    pub fn new(rules: &[Option<Ranges<A>>]) -> Self {
        let shape = Shape::of(rules.len());
        let rules = || rules.iter().enumerate().filter_map(|(number, rule)| Some((number, rule.as_ref()?)));
        Self {
            source: Field::new(shape, rules().map(|(number, rule)| (number, rule.source.clone()))),
            destination: Field::new(shape, rules().map(|(number, rule)| (number, rule.destination.clone()))),
            service: Field::new(shape, rules().map(|(number, rule)| (number, rule.service.clone()))),
            source_port: Field::new(shape, rules().map(|(number, rule)| (number, rule.source_port.clone()))),
            shape,
        }
    }

    /// The number of the first rule that holds a packet, or [`NONE`].
    #[must_use]
    pub fn find(&self, key: Key<A>) -> u32 {
        let [found] = self.find_several([key]);
        found
    }

    /// As [`Self::find`] of as many packets as `found` has places: of the first one `key` gives the values for 0, and
    /// so on.
    #[inline(always)]
    pub fn find_all(&self, key: impl Fn(usize) -> Key<A>, found: &mut [u32]) {
        let (whole, rest) = found.as_chunks_mut::<LANES>();
        let mut at = 0;
        for found in whole {
            *found = self.find_several(array::from_fn(|lane| key(at + lane)));
            at += LANES;
        }
        for (found, at) in rest.iter_mut().zip(at..) {
            *found = self.find(key(at));
        }
    }

    /// Bytes that it takes.
    #[must_use]
    pub fn memory(&self) -> usize {
        let Self { source, destination, service, source_port, .. } = self;
        source.memory() + destination.memory() + service.memory() + source_port.memory()
    }

    #[inline(always)]
    fn find_several<const COUNT: usize>(&self, keys: [Key<A>; COUNT]) -> [u32; COUNT] {
        let sources = self.source.places(keys.map(|key| key.source));
        let destinations = self.destination.places(keys.map(|key| key.destination));
        let services = self.service.places(keys.map(|key| key.service));
        let source_ports = self.source_port.places(keys.map(|key| key.source_port));
        let mut found = [NONE; COUNT];
        let places = sources.into_iter().zip(destinations).zip(services).zip(source_ports);
        for (found, (((source, destination), service), source_port)) in found.iter_mut().zip(places) {
            *found = self.first_of_all([
                self.source.set(source),
                self.destination.set(destination),
                self.service.set(service),
                self.source_port.set(source_port),
            ]);
        }
        found
    }

    /// The first rule that is in all sets.
    #[inline(always)]
    fn first_of_all(&self, sets: [&[u64]; 4]) -> u32 {
        let [source, destination, service, source_port] = sets;
        let word = |set: &[u64], at: usize| set.get(at).copied().unwrap_or_default();
        // Not in a loop over the sets: the compiler would keep it one.
        let common =
            |at: usize| word(source, at) & word(destination, at) & word(service, at) & word(source_port, at);
        for group in 0..self.shape.groups {
            let mut candidates = common(group);
            while candidates != 0 {
                let word = group * 64 + candidates.trailing_zeros() as usize;
                let rules = common(self.shape.groups + word);
                if rules != 0 {
                    return word as u32 * 64 + rules.trailing_zeros();
                }
                candidates &= candidates - 1;
            }
        }
        NONE
    }
}
