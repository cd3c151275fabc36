// The data that the page was written with: records as Linerate stores them, and their places in
// the comparison. The types repeat those fields of `linerate/run/1` that the charts read.

export interface Page {
  /** Columns of the comparison; a device's place is also its colour. */
  devices: string[];
  /** The tests, in the order of the comparison. */
  tests: string[];
  runs: Run[];
}

export interface Run {
  /** The id of its element in the page. */
  anchor: string;
  device: number;
  test: number;
  record: RunRecord;
}

export interface RunRecord {
  id: string;
  name: string;
  line_rate_bps: number;
  elapsed_s: number;
  strategy: { name: string; parameters: Record<string, string>; loss_threshold: number };
  profile: { mean_frame_size: number };
  samples: Sample[];
  directions: Direction[];
  /** What a search found, by goal: all directions added up. */
  results?: Record<string, GoalResult>;
  /** The trials of a search, in order of time. */
  trials?: Trial[];
  latency?: LatencyTest;
  rfc2544?: Rfc2544;
  soak?: Soak;
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
  disturbed?: string;
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
  max_lossless_pps: number;
  stalled?: { at_s: number; after_frames: number };
  /** (lowest value of the bucket, count), in order of value. */
  latency_ns: [number, number][];
}

/** The strategies whose runs are drawn each by itself. */
const PANELS = new Set(["search", "latency", "rfc2544", "soak"]);

/** Whether a run has a panel of its own, and no curves beside those of others. */
export function hasPanel(run: Run): boolean {
  return PANELS.has(run.record.strategy.name);
}

/** The data in the page's `<script id="data">`. */
export function embedded(): Page {
  const element = document.getElementById("data");
  return JSON.parse(element?.textContent ?? "") as Page;
}
