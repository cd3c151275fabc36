// The picture of a stall search: a strip of the loads, coloured by what the device does, and how many trials
// stalled at each load.

import uPlot from "uplot";
import type { Run, StallRange, StallRate, StallVerdict } from "./data";
import { dot, line, stroke } from "./paint";
import type { Plan, Point } from "./picture";
import { faded, type Theme } from "./theme";
import { fromPps, preciseText, rateTick, type Unit, unitName } from "./units";

const TEXTS: Record<StallVerdict, string> = { forwards: "forwards", stalls: "stalls", unknown: "unknown" };

export function stallPlans(run: Run, unit: Unit, theme: Theme): Plan[] {
  const search = run.record.stall_search;
  if (!search || search.rates.length === 0) return [];
  const rate = (pps: number) => fromPps(pps, run.record, unit);
  const each = run.record.directions.length > 1 ? " in each direction" : "";
  // One load alone is no range.
  const room = search.highest_pps > search.lowest_pps ? 1 : 1.1;
  return [
    {
      kind: "stalls",
      size: "full",
      height: 220,
      caption: `Loads tried, ${unitName(unit)}${each} (logarithmic), and the share of trials that stalled; hollow: unknown`,
      key: (Object.keys(TEXTS) as StallVerdict[])
        .filter((verdict) => search.ranges.some((range) => range.verdict === verdict))
        .map((verdict) => ({ sign: "▮", colour: colourOf(verdict, theme), text: TEXTS[verdict] })),
      x: {
        range: [rate(search.lowest_pps) / room, rate(search.highest_pps) * room],
        tick: (value) => rateTick(value, unit),
        logarithmic: true,
      },
      y: { range: [0, 1.08], tick: (value) => (value > 1 ? "" : `${Math.round(value * 100)}%`), splits: () => [0, 0.5, 1] },
      margin: 24,
      points: search.rates.map((tried): Point => ({ x: rate(tried.pps), y: share(tried), lines: linesOf(tried, rate, unit) })),
      paint: (ctx, plot) => {
        search.ranges.forEach((range) => paintRange(ctx, plot, range, rate, theme));
        for (const tried of search.rates) {
          const [x, y] = [plot.valToPos(rate(tried.pps), "x", true), plot.valToPos(share(tried), "y", true)];
          dot(ctx, x, y, colourOf(tried.verdict, theme), tried.trials > 0);
        }
      },
    },
  ];
}

function share(tried: StallRate): number {
  return tried.trials === 0 ? 0 : tried.stalled / tried.trials;
}

function colourOf(verdict: StallVerdict, theme: Theme): string {
  return { forwards: theme.passed, stalls: theme.failed, unknown: theme.unproved }[verdict];
}

function linesOf(tried: StallRate, rate: (pps: number) => number, unit: Unit): string[] {
  const first = tried.stalls?.[0];
  return [
    `${preciseText(rate(tried.pps), unit)}: ${TEXTS[tried.verdict]}`,
    `${tried.stalled} of ${tried.trials} trials stalled`,
    ...(first ? [`first after ${first.after_s.toFixed(2)} s and ${first.after_frames.toLocaleString("en")} frames`] : []),
    ...(tried.untold ? [`${tried.untold.trials} trials tell nothing: ${tried.untold.reason}`] : []),
  ];
}

/** A band from the range's first load to its last; the edges, where they are not known, stay white. */
function paintRange(ctx: CanvasRenderingContext2D, plot: uPlot, range: StallRange, rate: (pps: number) => number, theme: Theme): void {
  const { top, height } = plot.bbox;
  const [left, right] = [range.from_pps, range.to_pps].map((pps) => plot.valToPos(rate(pps), "x", true)) as [number, number];
  const colour = colourOf(range.verdict, theme);
  ctx.fillStyle = faded(colour, 0.22);
  ctx.fillRect(left, top, Math.max(right - left, 2 * uPlot.pxRatio), height);
  stroke(ctx, colour, 1);
  for (const edge of [left, right]) line(ctx, [edge, top], [edge, top + height]);
}
