//! A hash that nobody outside can foresee: numbers enter, places leave, others each time a program starts. Who
//! chooses addresses cannot choose those that share a place.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};

/// A hash with a key of its own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seeded {
    add: u64,
    /// Two odd factors. After one product, runs of numbers share places under some keys; after two, under none
    /// that chance finds.
    multiply: [u64; 2],
    /// Two more, and two more to add, so that several numbers can be multiplied at once.
    more: [u64; 4],
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
        let more = [number(4) | 1, number(5), number(6) | 1, number(7)];
        Self { add: number(1), multiply: [number(2) | 1, number(3) | 1], more }
    }

    /// The hash of a number: twice a product, its halves folded.
    #[inline]
    pub fn of(self, number: u64) -> u64 {
        let [first, second] = self.multiply;
        fold(fold(number ^ self.add, first), second)
    }

    /// The hash of five numbers, each of which is multiplied at least twice.
    #[inline(always)]
    pub fn of_five(self, &[a, b, c, d, e]: &[u64; 5]) -> u64 {
        let ([first, second], [for_a, for_b, for_c, for_d]) = (self.multiply, self.more);
        let (one, other) = (fold(a ^ for_a, b ^ for_b), fold(c ^ for_c, d ^ for_d));
        fold(fold(one ^ other.rotate_left(32) ^ e ^ self.add, first), second)
    }
}

#[inline]
fn fold(number: u64, by: u64) -> u64 {
    let product = u128::from(number) * u128::from(by);
    product as u64 ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of these numbers share the commonest of 64 places.
    fn most_together(seeded: Seeded, numbers: impl Iterator<Item = u64>) -> usize {
        let mut places = [0; 64];
        for number in numbers {
            places[(seeded.of(number) % 64) as usize] += 1;
        }
        places.into_iter().max().unwrap_or(0)
    }

    #[test]
    fn numbers_that_differ_in_a_few_bits_are_spread_by_every_key() {
        // After one product with the first factor, both halves count alike and nearly cancel each other.
        let unlucky = Seeded { add: 0, multiply: [u64::MAX - 126, 0x9e37_79b9_7f4a_7c15], ..Seeded::new() };
        for key in (0..500).map(|_| Seeded::new()).chain([unlucky]) {
            for shift in [0, 1, 8, 16, 32, 40, 44, 48] {
                // By chance, 20 of 200 share one of 64 places in one case of four thousand million.
                let together = most_together(key, (0..200_u64).map(|high| (high << shift) ^ 7));
                assert!(together < 20, "{together} of 200 share a place, shifted by {shift}: {key:?}");
            }
        }
    }

    #[test]
    fn five_numbers_that_differ_in_a_few_bits_are_spread_wherever_these_are() {
        for key in (0..100).map(|_| Seeded::new()) {
            for (at, shift) in (0..5).flat_map(|at| [0, 8, 16, 40].map(|shift| (at, shift))) {
                let hash = |high: u64| {
                    let mut numbers = [0, 7, 0, 9, 0x0000_1100_0035_0400];
                    numbers[at] ^= high << shift;
                    key.of_five(&numbers)
                };
                let mut places = [0; 64];
                (0..200).for_each(|high| places[(hash(high) % 64) as usize] += 1);
                let together = places.into_iter().max().unwrap_or(0);
                assert!(together < 20, "{together} of 200 share a place, {at} shifted by {shift}: {key:?}");
            }
        }
    }

    #[test]
    fn each_key_has_places_of_its_own() {
        let keys = [Seeded::new(), Seeded::new()];
        assert_ne!(keys[0].of(1), keys[1].of(1));
        assert_eq!(keys[0].of(1), keys[0].of(1));
    }
}
