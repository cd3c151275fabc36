//! How often neighbours are asked for their link addresses: destinations enter, a yes leaves three times in
//! quick succession and then once a second for each (RFC 1122, 2.3.2.1; RFC 4861, 7.2.2), and no more than a
//! thousand times a second for all that came by one interface (RFC 6583, 7.1). Gateways have a share of their own,
//! so that who makes destinations up keeps nobody from them. A neighbour that has been asked for some seconds
//! without an answer is taken to be absent.

use crate::dataplane::bucket::{Bucket, Buckets, MILLISECOND};
use crate::dataplane::seeded::Seeded;

/// Places of destinations, in sets that share a hash.
const SETS: usize = 256;
const WAYS: usize = 4;

/// Questions that follow each other quickly, and the clocks of the time stamp counter between them.
const QUICK: u32 = 3;
const SHORT: u64 = MILLISECOND;

/// Clocks between later ones: about a second at 2 GHz.
const LONG: u64 = 1 << 31;

/// Clocks until a destination that does not answer is taken to be not there: three seconds and more (RFC 4861,
/// 7.2.2 and section 10). After as long without a question all begins anew.
const PATIENCE: u64 = 1 << 33;

/// Questions at once for what came by an interface; then one in about a millisecond.
const BURST: u32 = 256;

/// What is to be asked for, and why.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    /// Where it is.
    pub interface: u16,
    /// Its address.
    pub address: u128,
    /// Whether routes lead by it, and not only packets to itself.
    pub is_gateway: bool,
    /// The interface that the packet arrived at.
    pub arrived: u16,
}

/// The destinations that were last asked for.
#[derive(Debug)]
pub(crate) struct Throttle {
    sets: Box<[[Slot; WAYS]]>,
    seeded: Seeded,
    gateways: Buckets,
    others: Buckets,
}

/// Of a destination, when it was first and last asked for, in clocks.
#[derive(Clone, Copy, Debug)]
struct Slot {
    mixed: u64,
    first: u64,
    last: u64,
    questions: u32,
    /// Whether it has answered the last one.
    answered: bool,
}

impl Throttle {
    /// Nobody was asked before `now`, in clocks.
    pub fn new(now: u64) -> Self {
        let long_ago = now.wrapping_sub(PATIENCE);
        let none = Slot { mixed: 0, first: long_ago, last: long_ago, questions: 0, answered: true };
        let buckets = || Buckets::new(Bucket::new(now, BURST, MILLISECOND));
        Self {
            sets: vec![[none; WAYS]; SETS].into_boxed_slice(),
            seeded: Seeded::new(),
            gateways: buckets(),
            others: buckets(),
        }
    }

    /// Whether a neighbour may be asked for at `now`, in clocks; it is held to be asked then.
    pub fn allows(&mut self, wanted: &Wanted, now: u64) -> bool {
        let mixed = self.mix(wanted.interface, wanted.address);
        let age = |slot: &Slot| now.wrapping_sub(slot.last);
        let Some(set) = self.sets.get_mut(set_of(mixed)) else { return false };
        let known = set.iter().position(|slot| slot.mixed == mixed);
        let pause = |slot: &Slot| if slot.questions < QUICK { SHORT } else { LONG };
        let fresh = known.and_then(|at| set.get(at)).filter(|slot| age(slot) < PATIENCE);
        let (first, questions) = match fresh {
            Some(slot) if age(slot) < pause(slot) => return false,
            Some(slot) => (if slot.answered { now } else { slot.first }, slot.questions.saturating_add(1)),
            None => (now, 1),
        };
        let share = if wanted.is_gateway { &mut self.gateways } else { &mut self.others };
        if !share.take(wanted.arrived, now) {
            return false;
        }
        let oldest = || set.iter().enumerate().max_by_key(|(_, slot)| age(slot)).map(|(at, _)| at);
        if let Some(slot) = known.or_else(oldest).and_then(|at| set.get_mut(at)) {
            *slot = Slot { mixed, first, last: now, questions, answered: false };
        }
        true
    }

    /// Whether an address at an interface was asked for, and this is its first answer to that.
    pub fn is_answer(&mut self, interface: u16, address: u128) -> bool {
        let mixed = self.mix(interface, address);
        let slots = self.sets.get_mut(set_of(mixed)).map_or(&mut [][..], |set| &mut set[..]);
        let slot = slots.iter_mut().find(|slot| slot.mixed == mixed && !slot.answered);
        slot.map(|slot| slot.answered = true).is_some()
    }

    /// Whether an address at an interface has long been asked for without an answer by `now`, in clocks.
    pub fn is_silent(&self, interface: u16, address: u128, now: u64) -> bool {
        let mixed = self.mix(interface, address);
        let set = self.sets.get(set_of(mixed));
        let slot = set.and_then(|set| set.iter().find(|slot| slot.mixed == mixed && slot.questions > 0));
        slot.is_some_and(|slot| now.wrapping_sub(slot.first) >= PATIENCE)
    }

    /// Lets some clocks pass.
    #[cfg(test)]
    pub fn age(&mut self, clocks: u64) {
        for slot in self.sets.iter_mut().flatten() {
            slot.first = slot.first.wrapping_sub(clocks);
            slot.last = slot.last.wrapping_sub(clocks);
        }
    }

    fn mix(&self, interface: u16, address: u128) -> u64 {
        let high = self.seeded.of((address >> 64) as u64 ^ u64::from(interface) << 40);
        self.seeded.of(address as u64 ^ high)
    }
}

fn set_of(mixed: u64) -> usize {
    (mixed >> 56) as usize % SETS
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(address: u128) -> Wanted {
        Wanted { interface: 0, address, is_gateway: false, arrived: 1 }
    }

    #[test]
    fn a_destination_is_asked_for_quickly_at_first_and_then_once_a_second() {
        let mut throttle = Throttle::new(5);
        let mut asked = Vec::new();
        for millisecond in 0..4096 {
            if throttle.allows(&host(1), 5 + millisecond * SHORT) {
                asked.push(millisecond);
            }
        }
        assert_eq!(asked, [0, 1, 2, 2 + 1024, 2 + 2048, 2 + 3072]);
    }

    #[test]
    fn who_does_not_answer_for_long_is_not_there() {
        let (mut throttle, start) = (Throttle::new(9), 9);
        assert!(!throttle.is_silent(0, 1, start), "nobody asked");
        let half = PATIENCE / 2;
        for time in [0, half, 2 * half - 1] {
            assert!(throttle.allows(&host(1), start + time));
            assert!(!throttle.is_silent(0, 1, start + time));
        }
        assert!(throttle.is_silent(0, 1, start + PATIENCE));
        assert!(!throttle.is_silent(1, 1, start + PATIENCE) && !throttle.is_silent(0, 2, start + PATIENCE));
        assert!(throttle.allows(&host(1), start + PATIENCE + half));
        assert!(throttle.is_silent(0, 1, start + PATIENCE + half));
        // It was there meanwhile, so that nobody asked.
        assert!(throttle.allows(&host(1), start + 3 * PATIENCE));
        assert!(!throttle.is_silent(0, 1, start + 3 * PATIENCE));
    }

    #[test]
    fn who_makes_destinations_up_takes_nothing_from_gateways_and_other_interfaces() {
        let mut throttle = Throttle::new(0);
        let allowed = (0..100_000).filter(|&address| throttle.allows(&host(address), 0)).count();
        assert_eq!(allowed, BURST as usize);
        let later = 10 * SHORT;
        let allowed = (0..100_000).filter(|&address| throttle.allows(&host(!address), later)).count();
        assert_eq!(allowed, 10);
        assert!(throttle.allows(&Wanted { is_gateway: true, ..host(7 << 80) }, later));
        assert!(throttle.allows(&Wanted { arrived: 2, ..host(8 << 80) }, later));
        assert!(!throttle.allows(&host(9 << 80), later));
    }

    #[test]
    fn a_question_has_one_answer() {
        let mut throttle = Throttle::new(0);
        assert!(!throttle.is_answer(0, 1), "nobody asked");
        assert!(throttle.allows(&host(1), 0));
        assert!(!throttle.is_answer(1, 1) && !throttle.is_answer(0, 2));
        assert!(throttle.is_answer(0, 1) && !throttle.is_answer(0, 1));
        assert!(throttle.allows(&host(1), SHORT));
        assert!(throttle.is_answer(0, 1));
    }
}
