// The arithmetic of searches: a record enters; its goals, its interval over time and the loads
// worth showing leave.

import type { RunRecord, Trial } from "./data";

export interface Goal {
  name: string;
  /** The share of frames that it forgives, where the record says so. */
  loss: number | null;
  /** The share of trial time that may lose more. */
  exceed: number;
}

/** The exceed ratio of goals that the record says nothing of: a majority decides. */
const MAJORITY = 0.5;

/** The goals that the trials were judged by. */
export function goals(record: RunRecord): Goal[] {
  return Object.keys(record.trials?.[0]?.verdicts ?? {}).map((name) => {
    const text = record.strategy.parameters[`goal ${name}`] ?? "";
    const share = (key: string) => {
      const percent = new RegExp(`(?:^|,)${key}=([\\d.e-]+)%`).exec(text)?.[1];
      return percent === undefined ? null : Number(percent) / 100;
    };
    return { name, loss: share("loss"), exceed: share("exceed") ?? MAJORITY };
  });
}

/** The bounds that the trials until `at` suggest. */
export interface Step {
  at: number;
  lower: number | null;
  upper: number | null;
}

/**
 * How the interval of a goal closed in: after each trial the lowest load that failed by the
 * trials so far and the highest below it that passed. A load fails when more of its trial time
 * was high-loss than the goal's exceed ratio. (The search itself asks for more: a least sum of
 * trial time. Its final interval is in the record.)
 */
export function closing(trials: Trial[], goal: Goal): Step[] {
  const loads = new Map<number, { high: number; all: number }>();
  return trials.map((trial) => {
    const verdict = trial.verdicts[goal.name];
    if (verdict === "low-loss" || verdict === "high-loss") {
      const load = loads.get(trial.load_pps) ?? { high: 0, all: 0 };
      load.all += trial.duration_s;
      if (verdict === "high-loss") load.high += trial.duration_s;
      loads.set(trial.load_pps, load);
    }
    const judged = [...loads].map(([pps, { high, all }]) => ({ pps, failed: high > all * goal.exceed }));
    const upper = Math.min(...judged.filter((load) => load.failed).map((load) => load.pps));
    const lower = Math.max(...judged.filter((load) => !load.failed && load.pps < upper).map((load) => load.pps));
    const known = (pps: number) => (Number.isFinite(pps) ? pps : null);
    return { at: trial.at_s + trial.duration_s, lower: known(lower), upper: known(upper) };
  });
}

/** A final interval, in loads of each direction. */
export interface Interval {
  goal: string;
  lower: number;
  upper: number | null;
}

export function intervals(record: RunRecord): Interval[] {
  const directions = Math.max(1, record.directions.length);
  return Object.entries(record.results ?? {}).map(([goal, { lower_pps, upper_pps }]) => ({
    goal,
    lower: lower_pps / directions,
    upper: upper_pps == null ? null : upper_pps / directions,
  }));
}

/** From how far around the intervals trials are shown, in widths of all intervals together. */
const AROUND = 4;

/** The loads to show: the final intervals and the trials near them; all trials without intervals. */
export function focus(record: RunRecord): [low: number, high: number] {
  const loads = (record.trials ?? []).map((trial) => trial.load_pps);
  const bounds = intervals(record).flatMap(({ lower, upper }) => [lower, upper ?? lower]).filter((pps) => pps > 0);
  if (bounds.length === 0) return padded(Math.min(...loads), Math.max(...loads));
  const [low, high] = [Math.min(...bounds), Math.max(...bounds)];
  const around = Math.max(high / low - 1, 0.005) * AROUND;
  const near = loads.filter((pps) => pps >= low / (1 + around) && pps <= high * (1 + around));
  return padded(Math.min(low, ...near), Math.max(high, ...near));
}

function padded(low: number, high: number): [number, number] {
  if (!(high > 0)) return [0, 1];
  const room = high > low ? (high - low) * 0.08 : high * 0.05;
  return [Math.max(0, low - room), high + room];
}
