//! Counters of ports, and rates: counters enter now and then, frames and bits a second leave, smoothed as TRex
//! smooths them.

use std::time::Duration;

/// How often rates follow the counters.
const EVERY: Duration = Duration::from_millis(500);

/// What a port has sent and received since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Frames that left.
    pub sent: u64,
    /// Bytes of those, FCS included.
    pub sent_bytes: u64,
    /// Frames that were due and did not leave.
    pub unsent: u64,
    /// Frames of the other port that arrived.
    pub received: u64,
    /// Bytes of those, FCS included.
    pub received_bytes: u64,
}

/// What a port sends and receives.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rate {
    /// Frames a second.
    pub tx_pps: f64,
    /// Bits a second, FCS included.
    pub tx_bps: f64,
    /// Frames a second.
    pub rx_pps: f64,
    /// Bits a second, FCS included.
    pub rx_bps: f64,
}

/// Both ports' rates.
#[derive(Debug, Default)]
pub struct Rates {
    last: Option<(Duration, [Counters; 2])>,
    /// Of each port.
    pub now: [Rate; 2],
}

impl Rates {
    /// What the counters were when they were last followed, and when.
    pub fn last(&self) -> Option<(Duration, [Counters; 2])> {
        self.last
    }

    /// Whether it is time for [`Rates::follow`].
    pub fn is_due(&self, now: Duration) -> bool {
        self.last.is_none_or(|(last, _)| now.saturating_sub(last) >= EVERY)
    }

    /// Takes the counters of `now` into account.
    pub fn follow(&mut self, now: Duration, counters: [Counters; 2]) {
        if let Some((then, before)) = self.last {
            let elapsed = now.saturating_sub(then).as_secs_f64();
            if elapsed <= 0.0 {
                return;
            }
            for (rate, (after, before)) in self.now.iter_mut().zip(counters.iter().zip(&before)) {
                let since = |after: u64, before: u64| after.saturating_sub(before) as f64 / elapsed;
                rate.tx_pps = smooth(rate.tx_pps, since(after.sent, before.sent));
                rate.tx_bps = smooth(rate.tx_bps, 8.0 * since(after.sent_bytes, before.sent_bytes));
                rate.rx_pps = smooth(rate.rx_pps, since(after.received, before.received));
                rate.rx_bps = smooth(rate.rx_bps, 8.0 * since(after.received_bytes, before.received_bytes));
            }
        }
        self.last = Some((now, counters));
    }
}

/// Half of what it was and half of what it is; nothing is soon nothing.
fn smooth(was: f64, is: f64) -> f64 {
    let smoothed = f64::midpoint(was, is);
    if is == 0.0 && smoothed < 1.0 { 0.0 } else { smoothed }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_follow_the_counters() {
        let mut rates = Rates::default();
        let at = |second: u64| Counters {
            sent: 1_000 * second,
            sent_bytes: 64_000 * second,
            ..Counters::default()
        };
        for second in 0..20 {
            assert!(rates.is_due(Duration::from_secs(second)));
            rates.follow(Duration::from_secs(second), [at(second), Counters::default()]);
        }
        assert!(
            (rates.now[0].tx_pps - 1_000.0).abs() < 1.0 && (rates.now[0].tx_bps - 512_000.0).abs() < 512.0
        );
        assert_eq!(rates.now[1], Rate::default());
        for second in 20..40 {
            rates.follow(Duration::from_secs(second), [at(19), Counters::default()]);
        }
        assert_eq!(rates.now[0].tx_pps, 0.0);
    }
}
