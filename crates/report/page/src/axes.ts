// Axes in the page's colours and letters.

import type uPlot from "uplot";
import type { Theme } from "./theme";

export const FONT = '11px system-ui, -apple-system, "Segoe UI", sans-serif';
/** Room for the labels of all vertical axes, so that charts line up. */
const WIDTH = 62;
const HEIGHT = 34;

/** An axis below a chart. */
export function horizontalAxis(theme: Theme, text: (value: number) => string): uPlot.Axis {
  return {
    stroke: theme.muted,
    font: FONT,
    grid: { stroke: theme.line, width: 1 },
    ticks: { show: true, stroke: theme.line, size: 5 },
    size: HEIGHT,
    space: 70,
    // All of them: uPlot would leave out those of a logarithmic axis that it thinks too close.
    filter: (_, splits) => splits,
    values: (_, splits) => splits.map((value) => text(value)),
  };
}

/** An axis at the left. A logarithmic one has lines at powers of ten, if there are two. */
export function verticalAxis(theme: Theme, text: (value: number) => string, logarithmic: boolean): uPlot.Axis {
  const filter: uPlot.Axis.Filter = (_, splits) => (logarithmic ? powersOfTen(splits) : splits);
  return {
    stroke: theme.muted,
    font: FONT,
    grid: { stroke: theme.line, width: 1, filter },
    ticks: { show: false },
    size: WIDTH,
    space: 34,
    filter,
    // Null is what the filter left out.
    values: (_, splits) => splits.map((value: number | null) => (value === null ? "" : text(value))),
  };
}

function powersOfTen(splits: number[]): (number | null)[] {
  const powers = splits.map((value) => (Math.abs(Math.log10(value) % 1) < 1e-9 ? value : null));
  return powers.filter((value) => value !== null).length >= 2 ? powers : splits;
}
