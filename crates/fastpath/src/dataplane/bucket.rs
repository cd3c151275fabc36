//! How often something may be: token buckets, of which clocks enter and a yes leaves (for ICMP errors RFC 4443,
//! 2.4 (f), and RFC 1812, 4.3.2.8).

use crate::dataplane::counters::INTERFACES;

/// Clocks of the time stamp counter of about a millisecond, at 2 to 3 GHz.
pub(crate) const MILLISECOND: u64 = 1 << 21;

/// A bucket of tokens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bucket {
    tokens: u32,
    /// How many there are at most.
    most: u32,
    /// Clocks until the next one.
    interval: u64,
    /// When the last token came, in clocks.
    filled: u64,
}

impl Bucket {
    /// One that is full at `now`, in clocks: so many may follow each other at once, and one each `interval`
    /// clocks from then on.
    pub fn new(now: u64, most: u32, interval: u64) -> Self {
        Self { tokens: most, most, interval: interval.max(1), filled: now }
    }

    /// Takes a token at `now`, in clocks, if there is one.
    #[inline]
    pub fn take(&mut self, now: u64) -> bool {
        let passed = now.wrapping_sub(self.filled);
        if passed >= self.interval {
            let came = passed / self.interval;
            let tokens = u64::from(self.tokens).saturating_add(came).min(u64::from(self.most));
            self.tokens = tokens as u32;
            self.filled = self.filled.wrapping_add(came.wrapping_mul(self.interval));
        }
        let token = self.tokens > 0;
        self.tokens -= u32::from(token);
        token
    }
}

/// A bucket for each interface, so that what comes by one takes nothing from the others.
#[derive(Debug)]
pub(crate) struct Buckets(Box<[Bucket]>);

impl Buckets {
    /// Of `bucket` each.
    pub fn new(bucket: Bucket) -> Self {
        Self(vec![bucket; INTERFACES].into_boxed_slice())
    }

    /// Takes a token of an interface at `now`, in clocks, if there is one.
    #[inline]
    pub fn take(&mut self, interface: u16, now: u64) -> bool {
        self.0.get_mut(usize::from(interface)).is_some_and(|bucket| bucket.take(now))
    }
}

/// How many ICMP errors a worker sends about what arrived at an interface.
#[derive(Debug)]
pub(crate) struct Errors {
    any: Buckets,
    /// Kept for those without which packets vanish for good: that they are too big (RFC 4443, 2.4 (f); RFC 8201).
    too_big: Buckets,
}

impl Errors {
    /// 64 at once, and then one in about a millisecond; as many again that packets are too big.
    pub fn new(now: u64) -> Self {
        let buckets = || Buckets::new(Bucket::new(now, 64, MILLISECOND));
        Self { any: buckets(), too_big: buckets() }
    }

    /// Whether one may be sent at `now`, in clocks, about a packet that arrived at `interface`; it is held to be
    /// sent then.
    pub fn allow(&mut self, interface: u16, is_too_big: bool, now: u64) -> bool {
        (is_too_big && self.too_big.take(interface, now)) || self.any.take(interface, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_bucket_is_soon_empty_and_fills_slowly() {
        const MOST: u64 = 64;
        const INTERVAL: u64 = 1 << 21;
        let start = u64::MAX - 5;
        let mut bucket = Bucket::new(start, MOST as u32, INTERVAL);
        let mut taken = |clocks: u64| {
            let now = start.wrapping_add(clocks);
            (0..1000).filter(|_| bucket.take(now)).count() as u64
        };
        assert_eq!(taken(0), MOST);
        assert_eq!(taken(INTERVAL - 1), 0);
        assert_eq!(taken(INTERVAL), 1);
        assert_eq!(taken(4 * INTERVAL + 3), 3);
        assert_eq!(taken(5 * INTERVAL + 2), 1);
        assert_eq!(taken(5000 * INTERVAL), MOST);
    }

    #[test]
    fn other_errors_leave_room_for_too_big_and_other_interfaces_are_not_touched() {
        let mut errors = Errors::new(9);
        let mut sent =
            |interface, is_too_big| (0..1000).filter(|_| errors.allow(interface, is_too_big, 9)).count();
        assert_eq!(sent(1, false), 64);
        assert_eq!((sent(1, false), sent(1, true)), (0, 64));
        assert_eq!((sent(2, true), sent(3, false)), (128, 64));
        assert_eq!(sent(INTERFACES as u16, false), 0);
    }
}
