//! Frames that were due and that a port did not take: counts by reason enter, words leave.

use std::ops::{AddAssign, Sub};

/// Frames that a port did not take, by reason: they are unsent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Untaken {
    /// The driver's transmit queue was full.
    pub queue_full: u64,
    /// The driver cannot transmit such frames, or not as the interface is set up now.
    pub unable: u64,
    /// The interface was down, or had no link.
    pub down: u64,
    /// The interface was not there.
    pub gone: u64,
    /// The frame was longer than the interface's MTU allows.
    pub too_long: u64,
    /// Any other reason of the driver's.
    pub other: u64,
}

impl Untaken {
    /// Reasons, in the order of the fields.
    const REASONS: [&'static str; 6] = [
        "the driver's transmit queue was full",
        "the driver could not transmit redirected frames",
        "the interface was down or without a link",
        "the interface was gone",
        "the frame was longer than the interface's MTU",
        "the driver refused the frame",
    ];

    /// The counts in the order of the fields.
    #[must_use]
    pub const fn new(counts: [u64; 6]) -> Self {
        let [queue_full, unable, down, gone, too_long, other] = counts;
        Self { queue_full, unable, down, gone, too_long, other }
    }

    const fn counts(self) -> [u64; 6] {
        [self.queue_full, self.unable, self.down, self.gone, self.too_long, self.other]
    }

    /// All of them.
    #[must_use]
    pub fn total(self) -> u64 {
        self.counts().iter().sum()
    }

    /// Each reason that there were frames for, in words, and how many.
    pub fn reasons(self) -> impl Iterator<Item = (&'static str, u64)> {
        Self::REASONS.into_iter().zip(self.counts()).filter(|(_, frames)| *frames > 0)
    }
}

impl AddAssign for Untaken {
    fn add_assign(&mut self, other: Self) {
        let (mut counts, others) = (self.counts(), other.counts());
        counts.iter_mut().zip(others).for_each(|(count, other)| *count += other);
        *self = Self::new(counts);
    }
}

impl Sub for Untaken {
    type Output = Self;

    /// What was added since `earlier`.
    fn sub(self, earlier: Self) -> Self {
        let (mut counts, others) = (self.counts(), earlier.counts());
        counts.iter_mut().zip(others).for_each(|(count, other)| *count = count.saturating_sub(other));
        Self::new(counts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_told_with_their_counts() {
        let mut untaken = Untaken { queue_full: 3, down: 2, ..Untaken::default() };
        untaken += Untaken { queue_full: 1, other: 1, ..Untaken::default() };
        assert_eq!(untaken.total(), 7);
        let told: Vec<_> = untaken.reasons().collect();
        assert_eq!(
            told,
            [
                ("the driver's transmit queue was full", 4),
                ("the interface was down or without a link", 2),
                ("the driver refused the frame", 1)
            ]
        );
        assert_eq!((untaken - Untaken::new([4, 0, 0, 0, 0, 0])).queue_full, 0);
    }
}
