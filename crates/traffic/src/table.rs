//! The frame table: every frame of a profile ready to be copied, in the order of departure.
//!
//! Evaluated streams enter; what leaves is all that an engine needs to know of a profile.
//! An engine sends row 0, 1, 2 … and begins again, at equal distances in time or, where the profile has bursts, at
//! those of [`FrameTable::times`]; it copies the row's header, leaves the payload (`fill`) as it is, and writes the signature
//! ([`wire::signature`]) into the last bytes of the frame.

use wire::checksum;
use wire::signature::{self, Signature};

/// One frame: where its header stands, and what an engine must know to send it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Bytes handed to the interface: the frame size less the 4 bytes of the FCS.
    pub length: u16,
    /// The stream it belongs to; its sequence numbers count within stream and direction.
    pub stream: u8,
    /// 0: leaves by port 0, expected at port 1. 1: the reverse.
    pub direction: u8,
    /// Where the layer-4 checksum stands in the frame, if it covers the signature.
    ///
    /// The header holds the checksum for a signature whose bytes after the magic are zero;
    /// an engine adds what it writes there. `None`: no checksum to keep (UDP/IPv4 without one).
    pub checksum: Option<Checksum>,
}

/// A layer-4 checksum that an engine must keep right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checksum {
    /// Offset of the 16-bit field from the start of the frame.
    pub offset: u16,
    /// Whether the signature begins at an odd distance from the start of the checksummed
    /// bytes, so that its sum must be byte-swapped before it is added.
    pub swapped: bool,
    /// Whether a result of zero is sent as 0xffff (UDP, RFC 768).
    pub zero_is_ffff: bool,
}

/// All frames of a profile, for one direction or both, in the order of departure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameTable {
    /// The frames.
    pub rows: Vec<Row>,
    /// Their headers, `header_length` bytes each. Bytes past a frame's own headers hold `fill`,
    /// except where the signature will be written.
    pub headers: Vec<u8>,
    /// Bytes of header copied per frame: a multiple of 8, at most [`FrameTable::MAX_HEADER`],
    /// and never longer than the shortest frame rounded up to a multiple of 8.
    pub header_length: usize,
    /// The byte that fills every payload.
    pub fill: u8,
    /// Frames that the profile sends before it repeats exactly. More than `rows.len()` when
    /// the table is a bounded sample of a longer period.
    pub period: u64,
    /// When each row leaves at a set rate: from the first one, in 2^-16 of the mean distance between two rows, rising.
    /// Empty where all distances are equal.
    pub times: Vec<u64>,
    /// The streams that an engine counts apart.
    pub apart: Apart,
}

/// Which streams an engine counts apart: the first ones. Counting costs time at each frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Apart {
    /// How many are counted: 0 to 256.
    pub streams: usize,
    /// Of how many of those the distribution of latencies is kept; 8 kB for each core and direction.
    pub latencies: usize,
}

/// # Panics
/// Methods that take an `index` panic when it is not below `rows.len()`.
impl FrameTable {
    /// The longest header an engine copies: room for two VLAN tags, IPv6 and TCP.
    pub const MAX_HEADER: usize = 96;
    /// The most rows a table has.
    pub const MAX_ROWS: usize = 1 << 20;

    /// The header of row `index`.
    #[must_use]
    pub fn header(&self, index: usize) -> &[u8] {
        &self.headers[index * self.header_length..][..self.header_length]
    }

    /// The whole frame of row `index` as it would leave, signature zeroed but for its magic.
    #[must_use]
    pub fn frame(&self, index: usize) -> Vec<u8> {
        let length = usize::from(self.rows[index].length);
        let mut frame = self.header(index).to_vec();
        frame.resize(length.max(self.header_length), self.fill);
        frame.truncate(length);
        if let Some(bytes) = frame.last_chunk_mut::<{ signature::LENGTH }>() {
            bytes.fill(0);
            bytes[..4].copy_from_slice(&signature::MAGIC);
        }
        frame
    }

    /// The whole frame of row `index` as it leaves with `signature`.
    #[must_use]
    pub fn finished_frame(&self, index: usize, signature: &Signature) -> Vec<u8> {
        let mut frame = self.frame(index);
        finish(&mut frame, &self.rows[index], signature);
        frame
    }

    /// Whether the table holds the profile's full period, not a sample of it.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.period <= self.rows.len() as u64
    }

    /// The mean frame size in bytes, FCS included, over all rows.
    #[must_use]
    pub fn mean_frame_size(&self) -> f64 {
        let total: u64 = self.rows.iter().map(|row| u64::from(row.length) + 4).sum();
        total as f64 / self.rows.len().max(1) as f64
    }

    /// How far it is from each row to the one that is `workers` further, in 2^-16 of the mean of these distances: what
    /// a worker waits that sends every so many rows. Empty where all are equal.
    #[must_use]
    pub fn distances(&self, workers: usize) -> Vec<u64> {
        let (rows, workers) = (self.times.len(), workers.max(1));
        // Rounded so that those of all rows together are exact.
        let time = |row: usize| {
            (self.times[row % rows] + ((row / rows * rows) as u64 * MEAN_DISTANCE)) / workers as u64
        };
        (0..rows).map(|row| time(row + workers) - time(row)).collect()
    }

    /// When worker `worker` of `workers` sends its first row, in the same measure; `None` where all distances are equal.
    #[must_use]
    pub fn first_time(&self, worker: usize, workers: usize) -> Option<u64> {
        self.times.get(worker).map(|time| time / workers.max(1) as u64)
    }

    /// How many streams its frames are of, at most: one more than the highest number.
    #[must_use]
    pub fn streams(&self) -> usize {
        1 + self.rows.iter().map(|row| usize::from(row.stream)).max().unwrap_or(0)
    }

    /// The directions that the table sends in: 1 or 2.
    #[must_use]
    pub fn directions(&self) -> usize {
        1 + usize::from(self.rows.iter().any(|row| row.direction == 1))
    }
}

/// The mean distance between two rows in the measure of [`FrameTable::times`].
pub const MEAN_DISTANCE: u64 = 1 << 16;

/// `times` of rows, and of the first after them, in the measure of [`FrameTable::times`].
pub(crate) fn in_mean_distances(times: &[u64], end: u64) -> Vec<u64> {
    let whole = times.len() as u128 * u128::from(MEAN_DISTANCE);
    let scaled = |time: &u64| (u128::from(*time) * whole / u128::from(end.max(1))) as u64;
    times.iter().map(scaled).collect()
}

/// Writes `signature` into a whole frame of `row`, as [`FrameTable::frame`] gives it, and sets its
/// checksum right: what every engine does for each frame it sends.
///
/// Bytes too few for a signature are left alone.
pub fn finish(frame: &mut [u8], row: &Row, signature: &Signature) {
    let bytes = signature.emit();
    if let Some(place) = frame.last_chunk_mut() {
        *place = bytes;
    }
    let Some(checksum) = row.checksum else { return };
    let field = frame.get_mut(usize::from(checksum.offset)..).and_then(|rest| rest.first_chunk_mut::<2>());
    let Some(field) = field else { return };
    // The sum holds the magic already.
    let [_, _, _, _, changed @ ..] = bytes;
    let value = checksum::replace_zeros(u16::from_be_bytes(*field), &changed, checksum.swapped);
    let value = if value == 0 && checksum.zero_is_ffff { 0xffff } else { value };
    *field = value.to_be_bytes();
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Four rows: three at once, and then a pause.
    fn burst() -> FrameTable {
        let row = Row { length: 60, stream: 0, direction: 0, checksum: None };
        let times = in_mean_distances(&[0, 10, 20, 30], 400);
        let (rows, headers) = (vec![row; 4], vec![0; 4 * 48]);
        FrameTable { rows, headers, header_length: 48, fill: 0, period: 4, times, apart: Apart::default() }
    }

    #[test]
    fn distances_of_rows_add_up_to_the_mean() {
        let table = burst();
        assert_eq!(table.distances(1), [6553, 6554, 6553, 4 * 65536 - 19660]);
        for workers in 1..=4 {
            let distances = table.distances(workers);
            let first = |worker| table.first_time(worker, workers).unwrap();
            // Every worker's rows, until it is at its first one again.
            for worker in 0..workers {
                let rows = std::iter::successors(Some(worker), |row| Some((row + workers) % 4));
                let sum: u64 = rows.take(4).map(|row| distances[row]).sum();
                assert!(sum.abs_diff(4 * MEAN_DISTANCE) <= 4, "{workers} workers: {distances:?}");
            }
            assert!((1..workers).all(|worker| first(worker) > first(worker - 1)));
        }
        assert_eq!(FrameTable { times: Vec::new(), ..table }.distances(2), []);
    }
}
