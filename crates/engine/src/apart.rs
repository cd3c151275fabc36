//! Streams that are counted apart: what each worker and core counted of one enters, a [`StreamTotals`] leaves.

use stats::Histogram;
use wire::size::FCS;

/// What happened to one stream's frames in one direction since the engine started.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StreamTotals {
    /// Frames that left the tester.
    pub offered: u64,
    /// Bytes of those, FCS included.
    pub offered_bytes: u64,
    /// Frames that came back at the other port, duplicates not counted twice.
    pub forwarded: u64,
    /// Bytes of those, FCS included.
    pub forwarded_bytes: u64,
    /// Frames that came back more than once, counted once for each further time.
    pub duplicates: u64,
    /// Frames that came back after a frame that left later.
    pub reordered: u64,
    /// How often sequence numbers were left out.
    pub gaps: u64,
    /// Numbers that were left out and did not come later. More than were lost where frames of a stream arrive at
    /// several queues, each of which sees some of the numbers, and where a port did not take frames.
    pub missing: u64,
    /// Shortest time between departure and return, in nanoseconds; 0 without frames.
    pub latency_min: u64,
    /// Longest.
    pub latency_max: u64,
    /// Sum of all.
    pub latency_sum: u64,
    /// By how much the times of frames that follow each other differ: RFC 3550, appendix A.8, in nanoseconds; the
    /// largest of all queues.
    pub jitter: u64,
    /// Distribution of the times, of the streams for which it is kept.
    pub latency: Histogram,
}

/// What one core received of a stream, as it counts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StreamReceived {
    pub frames: u64,
    /// Without FCS.
    pub bytes: u64,
    pub duplicates: u64,
    pub reordered: u64,
    pub gaps: u64,
    pub missing: u64,
    /// Plus one, so that zero means none yet.
    pub latency_min: u64,
    pub latency_max: u64,
    pub latency_sum: u64,
    /// 16 times the jitter.
    pub jitter: u64,
}

impl StreamTotals {
    /// Adds frames that one worker sent, and their bytes without FCS.
    pub(crate) fn add_sent(&mut self, frames: u64, bytes: u64) {
        self.offered += frames;
        self.offered_bytes += bytes + u64::from(FCS) * frames;
    }

    /// Adds what one core received.
    pub(crate) fn add_received(&mut self, other: &StreamReceived) {
        self.duplicates += other.duplicates;
        self.reordered += other.reordered;
        self.gaps += other.gaps;
        self.missing += other.missing;
        if other.frames == 0 {
            return;
        }
        let min = other.latency_min.saturating_sub(1);
        self.latency_min = if self.forwarded == 0 { min } else { self.latency_min.min(min) };
        self.forwarded += other.frames;
        self.forwarded_bytes += other.bytes + u64::from(FCS) * other.frames;
        self.latency_max = self.latency_max.max(other.latency_max);
        self.latency_sum += other.latency_sum;
        self.jitter = self.jitter.max(other.jitter >> 4);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_several_cores_received_is_added_up() {
        let mut sum = StreamTotals::default();
        sum.add_sent(10, 600);
        sum.add_received(&StreamReceived { duplicates: 1, ..StreamReceived::default() });
        let one = StreamReceived {
            frames: 4,
            bytes: 240,
            latency_min: 101,
            latency_max: 300,
            latency_sum: 800,
            jitter: 160,
            missing: 1,
            gaps: 1,
            ..StreamReceived::default()
        };
        sum.add_received(&one);
        sum.add_received(&StreamReceived { latency_min: 51, latency_max: 200, jitter: 16, ..one });
        assert_eq!((sum.offered, sum.offered_bytes, sum.forwarded, sum.forwarded_bytes), (10, 640, 8, 512));
        assert_eq!((sum.latency_min, sum.latency_max, sum.latency_sum, sum.jitter), (50, 300, 1600, 10));
        assert_eq!((sum.duplicates, sum.missing, sum.gaps), (1, 2, 2));
    }
}
