//! How many ICMP errors a worker sends: a token bucket (RFC 4443, 2.4 (f); RFC 1812, 4.3.2.8), of which
//! clocks enter and a yes leaves.

/// How many errors may follow each other at once.
const MOST: u64 = 64;

/// Clocks of the time stamp counter until the next one: about a millisecond at 2 to 3 GHz.
const INTERVAL: u64 = 1 << 21;

/// A bucket of tokens.
#[derive(Debug)]
pub(crate) struct Bucket {
    tokens: u64,
    /// When the last token came, in clocks.
    filled: u64,
}

impl Bucket {
    /// One that is full at `now`, in clocks.
    pub fn new(now: u64) -> Self {
        Self { tokens: MOST, filled: now }
    }

    /// Takes a token at `now`, in clocks, if there is one.
    pub fn take(&mut self, now: u64) -> bool {
        let came = now.wrapping_sub(self.filled) / INTERVAL;
        self.tokens = self.tokens.saturating_add(came).min(MOST);
        self.filled = self.filled.wrapping_add(came.wrapping_mul(INTERVAL));
        let token = self.tokens > 0;
        self.tokens -= u64::from(token);
        token
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_bucket_is_soon_empty_and_fills_slowly() {
        let start = u64::MAX - 5;
        let mut bucket = Bucket::new(start);
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
}
