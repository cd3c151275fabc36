// The figures of a bench, as the page was written with them: `html/benches/chart.rs` has the same
// types. All rates are frames a second of both directions together.

export interface Bench {
  /** What the figures are, in a word, like `max_forwarded`. */
  metric: string;
  unit: "pps" | "ns" | "share";
  /** What the numbers of devices or tests count. */
  axis: { name: string; linear: boolean } | null;
  duts: { name: string; device: number; at: number | null; baseline: boolean }[];
  tests: BenchTest[];
}

export interface BenchTest {
  profile: string;
  direction: "one" | "both";
  at: number | null;
  /** Of the devices, in their order. */
  cells: (Cell | null)[];
}

export interface Cell {
  median: number;
  low: number;
  high: number;
  /** Whether from low to high is an interval of confidence; else it is all there is. */
  interval: boolean;
  runs: { repeat: number; value: number; doubts: string[]; anchor: string }[];
  mean_frame_size: number;
  line_rate_bps: number;
}
