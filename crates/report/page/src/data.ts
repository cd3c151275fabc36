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
  strategy: { loss_threshold: number };
  profile: { mean_frame_size: number };
  samples: Sample[];
  directions: Direction[];
}

export interface Sample {
  at_s: number;
  duration_s: number;
  phase: "warm-up" | "ramp" | "hold";
  dut_core_busy: number | null;
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

/** The data in the page's `<script id="data">`. */
export function embedded(): Page {
  const element = document.getElementById("data");
  return JSON.parse(element?.textContent ?? "") as Page;
}
