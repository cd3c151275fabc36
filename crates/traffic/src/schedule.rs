//! Streams → frame table: which stream sends when, for how long until all repeats, and which rows
//! stand for a period that is too long.

use crate::frame::{self, Directions, Endpoints};
use crate::repetition::Repetition;
use crate::stream::{BothWays, Stream, gcd, saturating_lcm};
use crate::table::{Apart, FrameTable, Row};

/// The most bytes that a table's headers take. The kernel holds a copy, and the tester
/// promises to stay under 200 MB.
const MAX_HEADER_BYTES: usize = 64 << 20;

/// The least rows of a sample.
const MIN_SAMPLE: u64 = 1 << 16;

/// How often a sample draws each different frame, on average.
const DRAWS: u64 = 16;

/// Builds the table of a profile's streams, which leave as `repetition` says if they have bursts, and the byte that
/// fills their payloads, of at most `max_rows` rows. See [`crate::Profile::table`].
pub(crate) fn table(
    (streams, repetition, fill): (&BothWays, Option<&Repetition>, u8),
    endpoints: &Endpoints,
    directions: Directions,
    max_rows: usize,
) -> FrameTable {
    let [forward, reverse] = streams;
    let lanes = match directions {
        Directions::Forward => vec![forward],
        Directions::Both => vec![forward, reverse],
    };
    let weights =
        repetition.map_or_else(|| reduced_weights(forward), |repetition| repetition.frames(forward.len()));
    let streams = || lanes.iter().flat_map(|streams| streams.iter().zip(&weights));
    let headers = streams().map(|(stream, _)| stream.header_length()).max().unwrap_or(0);
    let header_length = headers.next_multiple_of(8);
    let limit = max_rows.min(MAX_HEADER_BYTES / header_length.max(1)).max(lanes.len()) as u64;
    let period = period(streams(), &weights).saturating_mul(lanes.len() as u64);
    let count = if period <= limit { period } else { sample(streams(), &weights, lanes.len() as u64, limit) }
        as usize;

    let mut table = FrameTable {
        rows: Vec::with_capacity(count),
        headers: vec![fill; count * header_length],
        header_length,
        fill,
        period,
        times: repetition.map_or_else(Vec::new, |repetition| repetition.of_rows(count, lanes.len())),
        apart: Apart::default(),
    };
    let order = match repetition {
        Some(repetition) => repetition.turns.clone(),
        None => interleave(&weights, count / lanes.len()),
    };
    let mut sent = vec![0; weights.len()];
    let mut slots = table.headers.chunks_exact_mut(header_length.max(1));
    for &stream in order.iter().cycle().take(count / lanes.len()) {
        let index = usize::from(stream);
        for (direction, (streams, endpoint)) in (0..).zip(lanes.iter().zip(&endpoints.0)) {
            if let (Some(template), Some(slot)) = (streams.get(index), slots.next()) {
                let row = frame::emit(template, sent[index], endpoint, fill, slot);
                table.rows.push(Row { stream, direction, ..row });
            }
        }
        sent[index] += 1;
    }
    table
}

/// The weights of `streams`, divided by what they have in common.
fn reduced_weights(streams: &[Stream]) -> Vec<u64> {
    let common = streams.iter().fold(0, |common, stream| gcd(common, stream.weight)).max(1);
    streams.iter().map(|stream| stream.weight / common).collect()
}

/// Frames of one direction after which everything repeats. Each cycle of all weights sends
/// `weight` frames of a stream, so it repeats after `period / gcd(period, weight)` cycles.
fn period<'a>(streams: impl Iterator<Item = (&'a Stream, &'a u64)>, weights: &[u64]) -> u64 {
    let cycles = streams
        .map(|(stream, weight)| match stream.period() {
            u64::MAX => u64::MAX,
            period => period / gcd(period, *weight).max(1),
        })
        .fold(1, saturating_lcm);
    sum(weights).saturating_mul(cycles)
}

/// The rows of a sample of at most `limit` rows: enough to draw every different frame several
/// times where that is possible, and whole cycles of the weights where one fits.
fn sample<'a>(
    streams: impl Iterator<Item = (&'a Stream, &'a u64)>,
    weights: &[u64],
    lanes: u64,
    limit: u64,
) -> u64 {
    let cycle = sum(weights).saturating_mul(lanes);
    let enough = streams
        .map(|(stream, weight)| {
            DRAWS.saturating_mul(stream.variety()).saturating_mul(cycle.div_ceil((*weight).max(1)))
        })
        .max()
        .unwrap_or(0);
    let rows = enough.clamp(MIN_SAMPLE.min(limit), limit);
    let unit = if cycle <= limit { cycle } else { lanes };
    rows.max(unit) / unit * unit
}

fn sum(weights: &[u64]) -> u64 {
    weights.iter().fold(0, |sum: u64, weight| sum.saturating_add(*weight))
}

/// The order of streams in one cycle of `weights`, or in its first `limit` frames: smooth
/// weighted round robin, which spreads each stream's frames evenly instead of sending bursts.
pub(crate) fn interleave(weights: &[u64], limit: usize) -> Vec<u8> {
    let total = i128::from(sum(weights));
    let mut credit = vec![0_i128; weights.len()];
    let frames = usize::try_from(total).unwrap_or(usize::MAX).min(limit);
    let mut order = Vec::with_capacity(frames);
    for _ in 0..frames {
        let mut next = 0;
        for (index, weight) in weights.iter().enumerate() {
            credit[index] += i128::from(*weight);
            if credit[index] > credit[next] {
                next = index;
            }
        }
        credit[next] -= total;
        order.push(next as u8);
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Profile;
    use crate::stream::tests::udp;
    use proptest::prelude::*;

    #[test]
    fn streams_take_turns_instead_of_sending_bursts() {
        assert_eq!(interleave(&[1], 10), [0]);
        assert_eq!(interleave(&[5, 1, 1], 10), [0, 0, 1, 0, 2, 0, 0]);
        assert_eq!(interleave(&[7, 4, 1], 12), [0, 1, 0, 0, 1, 0, 2, 0, 1, 0, 1, 0]);
        assert_eq!(interleave(&[7, 4, 1], 3), [0, 1, 0]);
        assert_eq!(interleave(&[u64::MAX, u64::MAX], 4), [0, 1, 0, 1]);
    }

    #[test]
    fn common_factors_of_weights_do_not_lengthen_the_table() {
        let streams = [28, 16, 4].map(|weight| Stream { weight, ..udp(64) });
        assert_eq!(reduced_weights(&streams), [7, 4, 1]);
    }

    #[test]
    fn weights_too_fine_for_a_table_are_kept_nearly() {
        let weights = [1_000_003, 2_000_003];
        let streams = weights.map(|weight| Stream { weight, ..udp(64) }).to_vec();
        let profile = Profile::new("fine", [streams.clone(), streams]).unwrap();
        let endpoint =
            crate::Endpoint { source: wire::MacAddress::default(), destination: wire::MacAddress::default() };
        let table = profile.table_up_to(&Endpoints([endpoint; 2]), Directions::Both, 3001);
        assert_eq!((table.rows.len(), table.period), (3000, 2 * 3_000_006));
        let first = table.rows.iter().filter(|row| row.stream == 0).count();
        assert!((999..=1001).contains(&first), "{first}");
    }

    proptest! {
        #[test]
        fn every_stream_gets_its_share_all_along(weights in prop::collection::vec(1u64..100, 1..20)) {
            let total = sum(&weights);
            let order = interleave(&weights, usize::MAX);
            prop_assert_eq!(order.len() as u64, total);
            let mut sent = vec![0_u64; weights.len()];
            for (frames, stream) in (1..).zip(&order) {
                sent[usize::from(*stream)] += 1;
                for (sent, weight) in sent.iter().zip(&weights) {
                    let share = f64::from(frames) * *weight as f64 / total as f64;
                    // Greedy apportionment of n streams strays by less than 1 + ln n.
                    prop_assert!((share - *sent as f64).abs() < 1.0 + (weights.len() as f64).ln());
                }
            }
            prop_assert_eq!(sent, weights);
        }
    }
}
