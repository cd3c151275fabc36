//! Frames by when they left: what the kernel programs counted on each core enters, a [`Timeline`]
//! leaves.

use libbpf_rs::MapCore;

use super::program;
use crate::{Bin, Error, Timeline};

/// The length of a bin as a power of two in nanoseconds, and how many are kept, as in `shared.h`.
const BIN_SHIFT: u32 = 20;
const BINS: u64 = 8192;
/// Bytes of a bin there.
const BIN: usize = 8;

/// The bins of one worker or core: `struct bins` of `shared.h`.
#[derive(Clone, Debug)]
pub struct Bins(Vec<u8>);

impl Bins {
    pub(super) fn read(map: &impl MapCore, index: usize) -> Result<Self, Error> {
        program::read_bytes(map, index).map(Self)
    }

    /// Frames in bin `number`, if its place is not another's.
    fn frames(&self, number: u64) -> u64 {
        let place = (number % BINS) as usize * BIN;
        let word = |at: usize| {
            let bytes = self.0.get(place + at..).and_then(|rest| rest.first_chunk());
            bytes.copied().map_or(0, u32::from_ne_bytes)
        };
        if word(0) == number as u32 { u64::from(word(4)) } else { 0 }
    }
}

/// All frames from `start` to `end` (nanoseconds, monotonic clock). `None` if so many are not kept.
pub(super) fn of(sent: &[Bins], received: &[Bins], start: u64, end: u64) -> Option<Timeline> {
    let numbers = start >> BIN_SHIFT..(end >> BIN_SHIFT) + 1;
    let count = numbers.end.checked_sub(numbers.start).filter(|count| *count <= BINS)?;
    let sum = |bins: &[Bins], number| bins.iter().map(|bins| bins.frames(number)).sum();
    let bin = |number| Bin { offered: sum(sent, number), forwarded: sum(received, number) };
    let mut bins = Vec::with_capacity(count as usize);
    bins.extend(numbers.clone().map(bin));
    Some(Timeline { start_ns: numbers.start << BIN_SHIFT, bin_ns: 1 << BIN_SHIFT, bins })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bins(counts: &[(u64, u32)]) -> Bins {
        let mut bytes = vec![0; BINS as usize * BIN];
        for (number, frames) in counts {
            let place = (number % BINS) as usize * BIN;
            bytes[place..place + 4].copy_from_slice(&(*number as u32).to_ne_bytes());
            bytes[place + 4..place + 8].copy_from_slice(&frames.to_ne_bytes());
        }
        Bins(bytes)
    }

    #[test]
    fn bins_of_all_cores_are_added_up_and_old_ones_left_out() {
        // A month after the clock began, where the numbers no longer fit 31 bits.
        let first = 3_000_000_000;
        let sent = [bins(&[(first - 1, 9), (first, 5), (first + 2, 7)]), bins(&[(first + 2, 1)])];
        let received = [bins(&[(first, 4), (first + 1 - BINS, 3)]), bins(&[(first + 2, 8)])];
        let found = of(&sent, &received, (first << BIN_SHIFT) + 17, (first + 3) << BIN_SHIFT).unwrap();
        let bin = |offered, forwarded| Bin { offered, forwarded };
        assert_eq!(found.start_ns, first << BIN_SHIFT);
        assert_eq!(found.bins, [bin(5, 4), bin(0, 0), bin(8, 8), bin(0, 0)]);
        assert_eq!(of(&sent, &received, 0, BINS << BIN_SHIFT), None, "more than are kept");
    }
}
