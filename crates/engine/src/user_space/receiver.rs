//! One worker's receiving side: frames that arrive at a port enter; ours are counted.

use wire::signature::{DEPARTURE_MASK, Signature};

use super::Receive;
use super::tally::{DIRECTIONS, Tally};
use crate::Error;
use crate::live::{INTERVALS, monotonic};
use crate::order::{Order, Window};
use crate::timeline::BIN_SHIFT;

/// Receives at one queue of a port.
#[derive(Debug)]
pub struct Receiver<R> {
    queue: R,
    /// The direction whose frames arrive here.
    direction: usize,
    workers: usize,
    /// By stream and worker.
    windows: Vec<Window>,
}

/// Frames in a row that left in the same interval and bin, not yet counted.
#[derive(Clone, Copy, Debug)]
struct Run {
    slot: u64,
    bin: u64,
    frames: u64,
    bytes: u64,
    latency_min: u64,
    latency_max: u64,
    latency_sum: u64,
}

impl Run {
    const NONE: Self = Self {
        slot: u64::MAX,
        bin: 0,
        frames: 0,
        bytes: 0,
        latency_min: u64::MAX,
        latency_max: 0,
        latency_sum: 0,
    };

    /// Counts its frames, which are of `direction`.
    fn count(&self, direction: usize, tally: &Tally) {
        if self.frames == 0 {
            return;
        }
        let count = tally.received(self.slot, direction);
        count.frames.add(self.frames);
        count.bytes.add(self.bytes);
        count.latency_sum.add(self.latency_sum);
        if self.latency_max > count.latency_max.get() {
            count.latency_max.set(self.latency_max);
        }
        let min = count.latency_min.get();
        if min == 0 || self.latency_min + 1 < min {
            count.latency_min.set(self.latency_min + 1);
        }
        tally.totals[direction].frames.add(self.frames);
        tally.received_bins[direction].count(self.bin << BIN_SHIFT, self.frames);
    }
}

impl<R: Receive> Receiver<R> {
    /// Frames of `direction` from `workers` workers and up to `streams` streams arrive at `queue`.
    pub fn new(queue: R, direction: usize, streams: usize, workers: usize) -> Self {
        let windows = vec![Window::default(); streams * workers];
        Self { queue, direction: direction % DIRECTIONS, workers, windows }
    }

    /// Counts what has arrived, and says how many frames that were.
    #[inline]
    pub fn receive(&mut self, tally: &Tally) -> Result<usize, Error> {
        let arrived = self.queue.receive();
        if arrived == 0 {
            return Ok(0);
        }
        let now = monotonic()?;
        let mut run = Run::NONE;
        for index in 0..arrived {
            judge(
                self.queue.frame(index),
                now,
                (self.direction, self.workers),
                &mut self.windows,
                &mut run,
                tally,
            );
        }
        run.count(self.direction, tally);
        self.queue.release();
        Ok(arrived)
    }
}

/// Judges one frame that arrived at `now`. Ours are added to `run`.
#[inline]
fn judge(
    frame: Option<&[u8]>,
    now: u64,
    (direction, workers): (usize, usize),
    windows: &mut [Window],
    run: &mut Run,
    tally: &Tally,
) {
    let total = &tally.totals[direction];
    let Some((frame, signature)) = frame.and_then(|frame| Some((frame, Signature::parse(frame)?))) else {
        total.foreign.add(1);
        return;
    };
    if usize::from(signature.direction) != direction {
        total.returned.add(1);
        return;
    }
    let worker = usize::from(signature.worker);
    let window =
        windows.get_mut(usize::from(signature.stream) * workers + worker).filter(|_| worker < workers);
    let ahead = window.as_ref().map_or(0, |window| window.ahead(signature.sequence));
    let order = window.map(|window| window.judge(signature.sequence));
    let stream = tally.stream(signature.stream, direction);
    if let (Some(stream), Some(order)) = (stream, order) {
        stream.count_order(order, ahead);
    }
    match order {
        None => return total.foreign.add(1),
        Some(Order::Duplicate) => return total.duplicates.add(1),
        Some(Order::Reordered) => total.reordered.add(1),
        Some(Order::InOrder) => {}
    }
    let latency = now.wrapping_sub(signature.departure) & DEPARTURE_MASK;
    let slot = u64::from(signature.interval) % INTERVALS as u64;
    let bin = now.wrapping_sub(latency) >> BIN_SHIFT;
    if (slot, bin) != (run.slot, run.bin) {
        run.count(direction, tally);
        *run = Run { slot, bin, ..Run::NONE };
    }
    run.frames += 1;
    run.bytes += frame.len() as u64;
    run.latency_min = run.latency_min.min(latency);
    run.latency_max = run.latency_max.max(latency);
    run.latency_sum += latency;
    total.latency.count(latency);
    if let Some(stream) = stream {
        stream.count_received(frame.len(), latency);
    }
}

#[cfg(test)]
mod tests {
    use traffic::Apart;

    use super::*;

    const NOW: u64 = 77 << 48 | 5_000_000;

    fn frame(signature: &Signature) -> Vec<u8> {
        let mut frame = vec![0; 42];
        frame.extend(signature.emit());
        frame
    }

    /// What a tally says after these frames arrived at port 1: frames, duplicates, reordered, returned,
    /// foreign.
    fn tell(frames: &[Vec<u8>]) -> (Tally, [u64; 5]) {
        let tally = Tally::new(Apart { streams: 2, latencies: 2 });
        let mut windows = vec![Window::default(); 2 * 3];
        let mut run = Run::NONE;
        for frame in frames {
            judge(Some(frame), NOW, (0, 3), &mut windows, &mut run, &tally);
        }
        judge(None, NOW, (0, 3), &mut windows, &mut run, &tally);
        run.count(0, &tally);
        let total = &tally.totals[0];
        let counts = [&total.frames, &total.duplicates, &total.reordered, &total.returned, &total.foreign]
            .map(|c| c.get());
        (tally, counts)
    }

    #[test]
    fn each_frame_is_counted_under_what_it_is() {
        let ours = |sequence| Signature {
            stream: 1,
            direction: 0,
            worker: 2,
            interval: 9,
            sequence,
            departure: NOW & DEPARTURE_MASK,
        };
        let departure = (NOW - 3_000_000) & DEPARTURE_MASK;
        let (tally, counts) = tell(&[
            frame(&ours(0)),
            frame(&ours(2)),
            frame(&ours(1)),
            frame(&ours(1)),
            frame(&Signature { interval: 10, departure, ..ours(3) }),
            frame(&Signature { direction: 1, ..ours(4) }),
            frame(&Signature { worker: 3, ..ours(4) }),
            frame(&Signature { stream: 2, ..ours(4) }),
            vec![0; 60],
            vec![0; 3],
        ]);
        // The last of the foreign ones was in several pieces.
        assert_eq!(counts, [4, 1, 1, 1, 5]);
        assert_eq!(tally.received(9, 0).frames.get(), 3);
        assert_eq!(tally.received(9, 0).bytes.get(), 180);
        let other = tally.received(10, 0);
        let latencies = [&other.latency_min, &other.latency_max, &other.latency_sum].map(|c| c.get());
        assert_eq!(latencies, [3_000_001, 3_000_000, 3_000_000], "the shortest plus one");
        assert_eq!(tally.totals[0].latency.histogram().total(), 4);
        // The stream apart: one number was left out and came later, and the latency jumped once by 3 ms.
        let mut stream = crate::StreamTotals::default();
        tally.stream(1, 0).unwrap().add_to(&mut stream);
        assert_eq!((stream.forwarded, stream.forwarded_bytes, stream.latency.total()), (4, 256, 4));
        assert_eq!((stream.duplicates, stream.reordered, stream.gaps, stream.missing), (1, 1, 1, 0));
        assert_eq!((stream.latency_min, stream.latency_max, stream.jitter), (0, 3_000_000, 187_500));
    }
}
