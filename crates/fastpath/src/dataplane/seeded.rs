//! A hash that nobody outside can foresee: numbers enter, places leave, others each time a program starts. Who
//! chooses addresses cannot choose those that share a place.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};

/// A hash with a key of its own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seeded {
    add: u64,
    multiply: u64,
}

impl Seeded {
    /// One with a random key.
    pub fn new() -> Self {
        let state = RandomState::new();
        let number = |salt: u64| {
            let mut hasher = state.build_hasher();
            hasher.write_u64(salt);
            hasher.finish()
        };
        Self { add: number(1), multiply: number(2) | 1 }
    }

    /// The hash of a number: both halves of a product, folded.
    #[inline]
    pub fn of(self, number: u64) -> u64 {
        let product = u128::from(number ^ self.add) * u128::from(self.multiply);
        product as u64 ^ (product >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of 16 numbers that differ in so many high bits alone share the commonest of 4,096 places.
    fn most_together(seeded: Seeded, shift: u32) -> usize {
        let places: Vec<u64> = (0..16_u64).map(|high| seeded.of(high << shift | 7) % 4096).collect();
        let together = |place: &u64| places.iter().filter(|other| *other == place).count();
        places.iter().map(together).max().unwrap_or(0)
    }

    #[test]
    fn numbers_alike_in_their_low_bits_are_spread_by_most_keys() {
        let keys: Vec<Seeded> = (0..100).map(|_| Seeded::new()).collect();
        for shift in [32, 40, 44, 48] {
            let spread = keys.iter().filter(|key| most_together(**key, shift) <= 4).count();
            assert!(spread > 90, "{spread} of 100, shifted by {shift}");
        }
        assert_ne!(keys[0].of(1), keys[1].of(1));
        assert_eq!(keys[0].of(1), keys[0].of(1));
    }
}
