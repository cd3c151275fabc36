//! How often neighbours are asked for their link addresses: destinations enter, a yes leaves at most once a
//! millisecond or so for each, and for all together no more often than there are slots. A neighbour
//! that has been asked for some seconds without an answer is taken to be absent.

/// Destinations share slots by their hashes.
const SLOTS: usize = 256;

/// Clocks of the time stamp counter between two questions: about a millisecond at 2 to 3 GHz.
const INTERVAL: u64 = 1 << 21;

/// Clocks until a destination that does not answer is taken to be not there: three seconds and more (RFC 4861,
/// 7.2.2 and section 10). After as long without a question all begins anew.
const PATIENCE: u64 = 1 << 33;

/// The destinations that were last asked for.
#[derive(Debug)]
pub(crate) struct Throttle {
    slots: [Slot; SLOTS],
}

/// Of a destination, when it was first and last asked for, in clocks.
#[derive(Clone, Copy, Debug)]
struct Slot {
    mixed: u64,
    first: u64,
    last: u64,
}

impl Throttle {
    /// Nobody was asked before `now`, in clocks.
    pub fn new(now: u64) -> Self {
        let long_ago = now.wrapping_sub(PATIENCE);
        Self { slots: [Slot { mixed: 0, first: long_ago, last: long_ago }; SLOTS] }
    }

    /// Whether an address at an interface may be asked for at `now`, in clocks; it is held to be asked then.
    pub fn allows(&mut self, interface: u16, address: u128, now: u64) -> bool {
        let mixed = mix(interface, address);
        let slot = &mut self.slots[slot_of(mixed)];
        let pause = now.wrapping_sub(slot.last);
        if pause < INTERVAL {
            return false;
        }
        let first = if slot.mixed == mixed && pause < PATIENCE { slot.first } else { now };
        *slot = Slot { mixed, first, last: now };
        true
    }

    /// Whether an address at an interface has long been asked for without an answer by `now`, in clocks.
    pub fn in_vain(&self, interface: u16, address: u128, now: u64) -> bool {
        let mixed = mix(interface, address);
        let slot = &self.slots[slot_of(mixed)];
        slot.mixed == mixed && now.wrapping_sub(slot.first) >= PATIENCE
    }

    /// Lets some clocks pass.
    #[cfg(test)]
    pub fn age(&mut self, clocks: u64) {
        for slot in &mut self.slots {
            slot.first = slot.first.wrapping_sub(clocks);
            slot.last = slot.last.wrapping_sub(clocks);
        }
    }
}

fn mix(interface: u16, address: u128) -> u64 {
    (address as u64 ^ (address >> 64) as u64 ^ u64::from(interface) << 32).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn slot_of(mixed: u64) -> usize {
    (mixed >> 56) as usize % SLOTS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_destination_is_asked_for_once_in_an_interval() {
        let mut throttle = Throttle::new(5);
        assert!(throttle.allows(0, 1, 5));
        assert!(!throttle.allows(0, 1, 5 + INTERVAL - 1));
        assert!(throttle.allows(0, 1, 5 + INTERVAL));
    }

    #[test]
    fn who_does_not_answer_for_long_is_not_there() {
        let (mut throttle, start) = (Throttle::new(9), 9);
        assert!(!throttle.in_vain(0, 1, start), "nobody asked");
        let half = PATIENCE / 2;
        for time in [0, half, 2 * half - 1] {
            assert!(throttle.allows(0, 1, start + time));
            assert!(!throttle.in_vain(0, 1, start + time));
        }
        assert!(throttle.in_vain(0, 1, start + PATIENCE));
        assert!(!throttle.in_vain(1, 1, start + PATIENCE) && !throttle.in_vain(0, 2, start + PATIENCE));
        assert!(throttle.allows(0, 1, start + PATIENCE + half));
        assert!(throttle.in_vain(0, 1, start + PATIENCE + half));
        // It was there meanwhile, so that nobody asked.
        assert!(throttle.allows(0, 1, start + 3 * PATIENCE));
        assert!(!throttle.in_vain(0, 1, start + 3 * PATIENCE));
    }

    #[test]
    fn all_together_are_asked_for_no_more_often_than_there_are_slots() {
        let mut throttle = Throttle::new(0);
        let allowed = (0..100_000u128).filter(|&address| throttle.allows(3, address, 0)).count();
        assert!((SLOTS / 2..=SLOTS).contains(&allowed), "{allowed}");
    }
}
