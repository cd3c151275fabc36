// From records to points: a record, a direction and a view enter, arrays of numbers leave.

import type { DirectionSample, RunRecord, Sample } from "./data";
import { fromPps, type Unit } from "./units";

export interface View {
  unit: Unit;
  /** What the horizontal axis shows. */
  against: "time" | "offered";
}

/** What was measured in one direction; `x` rises strictly. */
export interface Points {
  x: number[];
  offered: number[];
  forwarded: number[];
  loss: number[];
  p50: (number | null)[];
  p99: (number | null)[];
  busy: (number | null)[];
}

/** The samples after the warm-up; of a ramp that goes on, without the trials of the search after it. */
export function measured(record: RunRecord): Sample[] {
  const isCurve = record.strategy.name === "ramp";
  return record.samples.filter(({ phase }) => phase !== "warm-up" && !(isCurve && phase === "trial"));
}

/** When the first of these began. Charts count time from here. */
export function rampStart(record: RunRecord): number {
  return measured(record)[0]?.at_s ?? 0;
}

export function points(record: RunRecord, direction: number, view: View): Points {
  const samples = measured(record);
  const groups = view.against === "time" ? samples.map((sample) => [sample]) : byLoad(samples, direction);
  const result: Points = { x: [], offered: [], forwarded: [], loss: [], p50: [], p99: [], busy: [] };
  for (const group of groups) {
    const of = group.map((sample) => sample.directions[direction]).filter((d) => d !== undefined);
    const first = group[0];
    if (first === undefined || of.length === 0) continue;
    const offered = mean(of.map((d) => d.offered_pps));
    const x =
      view.against === "time"
        ? first.at_s + first.duration_s / 2 - rampStart(record)
        : fromPps(offered, record, view.unit);
    if (x <= (result.x[result.x.length - 1] ?? -Infinity)) continue;
    result.x.push(x);
    result.offered.push(fromPps(offered, record, view.unit));
    result.forwarded.push(mean(of.map((d) => forwarded(d, record, view.unit))));
    const lost = mean(of.map((d) => d.offered_pps - d.forwarded_pps));
    result.loss.push(offered > 0 ? Math.max(0, lost / offered) : 0);
    result.p50.push(median(of.map((d) => d.latency?.p50_ns)));
    result.p99.push(median(of.map((d) => d.latency?.p99_ns)));
    result.busy.push(median(group.map((sample) => sample.dut_core_busy)));
  }
  return result;
}

function forwarded(sample: DirectionSample, record: RunRecord, unit: Unit): number {
  switch (unit) {
    case "pps":
      return sample.forwarded_pps;
    case "l1":
      return sample.l1_bps;
    case "l2":
      return sample.l2_bps;
    case "percent":
      return (sample.l1_bps / record.line_rate_bps) * 100;
  }
}

/** Samples of the same intended load (a hold has many) as one, in order of what was offered. */
function byLoad(samples: Sample[], direction: number): Sample[][] {
  const groups = new Map<number, Sample[]>();
  for (const sample of samples) {
    const load = Math.round(sample.directions[direction]?.intended_pps ?? 0);
    const group = groups.get(load);
    if (group) group.push(sample);
    else groups.set(load, [sample]);
  }
  const offered = (group: Sample[]) => mean(group.map((sample) => sample.directions[direction]?.offered_pps ?? 0));
  return [...groups.values()].sort((a, b) => offered(a) - offered(b));
}

/** Where the highest load at or below the loss threshold lies on the horizontal axis, if there is one. */
export function limitAt(record: RunRecord, direction: number, view: View): number | null {
  const limit = record.directions[direction]?.max_rate_pps ?? 0;
  if (limit <= 0) return null;
  if (view.against === "offered") return fromPps(limit, record, view.unit);
  let best: { x: number; offered: number } | null = null;
  for (const sample of measured(record)) {
    const d = sample.directions[direction];
    if (!d || d.loss_ratio > record.strategy.loss_threshold) continue;
    // The limit counts what was offered up to what was intended: the frames of a sample are off by one at its ends.
    const offered = Math.min(d.offered_pps, d.intended_pps);
    if (offered > limit * 1.000001) continue;
    // A hold at the limit lasts; its beginning is the first sample within a thousandth.
    if (best === null || offered > best.offered * 1.001) {
      best = { x: sample.at_s + sample.duration_s / 2 - rampStart(record), offered };
    }
  }
  return best?.x ?? null;
}

/** The index in ascending `xs` whose value is nearest to `x`, or null if all are far from it. */
export function nearest(xs: number[], x: number): number | null {
  const last = xs.length - 1;
  const [first, end] = [xs[0], xs[last]];
  if (first === undefined || end === undefined) return null;
  const spacing = last > 0 ? (end - first) / last : 1;
  if (x < first - spacing || x > end + spacing) return null;
  let [low, high] = [0, last];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if ((xs[middle] ?? 0) <= x) low = middle;
    else high = middle;
  }
  return x - (xs[low] ?? 0) <= (xs[high] ?? 0) - x ? low : high;
}

/**
 * A histogram's percentiles: `x` counts nines, so that 1 is the 90th, 2 the 99th and 3 the 99.9th;
 * `y` is the value that this share of all frames stayed within.
 */
export function percentiles(buckets: [number, number][]): { x: number[]; y: number[] } {
  const total = buckets.reduce((sum, [, count]) => sum + count, 0);
  const [x, y]: [number[], number[]] = [[], []];
  let below = 0;
  for (const [value, count] of buckets) {
    if (count <= 0) continue;
    // From the share below this bucket to the share within it, the value is this one.
    for (const share of [below / total, (below + count) / total]) {
      const nines = share < 1 ? -Math.log10(1 - share) : Math.log10(total);
      if (nines > (x[x.length - 1] ?? -1)) {
        x.push(nines);
        y.push(value);
      }
    }
    below += count;
  }
  return { x, y };
}

function mean(values: number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

function median(values: (number | null | undefined)[]): number | null {
  const known = values.filter((value) => value !== null && value !== undefined).sort((a, b) => a - b);
  return known[known.length >> 1] ?? null;
}
