//! The table of a worker's states: flows enter, their states leave. Its memory is fixed.
//!
//! A state has a cache line. Where it is says a line of [`PLACES`] words, which is chosen by the hash of its flow: each
//! word has eight more bits of the hash, and the number of a state. So a lookup reads two lines, both of which can be
//! fetched before they are read. There are four to eight words for each state: in a full table one line in a million has
//! no word left, and new flows of that line find no room.
//!
//! A full table refuses new flows, and forgets none that it has: who makes up flows keeps others from beginning some, until
//! his have had their time, but ends none of theirs.

use std::io;

use super::memory::Lines;
use super::phase::Phase;
use super::{Flow, Moment, Terms};
use crate::dataplane::seeded::Seeded;

/// Words of a line.
const PLACES: usize = 16;
/// Words for each state that there may be, at least; the next power of two is taken.
const SPARSE: usize = 4;
/// Bits of a word for the number of a state, and one more than the most states.
const NUMBER: u32 = 24;
/// The most states.
const MOST: u32 = (1 << NUMBER) - 2;

/// The number of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot(u32);

impl Slot {
    /// That of none.
    pub const NONE: Self = Self(u32::MAX);
}

/// A state.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub struct State {
    /// The flow.
    pub flow: Flow,
    /// When it is over unless something comes.
    pub expires: Moment,
    /// The edition of the list that let the flow begin.
    pub list: u32,
    /// The next free one.
    next: Slot,
    /// The rule of that list.
    pub rule: u16,
    /// Whether that list is for what arrives at the interface, so that the flow began beyond it.
    pub input: bool,
    /// How far the flow is.
    pub phase: Phase,
}

/// One cache line for each state.
const _: () = assert!(size_of::<State>() == 64);

impl State {
    const FREE: Self = Self {
        flow: Flow::NONE,
        expires: 0,
        list: 0,
        next: Slot::NONE,
        rule: 0,
        input: false,
        phase: Phase::Free,
    };

    /// That of a flow which begins with a packet with these flags of TCP, by a rule of a list.
    #[must_use]
    pub fn first(flow: Flow, flags: u8, (input, list, rule): (bool, u32, u16), terms: &Terms) -> Self {
        let phase = if flags == 0 { Phase::Simple } else { Phase::Opening };
        let expires = terms.now.wrapping_add(terms.lives.of(flow.protocol(), phase));
        Self { flow, expires, list, rule, input, phase, ..Self::FREE }
    }

    /// Whether its time is over.
    #[must_use]
    #[inline(always)]
    pub fn is_over(&self, now: Moment) -> bool {
        self.remaining(now) == 0
    }

    /// How long it stays.
    #[must_use]
    #[inline(always)]
    pub fn remaining(&self, now: Moment) -> Moment {
        // What is more than half of all moments away has passed.
        self.expires.wrapping_sub(now).cast_signed().max(0).cast_unsigned()
    }

    /// Notes a packet with these flags of TCP, of the end that began or of the other one.
    #[inline(always)]
    pub fn note(&mut self, flags: u8, of_beginner: bool, terms: &Terms) {
        let phase =
            if self.phase == Phase::Simple { self.phase } else { self.phase.after(flags, of_beginner) };
        let expires = terms.now.wrapping_add(terms.lives.of(self.flow.protocol(), phase));
        // What is written has to go back to memory: not for the same again.
        if (expires, phase) != (self.expires, self.phase) {
            (self.expires, self.phase) = (expires, phase);
        }
    }
}

/// A line of words: in each the number of a state and one more, below eight bits of the hash, which are not all zero.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line([u32; PLACES]);

/// The table.
pub struct Table {
    /// A power of two.
    lines: Lines<Line>,
    states: Lines<State>,
    /// How many of them have been used, from the first on.
    reach: u32,
    /// The first of those that are free again.
    free: Slot,
    known: u32,
    /// The one that was looked at last.
    hand: u32,
    seeded: Seeded,
}

impl Table {
    /// One for so many states, up to 16,777,214.
    ///
    /// # Errors
    /// There is no memory for it.
    pub fn new(maximum: u32) -> io::Result<Self> {
        let maximum = maximum.min(MOST) as usize;
        let lines = (maximum * SPARSE).div_ceil(PLACES).next_power_of_two();
        Ok(Self {
            lines: Lines::new(lines, Line([0; PLACES]))?,
            states: Lines::new(maximum, State::FREE)?,
            reach: 0,
            free: Slot::NONE,
            known: 0,
            hand: 0,
            seeded: Seeded::new(),
        })
    }

    /// The hash of a flow, which nobody outside can foresee.
    #[must_use]
    #[inline(always)]
    pub fn hash(&self, flow: &Flow) -> u64 {
        self.seeded.of_five(flow.words())
    }

    /// Has the core fetch where the flow of this hash is looked for.
    #[inline(always)]
    pub fn prefetch(&self, hash: u64) {
        if let Some(line) = self.lines.get(self.line(hash)) {
            prefetch::to_read(line.0.as_ptr().cast());
        }
    }

    /// The first state that may be the one of a flow with this hash, which the core is to fetch.
    #[must_use]
    #[inline(always)]
    pub fn guess(&self, hash: u64) -> Slot {
        let Some(line) = self.lines.get(self.line(hash)) else { return Slot::NONE };
        let slot = line.slot(line.matching(tag(hash)).trailing_zeros() as usize / 8);
        if let Some(state) = self.get(slot) {
            prefetch::to_read(std::ptr::from_ref(state).cast());
        }
        slot
    }

    /// The state of a flow, of which this is the hash and a guess, which may be wrong by now.
    #[must_use]
    #[inline(always)]
    pub fn find(&self, flow: &Flow, hash: u64, guess: Slot) -> Option<Slot> {
        if self.is_of(guess, flow) { Some(guess) } else { self.search(flow, hash) }
    }

    /// As [`Self::find`] without a guess.
    #[must_use]
    fn search(&self, flow: &Flow, hash: u64) -> Option<Slot> {
        let line = self.lines.get(self.line(hash))?;
        let mut found = line.matching(tag(hash));
        while found != 0 {
            let at = found.trailing_zeros() / 8;
            let slot = line.slot(at as usize);
            if self.is_of(slot, flow) {
                return Some(slot);
            }
            found &= !(0xff << (8 * at));
        }
        None
    }

    #[inline(always)]
    fn is_of(&self, slot: Slot, flow: &Flow) -> bool {
        self.get(slot).is_some_and(|state| state.flow.is(flow) && state.phase != Phase::Free)
    }

    /// A state by its number.
    #[must_use]
    #[inline(always)]
    pub fn get(&self, slot: Slot) -> Option<&State> {
        self.states.get(slot.0 as usize)
    }

    /// As [`Self::get`], to be changed; its flow stays.
    #[must_use]
    #[inline(always)]
    pub fn get_mut(&mut self, slot: Slot) -> Option<&mut State> {
        self.states.get_mut(slot.0 as usize)
    }

    /// Takes up the state of a flow that has none, and of which this is the hash; says whether there was room.
    pub fn insert(&mut self, state: State, hash: u64) -> bool {
        let slot = if self.free == Slot::NONE { Slot(self.reach) } else { self.free };
        let line = self.line(hash);
        let (Some(line), Some(place)) = (self.lines.get_mut(line), self.states.get_mut(slot.0 as usize))
        else {
            return false;
        };
        let Some(word) = line.0.iter_mut().find(|word| **word == 0) else { return false };
        *word = tag(hash) << NUMBER | (slot.0 + 1);
        if self.free == Slot::NONE {
            self.reach += 1;
        } else {
            self.free = place.next;
        }
        *place = state;
        self.known += 1;
        true
    }

    /// Forgets a state.
    pub fn remove(&mut self, slot: Slot) {
        let Some(flow) = self.get(slot).filter(|state| state.phase != Phase::Free).map(|state| state.flow)
        else {
            return;
        };
        let line = self.line(self.hash(&flow));
        let words = self.lines.get_mut(line).map_or(&mut [][..], |line| &mut line.0);
        if let Some(word) = words.iter_mut().find(|word| **word & ((1 << NUMBER) - 1) == slot.0 + 1) {
            *word = 0;
        }
        let free = self.free;
        if let Some(state) = self.get_mut(slot) {
            *state = State { next: free, ..State::FREE };
        }
        self.free = slot;
        self.known -= 1;
    }

    /// How many states there are.
    #[must_use]
    pub fn known(&self) -> u32 {
        self.known
    }

    /// How many there may be.
    #[must_use]
    pub fn maximum(&self) -> u32 {
        self.states.len() as u32
    }

    /// How many have been there at once: no number of a state is higher.
    #[must_use]
    pub fn reach(&self) -> u32 {
        self.reach
    }

    /// Bytes that it takes.
    #[must_use]
    pub fn memory(&self) -> usize {
        size_of_val(&*self.lines) + size_of_val(&*self.states)
    }

    /// The next one to be looked at, round and round.
    pub fn advance(&mut self) -> Slot {
        self.hand = if self.hand + 1 < self.reach { self.hand + 1 } else { 0 };
        Slot(self.hand)
    }

    /// Some states that there are: as many as are asked for, and no more than those among the first `most` numbers.
    pub fn some(&self, count: usize, most: usize) -> impl Iterator<Item = State> {
        let first = self.states.iter().take((self.reach as usize).min(most));
        first.filter(|state| state.phase != Phase::Free).take(count).copied()
    }

    #[inline(always)]
    fn line(&self, hash: u64) -> usize {
        hash as usize & (self.lines.len() - 1)
    }
}

/// Eight bits of a hash, which are not all zero.
#[inline(always)]
fn tag(hash: u64) -> u32 {
    ((hash >> 56) as u32).max(1)
}

impl Line {
    /// A byte for each word, from the lowest on, whose bits are set where the word has these bits of a hash: the
    /// compiler compares several words at once.
    #[inline(always)]
    fn matching(&self, tag: u32) -> u128 {
        u128::from_le_bytes(self.0.map(|word| if word >> NUMBER == tag { u8::MAX } else { 0 }))
    }

    /// The state that a word says, [`Slot::NONE`] behind the last one.
    #[inline(always)]
    fn slot(&self, at: usize) -> Slot {
        Slot(self.0.get(at).map_or(u32::MAX, |word| (word & ((1 << NUMBER) - 1)).wrapping_sub(1)))
    }
}
