// The data that the page was written with: records as Linerate stores them, and their places in
// the comparison. The types repeat those fields of `linerate/run/1` that the charts read.

import { gunzipSync, strFromU8, strToU8 } from "fflate";
import type { Bench } from "./bench-data";

export interface Page {
  /** Columns of the comparison; a device's place is also its colour. */
  devices: string[];
  /** The tests, in the order of the comparison. */
  tests: string[];
  runs: Run[];
  benches: Bench[];
}

export interface Run {
  /** The id of its element in the page. */
  anchor: string;
  device: number;
  test: number;
  /** Whether its samples are curves beside those of others; other runs have a panel. */
  curves: boolean;
  /** Whether another run stands for the repeats of its device in its test. */
  repeat: boolean;
  /** Unpacked from the page when it is first asked for. */
  readonly record: RunRecord;
}

export interface RunRecord {
  id: string;
  name: string;
  line_rate_bps: number;
  elapsed_s: number;
  strategy: { name: string; parameters: Record<string, string>; loss_threshold: number };
  profile: { mean_frame_size: number };
  tester?: { self_test?: SelfTest };
  samples: Sample[];
  directions: Direction[];
  /** What a search found, by goal: all directions added up. */
  results?: Record<string, GoalResult>;
  /** The trials of a search, in order of time. */
  trials?: Trial[];
  latency?: LatencyTest;
  rfc2544?: Rfc2544;
  soak?: Soak;
  stall_search?: StallSearch;
  generator?: { waterfall?: { name: string; pps: number }[]; built?: BuiltFrames[] };
  gauges?: { readings?: GaugeReading[] };
}

/** The machine during an interval, where it tells. */
export interface GaugeReading {
  at_s: number;
  duration_s: number;
  watts?: number;
  mhz?: number;
  celsius?: number;
}

/** What the tester reaches without a device. */
export interface SelfTest {
  /** In each direction. */
  ceiling_pps: number;
  base_latency_mean_ns: number;
  /** Older records have none. */
  base_latency_p50_ns?: number;
}

export interface LatencyTest {
  loads: {
    name: string;
    load_pps: number;
    disturbed?: string;
    directions: LatencyDistribution[];
  }[];
}

export interface LatencyDistribution {
  name: string;
  forwarded: number;
  max_ns: number;
  percentiles: Partial<Record<"p50_ns" | "p90_ns" | "p99_ns" | "p99_9_ns" | "p99_99_ns", number>>;
  histogram_ns: [number, number][];
}

export interface Soak {
  load_pps: number;
  directions: {
    name: string;
    stalls: { from_s: number; until_s?: number; after_frames: number; disturbed: boolean }[];
    losses: { from_s: number; until_s: number; on_period: boolean; counters: { during: { offered: number; forwarded: number } } }[];
  }[];
  hiccups: { from_s: number; until_s: number; cause?: string }[];
}

/** Frames that some cores built and did not send. */
export interface BuiltFrames {
  onto: string;
  frame_size: number;
  cores: number[];
  pps: number;
}

export type StallVerdict = "forwards" | "stalls" | "unknown";

export interface StallSearch {
  /** Loads of each direction. */
  lowest_pps: number;
  highest_pps: number;
  rates: StallRate[];
  ranges: StallRange[];
}

export interface StallRate {
  pps: number;
  verdict: StallVerdict;
  trials: number;
  stalled: number;
  untold?: { trials: number; reason: string };
  stalls?: { after_s: number; after_frames: number }[];
}

export interface StallRange {
  verdict: StallVerdict;
  from_pps: number;
  to_pps: number;
}

export interface Rfc2544 {
  theoretical_pps: number;
  throughput?: { pps: number; upper_pps: number | null; irregular?: string; limited_by: string };
  loss?: { load_percent: number; offered_pps: number; loss_ratio: number; tester_limited: boolean; disturbed?: string }[];
}

export interface GoalResult {
  lower_pps: number;
  upper_pps: number | null;
}

export interface Trial {
  at_s: number;
  duration_s: number;
  /** Of each direction. */
  load_pps: number;
  loss_ratio: number;
  verdicts: Record<string, Verdict>;
  /** The share of its frames whose loss the machine may account for, an upper estimate. */
  noise?: number;
  /** What the machine did meanwhile, if it was more than usual. */
  disturbed?: string;
  directions: TrialDirection[];
}

export interface TrialDirection {
  offered: number;
  /** The frames that left while nothing was interrupted, if that is known. */
  undisturbed?: { offered: number; forwarded: number };
}

export type Verdict = "low-loss" | "high-loss" | "tester-fell-short" | "disturbed";

export interface Sample {
  at_s: number;
  duration_s: number;
  phase: "warm-up" | "ramp" | "hold" | "trial";
  dut_core_busy: number | null;
  disturbed?: string;
  directions: DirectionSample[];
}

export interface DirectionSample {
  intended_pps: number;
  offered_pps: number;
  forwarded_pps: number;
  loss_ratio: number;
  l1_bps: number;
  l2_bps: number;
  latency?: { p50_ns: number; p99_ns: number };
}

export interface Direction {
  name: string;
  max_rate_pps: number;
  /** What the samples prove; older records have none. */
  evidence?: Evidence;
  stalled?: { at_s: number; after_frames: number };
  /** (lowest value of the bucket, count), in order of value. */
  latency_ns: [number, number][];
}

export interface Evidence {
  /** Where the highest load at or below the loss threshold lies, if the load rose. */
  limit?: RateInterval;
  /** Where the ramp alone placed it, if a search narrowed that. */
  ramp?: RateInterval;
  /** The spread of what was forwarded, if it did not. */
  forwarded?: RateInterval;
  /** The lowest load at which any frame was lost. */
  loss_began?: { pps: number; loss_ratio: number };
}

export interface RateInterval {
  lower_pps: number;
  upper_pps: number | null;
}

/** The data in the page's `<script id="index">`, and records, packed, in scripts of their own. */
export function embedded(): Page {
  const index = JSON.parse(text("index")) as Omit<Page, "runs"> & { runs: Omit<Run, "record">[] };
  return { ...index, runs: index.runs.map(withRecord) };
}

function withRecord(run: Omit<Run, "record">): Run {
  let record: RunRecord | null = null;
  return {
    ...run,
    get record(): RunRecord {
      record ??= JSON.parse(unpacked(text(`${run.anchor}-record`))) as RunRecord;
      return record;
    },
  };
}

/** What stands in `text`, packed by gzip and in base64. At once, so that a page can draw itself whole to be printed. */
function unpacked(text: string): string {
  return strFromU8(gunzipSync(strToU8(atob(text), true)));
}

function text(id: string): string {
  return document.getElementById(id)?.textContent ?? "";
}
