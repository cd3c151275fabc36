// Picture of a latency test: the percentiles at each load. The horizontal axis counts nines, so that
// the tail, which matters, has room.

import { percentiles } from "./curves";
import type { LatencyDistribution, LatencyTest, Run } from "./data";
import { dot, line, nameCurves, paintLimit, stroke } from "./paint";
import { nines, percentileText } from "./percentiles";
import type { Plan, Point } from "./picture";
import { deviceColour, type Theme } from "./theme";
import { durationText } from "./units";

const HEIGHT = 340;
/** Rarer than one frame in 100,000 is not shown. */
const MOST_NINES = 5;
/** The percentiles that points tell, by their nines. */
const TOLD = [
  ["p50_ns", -Math.log10(0.5), "50%"],
  ["p90_ns", 1, "90%"],
  ["p99_ns", 2, "99%"],
  ["p99_9_ns", 3, "99.9%"],
  ["p99_99_ns", 4, "99.99%"],
] as const;
/** Loads are told apart by colour and, since there may be more of them, by dashes. */
const DASHES = [[], [7, 3], [2, 3], [9, 3, 2, 3]];

interface Curve {
  load: LatencyTest["loads"][number];
  seen: LatencyDistribution;
  colour: string;
  dash: number[];
  x: number[];
  y: number[];
}

/** A picture for each direction. */
export function latencyPlans(run: Run, theme: Theme): Plan[] {
  const loads = run.record.latency?.loads ?? [];
  const directions = loads[0]?.directions ?? [];
  return directions.flatMap((direction, at) => {
    const curves = curvesOf(loads, at, theme);
    const base = run.record.tester?.self_test?.base_latency_mean_ns ?? null;
    return curves.length === 0 ? [] : [plan(direction.name, curves, directions.length > 1, base, theme)];
  });
}

function curvesOf(loads: LatencyTest["loads"], direction: number, theme: Theme): Curve[] {
  return loads.flatMap((load, at) => {
    const seen = load.directions[direction];
    if (!seen || seen.histogram_ns.length === 0) return [];
    const dash = DASHES[Math.floor(at / theme.devices.length) % DASHES.length] ?? [];
    return [{ load, seen, colour: deviceColour(theme, at), dash, ...percentiles(seen.histogram_ns) }];
  });
}

/** `base` is what a frame takes on average without a device, where that is known. */
function plan(direction: string, curves: Curve[], several: boolean, base: number | null, theme: Theme): Plan {
  const most = Math.min(MOST_NINES, Math.max(2, ...curves.map(({ x }) => x[x.length - 1] ?? 0)));
  // A value holds from the place before it to its own.
  const values = curves.flatMap(({ x, y }) => y.filter((_, at) => (x[at - 1] ?? 0) < most)).filter((ns) => ns > 0);
  const lowest = Math.min(...values, ...(base ? [base] : []));
  const range: [number, number] = [lowest / 1.3, Math.max(...values) * 1.3];
  return {
    kind: "latency",
    size: several ? "half" : "full",
    height: HEIGHT,
    caption: `Latency percentiles ${direction.replace("->", "→")} at each load (logarithmic)`,
    key: curves.map(({ colour, dash, load }) => ({ sign: dash.length > 0 ? "┅" : "━", colour, text: load.name })),
    x: { range: [0, most], tick: percentileText, splits: (min, max) => nines(min, max, several ? 500 : 1000) },
    y: { range, tick: durationText, logarithmic: true },
    margin: 90,
    points: curves.flatMap(pointsOf),
    paint: (ctx, plot) => {
      if (base) paintLimit(ctx, plot, base, `loopback, mean ${durationText(base)}`, theme);
      const labels = [...curves].reverse().map(({ x, y, load, colour, dash }) => {
        const across = (nine: number) => plot.valToPos(Math.min(nine, most), "x", true);
        const steps = y
          .map((ns, at) => ({ from: x[at - 1] ?? 0, until: x[at] ?? 0, down: plot.valToPos(ns, "y", true) }))
          .filter(({ from }) => from < most)
          .flatMap(({ from, until, down }): [number, number][] => [
            [across(from), down],
            [across(until), down],
          ]);
        stroke(ctx, colour, 1.8, dash);
        line(ctx, ...steps);
        return { text: load.name, colour, y: steps[steps.length - 1]?.[1] ?? 0 };
      });
      nameCurves(ctx, plot, labels);
      for (const curve of curves) {
        for (const { x, y } of pointsOf(curve)) {
          dot(ctx, plot.valToPos(x, "x", true), plot.valToPos(y, "y", true), curve.colour, !curve.load.disturbed);
        }
      }
    },
  };
}

function pointsOf({ load, seen }: Curve): Point[] {
  return TOLD.flatMap(([key, x, text]): Point[] => {
    const ns = seen.percentiles[key];
    if (ns === undefined || ns <= 0) return [];
    const lines = [`${text} within ${durationText(ns)}`, `at ${load.name}, longest ${durationText(seen.max_ns)}`];
    return [{ x, y: ns, lines: load.disturbed ? [...lines, `disturbed: ${load.disturbed}`] : lines }];
  });
}
