//! States of flows: packets of interfaces whose access lists keep states enter; whether a flow that a rule has let
//! begin has them leaves.
//!
//! A state belongs to the interface at which the rule let its flow begin, and to the worker that both directions of the
//! flow come to. Nothing of it is shared: the worker alone reads and writes its table, which has all its memory before
//! the worker gets it. What others are to know it counts ([`Tally`]), and lists when it is asked ([`Mailbox`]).

mod flow;
mod mailbox;
mod memory;
mod phase;
mod table;
#[cfg(test)]
mod tests;

use std::sync::Arc;

pub use self::flow::{First, Flow};
pub use self::mailbox::{Kind, Mailbox, Tally};
pub use self::phase::{Lives, Phase, Settings, Timeouts};
pub use self::table::{Slot, State, Table};
use crate::clock;
use crate::dataplane::acl::{AccessList, Filters};
use crate::dataplane::counters::Reason;
use crate::dataplane::flow::member::{Member, Part};
use crate::dataplane::forwarding::Forwarding;
use crate::dataplane::vector::{List, PACKETS};

/// In how many steps of ageing all states are looked at, and the most of them in one: steps follow each other by about a
/// millisecond, and none takes long.
const STEPS: u32 = 4096;
const MOST: u32 = 1024;

/// A moment, in units of 64 milliseconds since any fixed one; it wraps after nine years.
pub type Moment = u32;

/// Now.
#[must_use]
pub fn now() -> Moment {
    (clock::milliseconds() / 64) as Moment
}

/// What is looked for of one packet.
#[derive(Clone, Copy)]
struct Wanted {
    flow: Flow,
    hash: u64,
    guess: Slot,
    part: Part,
    flags: u8,
}

/// The rule that let a flow begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permission {
    /// Whether it is of the list for what arrives at the interface.
    pub input: bool,
    /// Its number in that list.
    pub rule: usize,
}

/// Which lists and times packets at an interface are held against.
#[derive(Clone, Copy)]
pub struct Terms<'a> {
    /// The lists of the interface.
    pub filters: &'a Filters,
    /// Which lists these are, of what leaves and of what arrives; 0 is none.
    editions: [u32; 2],
    /// How long states stay.
    lives: Lives,
    /// When the packets are here.
    now: Moment,
}

impl<'a> Terms<'a> {
    /// Those of an interface with these lists at a moment.
    #[must_use]
    pub fn new(filters: &'a Filters, timeouts: &Timeouts, now: Moment) -> Self {
        let edition = |input| filters.of(input).map_or(0, |list| list.edition());
        Self { filters, editions: [false, true].map(edition), lives: timeouts.lives(), now }
    }

    /// Whether a state was begun by a list that is still there.
    #[inline(always)]
    fn has_list_of(&self, state: &State) -> bool {
        let [leaving, arriving] = self.editions;
        (if state.input { arriving } else { leaving }) == state.list
    }
}

/// The states of a worker, and what it works with to find those of a vector.
pub struct States {
    table: Table,
    mailbox: Arc<Mailbox>,
    wanted: Box<[Wanted; PACKETS]>,
    /// Packets of a vector that no state admits.
    pub(crate) misses: List,
}

impl States {
    /// Those that a mailbox has a table for, once it has one.
    #[must_use]
    pub fn take(mailbox: &Arc<Mailbox>) -> Option<Box<Self>> {
        let none = Wanted { flow: Flow::NONE, hash: 0, guess: Slot::NONE, part: Part::Apart, flags: 0 };
        Some(Box::new(Self {
            table: mailbox.take()?,
            mailbox: Arc::clone(mailbox),
            wanted: Box::new([none; PACKETS]),
            misses: List::EMPTY,
        }))
    }

    /// Has memory fetch what is known of the flows of `count` packets at an interface, which leave by it or arrive
    /// there: first where to look for each, and then what may be its state.
    #[inline(always)]
    pub fn look_for(
        &mut self,
        count: usize,
        (interface, leave): (u16, bool),
        member: impl Fn(usize) -> Member,
    ) {
        let Self { table, wanted, .. } = self;
        let wanted = wanted.get_mut(..count).unwrap_or_default();
        for (at, wanted) in wanted.iter_mut().enumerate() {
            let member = member(at);
            let flow = Flow::of(&member, interface, leave);
            let hash = table.hash(&flow);
            table.prefetch(hash);
            *wanted = Wanted { flow, hash, guess: Slot::NONE, part: member.part, flags: member.flags };
        }
        for wanted in wanted {
            wanted.guess = table.guess(wanted.hash);
        }
    }

    /// The rule by which a packet that was looked for passes, if its flow has a state; `arrives` says whether it arrives at the
    /// interface. The state lives on by it.
    #[inline(always)]
    pub fn pass(&mut self, at: usize, arrives: bool, terms: &Terms) -> Option<Permission> {
        let Wanted { flow, hash, guess, part, flags } = *self.wanted.get(at)?;
        if part == Part::Apart {
            return None;
        }
        let slot = self.table.find(&flow, hash, guess)?;
        let state = self.table.get_mut(slot)?;
        if state.is_over(terms.now) {
            self.end(slot, |tally| &tally.expired);
            return None;
        }
        // Both ends may connect anew as soon as a connection is over: that is for the rules.
        if part == Part::Begins && state.phase == Phase::Closing {
            return None;
        }
        if !terms.has_list_of(state) && !readmit(state, terms.filters) {
            self.end(slot, |tally| &tally.revoked);
            return None;
        }
        if part != Part::Related {
            state.note(flags, arrives == state.input, terms);
        }
        Some(Permission { input: state.input, rule: usize::from(state.rule) })
    }

    /// Notes that a rule of `list` that keeps states has let a packet pass that was looked for and has no state.
    ///
    /// # Errors
    /// Why it may not pass all the same.
    #[cold]
    #[inline(never)]
    pub fn begin(
        &mut self,
        at: usize,
        (input, list, rule): (bool, &AccessList, usize),
        terms: &Terms,
    ) -> Result<(), Reason> {
        let Some(&Wanted { flow, hash, guess, part, flags }) = self.wanted.get(at) else { return Ok(()) };
        match part {
            Part::Begins => {}
            Part::Continues => return Err(Reason::AclNoState),
            Part::Related | Part::Apart => return Ok(()),
        }
        if let Some(slot) = self.table.find(&flow, hash, guess) {
            if self.table.get(slot).is_some_and(|state| state.phase != Phase::Closing) {
                // Another packet of this vector was the first.
                return Ok(());
            }
            self.end(slot, |tally| &tally.closed);
        }
        let state = State::first(flow, flags, (input, list.edition(), rule as u16), terms);
        let tally = &self.mailbox.tally;
        if self.table.insert(state, hash) {
            tally.of(Kind::of(flow.protocol())).opened.add(1);
            Ok(())
        } else {
            tally.refused.add(1);
            Err(Reason::AclStatesFull)
        }
    }

    /// Has some more states end whose time is over or whose permission is gone, and lists some if that is asked for. Wanted
    /// about every millisecond.
    #[inline(never)]
    pub fn age(&mut self, forwarding: &Forwarding, now: Moment) {
        for _ in 0..(self.table.reach() / STEPS + 1).min(MOST) {
            let slot = self.table.advance();
            let Some(state) = self.table.get_mut(slot).filter(|state| state.phase != Phase::Free) else {
                continue;
            };
            let interface = forwarding.interfaces.get(usize::from(state.flow.interface()));
            let none = Filters::default();
            let filters = interface.map_or(&none, |interface| &interface.filters);
            let is_current = |list: &Arc<AccessList>| list.edition() == state.list;
            if state.is_over(now) {
                self.end(slot, |tally| &tally.expired);
            } else if !filters.of(state.input).is_some_and(is_current) && !readmit(state, filters) {
                self.end(slot, |tally| &tally.revoked);
            }
        }
        self.mailbox.tell(&self.table);
    }

    /// Forgets a state for a cause.
    #[cold]
    fn end(&mut self, slot: Slot, cause: impl Fn(&Tally) -> &crate::dataplane::counters::Counter) {
        let Some(state) = self.table.get(slot) else { return };
        let tally = &self.mailbox.tally;
        tally.of(Kind::of(state.flow.protocol())).ended.add(1);
        cause(tally).add(1);
        self.table.remove(slot);
    }
}

/// Whether a list that has taken the place of the one that let a flow begin would let it begin, too; the state is then by
/// that one's leave.
#[cold]
fn readmit(state: &mut State, filters: &Filters) -> bool {
    let Some(list) = filters.of(state.input) else { return false };
    let rule = list.rule_of(&state.flow.first(state.input));
    let Some(rule) = rule.filter(|rule| list.keeps_state(*rule)) else { return false };
    (state.list, state.rule) = (list.edition(), rule as u16);
    true
}
