//! How often neighbours are asked for their link addresses: destinations enter, a yes leaves at most once a
//! millisecond or so for each, and for all together no more often than there are slots.

/// Destinations share slots by their hashes.
const SLOTS: usize = 256;

/// Clocks of the time stamp counter between two questions: about a millisecond at 2 to 3 GHz.
const INTERVAL: u64 = 1 << 21;

/// When which destinations were last asked for.
#[derive(Debug)]
pub(crate) struct Throttle {
    asked: [u64; SLOTS],
}

impl Throttle {
    /// Nobody was asked before `now`, in clocks.
    pub fn new(now: u64) -> Self {
        Self { asked: [now.wrapping_sub(INTERVAL); SLOTS] }
    }

    /// Whether an address at an interface may be asked for at `now`, in clocks; it is held to be asked then.
    pub fn allows(&mut self, interface: u16, address: u128, now: u64) -> bool {
        let mixed = (address as u64 ^ (address >> 64) as u64 ^ u64::from(interface) << 32)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let asked = &mut self.asked[(mixed >> 56) as usize % SLOTS];
        let allowed = now.wrapping_sub(*asked) >= INTERVAL;
        if allowed {
            *asked = now;
        }
        allowed
    }
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
    fn all_together_are_asked_for_no_more_often_than_there_are_slots() {
        let mut throttle = Throttle::new(0);
        let allowed = (0..100_000u128).filter(|&address| throttle.allows(3, address, 0)).count();
        assert!((SLOTS / 2..=SLOTS).contains(&allowed), "{allowed}");
    }
}
