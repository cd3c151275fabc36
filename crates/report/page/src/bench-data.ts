// The figures of a bench, as the page was written with them: `html/benches/chart.rs` has the same
// types. All rates are frames a second of both directions together.

export interface Bench {
  /** What the figures are, in a word, like `max_forwarded`. */
  metric: string;
  unit: "pps" | "ns" | "share";
  /** What the numbers of devices or tests count. */
  axis: { name: string; linear: boolean } | null;
  /** The kind is what a device is without its settings, like `linux-router`. */
  duts: { name: string; kind: string; device: number; at: number | null; baseline: boolean }[];
  tests: BenchTest[];
  /** Devices that are graphs of nodes and were measured at constant loads. */
  nodes: { device: string; loads: NodeLoad[] }[];
}

/** What a packet costs the nodes of a device at one load: clocks. */
export interface NodeLoad {
  name: string;
  /** Its place among the page's devices. */
  device: number;
  pps: number;
  /** From ethernet-input to output, in the median run; and the least and the most of all runs. */
  forwarding: number;
  low: number;
  high: number;
  nodes: { name: string; clocks: number; per_call: number }[];
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
