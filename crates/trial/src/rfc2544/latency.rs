//! Latency at the throughput, RFC 2544 section 26.2: the mean of several long streams.

use std::time::Duration;

use engine::Load;
use results::record::{LatencyAtThroughput, LatencyStream};

use super::{Repeat, Rfc2544, Trials, mean};
use crate::session::Stop;

impl Rfc2544 {
    pub(super) fn latency_planned(&self) -> Duration {
        (self.timing.stream.saturating_add(self.timing.pause())).saturating_mul(self.timing.streams)
    }

    /// What is measured stands in `found` even when the run ends before the last stream.
    pub(super) fn latency(
        &self,
        pps: f64,
        trials: &mut Trials,
        found: &mut Option<LatencyAtThroughput>,
    ) -> Result<(), Stop> {
        let stream_s = self.timing.stream.as_secs_f64();
        for _ in 0..self.timing.streams {
            let seen = trials.trial(Load::Rate(pps), self.timing.stream, Repeat::IfDisturbed)?;
            let stream = LatencyStream {
                directions: seen.sample.directions.iter().map(|direction| direction.latency).collect(),
                lost: seen.lost(),
                disturbed: seen.disturbed(),
            };
            let found = found.get_or_insert_with(|| LatencyAtThroughput {
                load_pps: pps,
                stream_s,
                mean_ns: Vec::new(),
                streams: Vec::new(),
            });
            found.streams.push(stream);
            found.mean_ns = means(&found.streams);
        }
        Ok(())
    }
}

/// The mean of the streams' means, for each direction.
fn means(streams: &[LatencyStream]) -> Vec<f64> {
    let directions = streams.first().map_or(0, |stream| stream.directions.len());
    let of = |direction: usize| {
        let latencies =
            streams.iter().filter_map(|stream| stream.directions.get(direction).copied().flatten());
        mean(&latencies.map(|latency| latency.mean_ns).collect::<Vec<_>>())
    };
    (0..directions).map(of).collect()
}
