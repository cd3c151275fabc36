//! Frames by the time of their departure, so that what befell a device for a moment can be told from
//! what it does all the time. What each core or worker counted enters, a [`Timeline`] leaves.

/// One direction's frames, in bins of equal length without a gap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timeline {
    /// When the first bin begins, in nanoseconds of the clock that departures are read from:
    /// `CLOCK_MONOTONIC`, or an engine's virtual time.
    pub start_ns: u64,
    /// How long each bin is.
    pub bin_ns: u64,
    /// In the order of time.
    pub bins: Vec<Bin>,
}

/// The frames that left in one bin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bin {
    /// How many.
    pub offered: u64,
    /// How many of them have come back.
    pub forwarded: u64,
}

/// The length of a bin as a power of two in nanoseconds, as in `xdp/shared.h`.
pub(crate) const BIN_SHIFT: u32 = 20;
/// How many are kept, as in `xdp/shared.h`.
pub(crate) const BINS: usize = 8192;

/// The bins that one worker or core counted in: each has its number and its frames, and shares its
/// place with all whose number differs by a multiple of 8,192.
#[derive(Clone, Debug)]
pub struct Bins(Vec<(u32, u32)>);

impl Bins {
    /// From as many numbers and frames as are kept.
    pub(crate) fn new(bins: Vec<(u32, u32)>) -> Self {
        Self(bins)
    }

    /// Frames in bin `number`, if its place is not another's.
    fn frames(&self, number: u64) -> u64 {
        let bin = self.0.get(number as usize % BINS);
        bin.filter(|bin| bin.0 == number as u32).map_or(0, |bin| u64::from(bin.1))
    }
}

/// All frames from `start` to `end` (nanoseconds, monotonic clock). `None` if so many are not kept.
pub(crate) fn of(sent: &[Bins], received: &[Bins], start: u64, end: u64) -> Option<Timeline> {
    let numbers = start >> BIN_SHIFT..(end >> BIN_SHIFT) + 1;
    let count = numbers.end.checked_sub(numbers.start).filter(|count| *count <= BINS as u64)?;
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
        let mut bins = vec![(0, 0); BINS];
        for (number, frames) in counts {
            bins[*number as usize % BINS] = (*number as u32, *frames);
        }
        Bins::new(bins)
    }

    #[test]
    fn bins_of_all_cores_are_added_up_and_old_ones_left_out() {
        // A month after the clock began, where the numbers no longer fit 31 bits.
        let first = 3_000_000_000;
        let sent = [bins(&[(first - 1, 9), (first, 5), (first + 2, 7)]), bins(&[(first + 2, 1)])];
        let received = [bins(&[(first, 4), (first + 1 - BINS as u64, 3)]), bins(&[(first + 2, 8)])];
        let found = of(&sent, &received, (first << BIN_SHIFT) + 17, (first + 3) << BIN_SHIFT).unwrap();
        let bin = |offered, forwarded| Bin { offered, forwarded };
        assert_eq!(found.start_ns, first << BIN_SHIFT);
        assert_eq!(found.bins, [bin(5, 4), bin(0, 0), bin(8, 8), bin(0, 0)]);
        assert_eq!(of(&sent, &received, 0, (BINS as u64) << BIN_SHIFT), None, "more than are kept");
    }
}
