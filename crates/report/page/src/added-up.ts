// Both directions of a run as one: a record enters, a record of their sums leaves. Two curves a device are
// easier to read than four.

import type { Direction, DirectionSample, RateInterval, RunRecord } from "./data";

/** `record` with its directions added up, as one that is called `both`; one direction stays as it is. */
export function addedUp(record: RunRecord): RunRecord {
  const count = record.directions.length;
  if (count < 2) return record;
  return {
    ...record,
    // A share of line rate is one of all lines.
    line_rate_bps: record.line_rate_bps * count,
    directions: [both(record)],
    samples: record.samples.map((sample) => ({ ...sample, directions: [sampleOf(sample.directions)] })),
  };
}

function both(record: RunRecord): Direction {
  const { directions } = record;
  const stalled = directions.find((direction) => direction.stalled)?.stalled;
  const limit = intervalOf(directions.map((direction) => direction.evidence?.limit));
  const forwarded = intervalOf(directions.map((direction) => direction.evidence?.forwarded));
  const began = lossBegan(record);
  return {
    name: "both",
    max_rate_pps: sum(directions.map((direction) => direction.max_rate_pps)),
    evidence: { ...(limit ? { limit } : {}), ...(forwarded ? { forwarded } : {}), ...(began ? { loss_began: began } : {}) },
    ...(stalled ? { stalled } : {}),
    latency_ns: merged(directions.map((direction) => direction.latency_ns)),
  };
}

/** Of several, if all are known; without an upper bound where one has none. */
function intervalOf(parts: (RateInterval | undefined)[]): RateInterval | null {
  const known = parts.filter((part) => part !== undefined);
  if (known.length < parts.length) return null;
  const upper = known.map((part) => part.upper_pps).filter((upper) => upper !== null && upper !== undefined);
  return { lower_pps: sum(known.map((part) => part.lower_pps)), upper_pps: upper.length < known.length ? null : sum(upper) };
}

/** The lowest load at which a frame was lost in any direction. */
function lossBegan(record: RunRecord): { pps: number; loss_ratio: number } | null {
  const measured = record.samples.filter((sample) => sample.phase !== "warm-up").map((sample) => sampleOf(sample.directions));
  const lossy = measured.filter((sample) => sample.loss_ratio > 0).sort((a, b) => a.offered_pps - b.offered_pps);
  return lossy[0] ? { pps: lossy[0].offered_pps, loss_ratio: lossy[0].loss_ratio } : null;
}

/** Rates are added; of latencies the slower direction's stand for both. */
function sampleOf(directions: DirectionSample[]): DirectionSample {
  const total = (field: "intended_pps" | "offered_pps" | "forwarded_pps" | "l1_bps" | "l2_bps") => sum(directions.map((one) => one[field]));
  const lost = sum(directions.map((one) => one.loss_ratio * one.offered_pps));
  const offered = total("offered_pps");
  const latencies = directions.flatMap((one) => one.latency ?? []);
  const slowest = (field: "p50_ns" | "p99_ns") => Math.max(...latencies.map((latency) => latency[field]));
  return {
    intended_pps: total("intended_pps"),
    offered_pps: offered,
    forwarded_pps: total("forwarded_pps"),
    loss_ratio: offered > 0 ? lost / offered : 0,
    l1_bps: total("l1_bps"),
    l2_bps: total("l2_bps"),
    ...(latencies.length > 0 ? { latency: { p50_ns: slowest("p50_ns"), p99_ns: slowest("p99_ns") } } : {}),
  };
}

/** Histograms of the same buckets as one. */
function merged(histograms: [number, number][][]): [number, number][] {
  const buckets = new Map<number, number>();
  for (const [value, count] of histograms.flat()) buckets.set(value, (buckets.get(value) ?? 0) + count);
  return [...buckets].sort(([a], [b]) => a - b);
}

function sum(values: number[]): number {
  return values.reduce((sum, value) => sum + value, 0);
}
