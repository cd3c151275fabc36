//! The board enters; its metrics in Prometheus's text format leave: names end in their base unit, sums in `_total`.

use results::record::DirectionSample;
use web::metrics::Text;

use crate::Shown;

/// What the latency is told at.
type Read = fn(&results::record::Latency) -> u64;
const QUANTILES: [(&str, Read); 2] = [("0.5", |latency| latency.p50_ns), ("0.99", |latency| latency.p99_ns)];

pub(crate) fn text(shown: &Shown) -> String {
    let mut text = Text::default();
    text.head("linerate_run_info", "gauge", "The run, by its labels; always 1.");
    let about = &shown.about;
    let labels =
        [("name", about.name.as_str()), ("strategy", about.strategy.as_str()), ("dut", about.dut.as_str())];
    text.line("linerate_run_info", &labels, 1);
    text.head("linerate_running", "gauge", "Whether a run goes on.");
    text.line("linerate_running", &[], u8::from(shown.running));
    text.head("linerate_samples_total", "counter", "Samples of all runs since the start.");
    text.line("linerate_samples_total", &[], shown.next);
    text.head("linerate_disturbed_samples_total", "counter", "Samples that the machine disturbed.");
    text.line("linerate_disturbed_samples_total", &[], shown.disturbed);
    sums(shown, &mut text);
    let last = shown.samples.back();
    let directions: &[DirectionSample] = last.map_or(&[], |last| last.directions.as_slice());
    rates(directions, &mut text);
    latency(shown, &mut text);
    if let Some(busy) = last.and_then(|last| last.dut_core_busy) {
        text.head(
            "linerate_dut_core_busy_ratio",
            "gauge",
            "How busy the device's core was in the last sample.",
        );
        text.line("linerate_dut_core_busy_ratio", &[], busy);
    }
    if !shown.nodes.is_empty() {
        let name = "linerate_node_clocks_per_packet";
        text.head(name, "gauge", "Clocks of the processor that a node of the device spent on a packet.");
        for ((thread, node), clocks) in &shown.nodes {
            text.line(name, &[("thread", thread.as_str()), ("node", node.as_str())], clocks);
        }
    }
    text.into()
}

fn sums(shown: &Shown, text: &mut Text) {
    type Sum = fn(&crate::Sums) -> u64;
    let all: [(&str, &str, Sum); 4] = [
        ("linerate_offered_frames_total", "Frames that left the tester.", |sums| sums.offered),
        ("linerate_forwarded_frames_total", "Frames of these that came back.", |sums| sums.forwarded),
        (
            "linerate_lost_frames_total",
            "Frames that left and did not come back before their sample was shown.",
            |sums| sums.offered.saturating_sub(sums.forwarded),
        ),
        ("linerate_unsent_frames_total", "Frames that were due and did not leave.", |sums| sums.unsent),
    ];
    for (name, help, value) in all {
        text.head(name, "counter", help);
        for (direction, sums) in shown.sums.iter().enumerate() {
            text.line(name, &[("direction", way(direction))], value(sums));
        }
    }
}

fn rates(directions: &[DirectionSample], text: &mut Text) {
    type Rate = fn(&DirectionSample) -> f64;
    let all: [(&str, &str, Rate); 5] = [
        ("linerate_intended_frames_per_second", "The load asked for in the last sample.", |it| {
            it.intended_pps
        }),
        ("linerate_offered_frames_per_second", "The load that left in the last sample.", |it| it.offered_pps),
        ("linerate_forwarded_frames_per_second", "What came back of the last sample.", |it| it.forwarded_pps),
        ("linerate_forwarded_l1_bits_per_second", "The same with 20 bytes of overhead a frame.", |it| {
            it.l1_bps
        }),
        ("linerate_loss_ratio", "The share of the last sample's frames that did not come back.", |it| {
            it.loss_ratio
        }),
    ];
    for (name, help, value) in all {
        text.head(name, "gauge", help);
        for (direction, sample) in directions.iter().enumerate() {
            text.line(name, &[("direction", way(direction))], value(sample));
        }
    }
}

fn latency(shown: &Shown, text: &mut Text) {
    let name = "linerate_latency_seconds";
    text.head(name, "summary", "From departure to return: quantiles of the last sample, sums of all.");
    for (direction, sums) in shown.sums.iter().enumerate() {
        let of = ("direction", way(direction));
        let last = shown.samples.back().and_then(|last| last.directions.get(direction)?.latency);
        for (quantile, value) in QUANTILES {
            if let Some(latency) = &last {
                text.line(name, &[of, ("quantile", quantile)], value(latency) as f64 / 1e9);
            }
        }
        text.line("linerate_latency_seconds_sum", &[of], sums.latency_s);
        text.line("linerate_latency_seconds_count", &[of], sums.timed);
    }
}

fn way(direction: usize) -> &'static str {
    ["0-1", "1-0"].get(direction).copied().unwrap_or("other")
}
