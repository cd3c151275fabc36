// The figures of a cell of a bench in the units that the page shows.

import type { Bench, BenchTest, Cell } from "./bench-data";
import type { Settings } from "./settings";
import { durationText, fromPps, preciseText, rateTick, shareText, unitName } from "./units";

/** How the figures of one bench are placed on an axis, and written. */
export interface Figures {
  place: (value: number, cell: Cell) => number;
  text: (place: number) => string;
  tick: (place: number) => string;
  /** What the axis shows. */
  name: string;
}

/** What shares are of, where it is not what was offered. */
const SHARED: Record<string, string> = { stalls: "the loads, on a logarithmic scale" };

export function figuresOf(bench: Bench, settings: Settings): Figures {
  const name = bench.metric.replace(/_/g, " ");
  switch (bench.unit) {
    case "ns":
      return { place: (value) => value, text: durationText, tick: durationText, name };
    case "share":
      return { place: (value) => value, text: shareText, tick: shareText, name: `${name} (% of ${SHARED[name] ?? "offered"})` };
    case "pps":
      return {
        place: (value, cell) =>
          fromPps(value, { line_rate_bps: cell.line_rate_bps, profile: { mean_frame_size: cell.mean_frame_size } }, settings.unit),
        text: (place) => preciseText(place, settings.unit),
        tick: (place) => rateTick(place, settings.unit),
        name: `${name}, ${unitName(settings.unit)}`,
      };
  }
}

export function wayText(direction: BenchTest["direction"]): string {
  return direction === "both" ? "both ways" : "one way";
}

/** What a cell tells: its median, how far its repeats scatter, each of them and what makes them doubtful. */
export function cellLines(title: string, cell: Cell, figures: Figures): string[] {
  const text = (value: number) => figures.text(figures.place(value, cell));
  const doubts = new Set(cell.runs.flatMap((run) => run.doubts));
  const few = cell.interval ? "interval of the median" : "too few for an interval: all lie in";
  return [
    title,
    cell.runs.length > 1 ? `median of ${cell.runs.length}: ${text(cell.median)}` : text(cell.median),
    ...(cell.runs.length > 1 ? [`${few} ${text(cell.low)} – ${text(cell.high)}`] : []),
    ...doubts,
  ];
}

/** Whether the profile has to be said. */
export function hasProfiles(bench: Bench): boolean {
  return new Set(bench.tests.map((test) => test.profile)).size > 1;
}

/** Which directions the bench has, each once. */
export function directionsOf(bench: Bench): BenchTest["direction"][] {
  return [...new Set(bench.tests.map((test) => test.direction))];
}
