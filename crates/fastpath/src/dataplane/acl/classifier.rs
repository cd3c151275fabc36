//! Finds the first of many rules that a packet matches, without a walk over them: rules enter as ranges of four
//! fields, in their order; for the four values of a packet, the number of the first rule that holds them leaves.
//!
//! Each field is cut where the range of a rule begins or ends. The values between two cuts are in the ranges of the
//! same rules: a set, with a bit for each rule. A lookup finds the set of each field by a search. The rules
//! that hold the packet are in all four sets, and the first of them is the lowest bit that all have (Lakshman and
//! Stiliadis, "High-Speed Policy-based Packet Forwarding Using Efficient Multi-dimensional Range Matching", SIGCOMM
//! 1998). A set begins with a bit for each of its words that is not zero, so that of thousands of bits a few words
//! are read (aggregated bit vectors: Baboescu and Varghese, "Scalable Packet Classification", SIGCOMM 2001).
//!
//! A field of which every rule holds all values is neither read nor searched. Where one field is left, the first rule
//! of each of its intervals is known beforehand; up to 64 rules, a set is one word.
//!
//! N rules make at most 2 N + 1 intervals of a field, each with a set of N bits. So memory and the time to build are
//! at most N² bits and steps of one word for each field, whatever the rules are; nothing grows with what packets hold.

use std::array;
use std::collections::HashMap;
use std::ops::RangeInclusive;

use super::field::{Intervals, Set, Shape, Value, WORD, is_whole};
use super::key::{ANY_PORT, ANY_SERVICE, UNREADABLE};

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
    /// The port that it comes from, or [`NO_PORT`](super::key::NO_PORT).
    pub source_port: u32,
}

/// What rules look at in a packet; each value is read when it is asked for, as most lists look at few.
pub trait Packet<A>: Copy {
    /// As [`Key::source`].
    fn source(self) -> A;

    /// As [`Key::destination`].
    fn destination(self) -> A;

    /// What it shows of what it carries: [`Key::source_port`] and [`Key::service`].
    fn shown(self) -> (u32, u32);

    /// As [`Key::service`].
    #[inline(always)]
    fn service(self) -> u32 {
        self.shown().1
    }

    /// As [`Key::source_port`].
    #[inline(always)]
    fn source_port(self) -> u32 {
        self.shown().0
    }

    /// Whether its service is not [`UNREADABLE`]. No rule holds packets of which it is.
    #[inline(always)]
    fn is_readable(self) -> bool {
        self.service() != UNREADABLE
    }
}

impl<A: Value> Packet<A> for Key<A> {
    #[inline(always)]
    fn source(self) -> A {
        self.source
    }

    #[inline(always)]
    fn destination(self) -> A {
        self.destination
    }

    #[inline(always)]
    fn shown(self) -> (u32, u32) {
        (self.source_port, self.service)
    }
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

/// By the number of each rule, the values that it holds.
type Rules<'a, A> = [(usize, &'a Ranges<A>)];

/// The intervals of those fields that have several, and what is noted of each.
#[derive(Debug)]
struct Fields<A, N> {
    source: Option<Intervals<A, N>>,
    destination: Option<Intervals<A, N>>,
    service: Option<Intervals<u32, N>>,
    source_port: Option<Intervals<u32, N>>,
}

impl<A: Value, N: Copy + Default + PartialEq> Fields<A, N> {
    /// Those of rules, of whose sets `note` says what is noted.
    fn new(shape: Shape, rules: &Rules<A>, mut note: impl FnMut(&Set) -> N) -> Self {
        Self {
            source: intervals(shape, rules, |rule| rule.source.clone(), &mut note),
            destination: intervals(shape, rules, |rule| rule.destination.clone(), &mut note),
            service: intervals(shape, rules, services, &mut note),
            source_port: intervals(shape, rules, source_ports, &mut note),
        }
    }

    /// Gives `take` what was noted of the values of packets, field by field.
    #[inline(always)]
    fn find<const COUNT: usize, P: Packet<A>>(&self, packets: [P; COUNT], mut take: impl FnMut([N; COUNT])) {
        if let Some(field) = &self.source {
            take(field.find(packets.map(P::source)));
        }
        if let Some(field) = &self.destination {
            take(field.find(packets.map(P::destination)));
        }
        if let Some(field) = &self.service {
            take(field.find(packets.map(P::service)));
        }
        if let Some(field) = &self.source_port {
            take(field.find(packets.map(P::source_port)));
        }
    }

    fn memory(&self) -> usize {
        let Self { source, destination, service, source_port } = self;
        let addresses = [source, destination].into_iter().flatten().map(Intervals::memory);
        let others = [service, source_port].into_iter().flatten().map(Intervals::memory);
        addresses.chain(others).sum()
    }
}

/// The intervals of a field; `None` where every rule holds all its values.
fn intervals<A, T: Value, N: Copy + Default + PartialEq>(
    shape: Shape,
    rules: &Rules<A>,
    range: impl Fn(&Ranges<A>) -> RangeInclusive<T>,
    note: &mut impl FnMut(&Set) -> N,
) -> Option<Intervals<T, N>> {
    is_searched(rules, &range)
        .then(|| Intervals::new(shape, rules.iter().map(|(number, rule)| (*number, range(rule))), note))
}

/// Whether a field must be searched: some rule does not hold all its values.
fn is_searched<A, T: Value>(rules: &Rules<A>, range: impl Fn(&Ranges<A>) -> RangeInclusive<T>) -> bool {
    rules.iter().any(|(_, rule)| !is_whole(&range(rule)))
}

/// The services of a rule, without an end where the last one is among them: behind that is only what cannot be read, which is
/// looked at by itself.
fn services<A>(rule: &Ranges<A>) -> RangeInclusive<u32> {
    without_end(&rule.service, ANY_SERVICE)
}

/// The source ports of a rule, without an end where the last one is among them: no packet has one behind that.
fn source_ports<A>(rule: &Ranges<A>) -> RangeInclusive<u32> {
    without_end(&rule.source_port, ANY_PORT)
}

fn without_end(range: &RangeInclusive<u32>, any: RangeInclusive<u32>) -> RangeInclusive<u32> {
    *range.start()..=if range.end() >= any.end() { u32::MAX } else { *range.end() }
}

/// Rules, made ready to be looked up.
#[derive(Debug)]
pub struct Classifier<A>(Way<A>);

/// How they are looked up.
#[derive(Debug)]
enum Way<A> {
    /// At most one field is searched: of its intervals, the first rule is noted; without a field, it is `always`.
    Direct { fields: Fields<A, u32>, always: u32 },
    /// At most 64 rules: what is noted is a set, of one word; `all` has all rules.
    Few { fields: Fields<A, u64>, all: u64 },
    /// More rules: what is noted is where a set begins.
    Many { fields: Fields<A, u32>, sets: Sets },
}

impl<A: Value> Classifier<A> {
    /// That of these rules; one that is `None` holds no packet.
    #[must_use]
    pub fn new(rules: &[Option<Ranges<A>>]) -> Self {
        let shape = Shape::of(rules.len());
        let numbered = rules.iter().enumerate();
        let rules: Vec<_> = numbered.filter_map(|(number, rule)| Some((number, rule.as_ref()?))).collect();
        let searched = [
            is_searched(&rules, |rule| rule.source.clone()),
            is_searched(&rules, |rule| rule.destination.clone()),
            is_searched(&rules, services),
            is_searched(&rules, source_ports),
        ];
        if searched.into_iter().filter(|is_searched| *is_searched).count() < 2 {
            let first = |rule: Option<usize>| rule.map_or(NONE, |rule| rule as u32);
            let always = first(rules.first().map(|(number, _)| *number));
            return Self(Way::Direct {
                fields: Fields::new(shape, &rules, |set| first(set.first())),
                always,
            });
        }
        if shape.length() <= 2 {
            let all = rules.iter().fold(0, |all, (number, _)| all | 1 << number);
            return Self(Way::Few { fields: Fields::new(shape, &rules, Set::first_word), all });
        }
        let mut sets = Sets { words: Vec::new(), shape };
        let mut known = HashMap::new();
        let fields = Fields::new(shape, &rules, |set| sets.place(&mut known, set));
        Self(Way::Many { fields, sets })
    }

    /// The number of the first rule that holds a packet, or [`NONE`].
    #[must_use]
    pub fn find(&self, key: Key<A>) -> u32 {
        let [found] = self.find_several([key]);
        found
    }

    /// As [`Self::find`] of as many packets as `found` has places: of the first one, which is `packet(0)`, and so on.
    #[inline(always)]
    pub fn find_all<P: Packet<A>>(&self, packet: impl Fn(usize) -> P, found: &mut [u32]) {
        let (whole, rest) = found.as_chunks_mut::<LANES>();
        let mut at = 0;
        for found in whole {
            *found = self.find_several(array::from_fn(|lane| packet(at + lane)));
            at += LANES;
        }
        for (found, at) in rest.iter_mut().zip(at..) {
            let [rule] = self.find_several([packet(at)]);
            *found = rule;
        }
    }

    /// Bytes that it takes.
    #[must_use]
    pub fn memory(&self) -> usize {
        match &self.0 {
            Way::Direct { fields, .. } => fields.memory(),
            Way::Few { fields, .. } => fields.memory(),
            Way::Many { fields, sets } => fields.memory() + size_of_val(&*sets.words),
        }
    }

    #[inline(always)]
    fn find_several<const COUNT: usize, P: Packet<A>>(&self, packets: [P; COUNT]) -> [u32; COUNT] {
        let mut found = match &self.0 {
            Way::Direct { fields, always } => {
                let mut first = [*always; COUNT];
                fields.find(packets, |rules| first = rules);
                first
            }
            Way::Few { fields, all } => {
                let mut common = [*all; COUNT];
                fields.find(packets, |sets| {
                    common.iter_mut().zip(sets).for_each(|(common, set)| *common &= set);
                });
                common.map(|rules| if rules == 0 { NONE } else { rules.trailing_zeros() })
            }
            Way::Many { fields, sets } => {
                let (mut places, mut count) = ([[0; COUNT]; 4], 0);
                // The last field stands for those that are not searched, too.
                fields.find(packets, |found| {
                    places.iter_mut().skip(count).for_each(|places| *places = found);
                    count += 1;
                });
                let [one, two, three, four] = places;
                let mut first = [NONE; COUNT];
                let lanes = first.iter_mut().zip(one).zip(two).zip(three).zip(four);
                for ((((first, one), two), three), four) in lanes {
                    *first = sets.first_of_all([one, two, three, four]);
                }
                first
            }
        };
        for (found, packet) in found.iter_mut().zip(packets) {
            if !packet.is_readable() {
                *found = NONE;
            }
        }
        found
    }
}

/// Sets of more rules than a word has bits, each once.
#[derive(Debug)]
struct Sets {
    words: Vec<u64>,
    shape: Shape,
}

impl Sets {
    /// Where a set begins, which is added if it is not `known`.
    fn place(&mut self, known: &mut HashMap<Vec<u64>, u32>, set: &Set) -> u32 {
        if let Some(place) = known.get(set.words()) {
            return *place;
        }
        let place = self.words.len() as u32;
        self.words.extend(set.words());
        known.insert(set.words().to_vec(), place);
        place
    }

    /// The first rule that is in all sets that begin there.
    #[inline(always)]
    fn first_of_all(&self, places: [u32; 4]) -> u32 {
        let [one, two, three, four] = places.map(|place| {
            let place = place as usize;
            self.words.get(place..place + self.shape.length()).unwrap_or_default()
        });
        let word = |set: &[u64], at: usize| set.get(at).copied().unwrap_or_default();
        // Not in a loop over the sets: the compiler would keep it one.
        let common = |at: usize| word(one, at) & word(two, at) & word(three, at) & word(four, at);
        for group in 0..self.shape.groups {
            let mut candidates = common(group);
            while candidates != 0 {
                let word = group * WORD + candidates.trailing_zeros() as usize;
                let rules = common(self.shape.groups + word);
                if rules != 0 {
                    return (word * WORD) as u32 + rules.trailing_zeros();
                }
                candidates &= candidates - 1;
            }
        }
        NONE
    }
}
