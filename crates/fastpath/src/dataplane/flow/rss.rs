//! Receive-side scaling (RSS) in software: a frame enters, the number of the worker that its flow belongs to
//! leaves. All frames of a flow belong to one worker, so that they keep their order; those of its other direction and
//! errors about it, too, so that this worker alone knows its state.

use wire::toeplitz::{INDIRECTION, MICROSOFT};

use super::ends::Ends;

/// How flows are dealt out to workers.
pub struct Rss {
    ends: Ends,
    /// By the low bits of the hash: a worker.
    indirection: [u8; INDIRECTION],
}

impl Rss {
    /// Deals flows out to so many workers, 255 at most, as evenly as `ethtool -X DEVICE equal N` does.
    #[must_use]
    pub fn new(workers: usize) -> Self {
        let workers = workers.clamp(1, usize::from(u8::MAX));
        let indirection = std::array::from_fn(|entry| (entry % workers) as u8);
        Self { ends: Ends::new(&MICROSOFT), indirection }
    }

    /// The worker of a frame's flow; see [`Ends::of_frame`]. Frames that are not IP are the first
    /// worker's.
    #[must_use]
    #[inline]
    pub fn worker(&self, frame: &[u8]) -> usize {
        let hash = self.ends.of_frame(frame);
        self.indirection.get(hash as usize % INDIRECTION).map_or(0, |worker| usize::from(*worker))
    }
}
