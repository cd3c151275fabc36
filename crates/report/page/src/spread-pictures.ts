// How the repeats of each cell of a bench scatter: a bar to the median, its interval, and a faint point
// for each repeat; a row for each device, profile by profile, a picture for each direction.

import uPlot from "uplot";
import type { Bench, Cell } from "./bench-data";
import { cellLines, directionsOf, type Figures, figuresOf, hasProfiles, wayText } from "./cell-text";
import { line, scaledFont, stroke } from "./paint";
import type { Plan, Point } from "./picture";
import type { Settings } from "./settings";
import { deviceColour, faded, type Theme } from "./theme";

/** Heights in pixels: of a row with its name above, of a profile's name, of the axis and the edges. */
const ROW = 32;
const HEADING = 30;
const AROUND = 54;
const BAR = 11;

interface Row {
  name: string;
  colour: string;
  cell: Cell;
  /** From the top, in pixels. */
  at: number;
}

interface Layout {
  rows: Row[];
  headings: { text: string; at: number }[];
  height: number;
}

export function spreadPlans(bench: Bench, settings: Settings, theme: Theme): Plan[] {
  const figures = figuresOf(bench, settings);
  const directions = directionsOf(bench);
  const layouts = directions.map((direction) => layOut(bench, direction, settings, theme));
  const places = layouts.flatMap(({ rows }) =>
    rows.flatMap(({ cell }) => [cell.high, ...cell.runs.map((run) => run.value)].map((value) => figures.place(value, cell))),
  );
  const most = Math.max(0, ...places);
  return directions.flatMap((direction, at) => {
    const layout = layouts[at];
    if (!layout || layout.rows.length === 0) return [];
    const caption = directions.length > 1 ? `${capitalised(wayText(direction))}: ${figures.name}` : capitalised(figures.name);
    return [plan(layout, caption, directions.length > 1 ? "half" : "full", most, figures, theme)];
  });
}

function capitalised(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function layOut(bench: Bench, direction: string, settings: Settings, theme: Theme): Layout {
  const layout: Layout = { rows: [], headings: [], height: 0 };
  const tests = bench.tests.filter((test) => test.direction === direction);
  const isShown = (cell: Cell | null, at: number) => cell !== null && !settings.hiddenDevices.has(bench.duts[at]?.device ?? 0);
  for (const test of tests.filter(({ cells }) => cells.some(isShown))) {
    if (hasProfiles(bench)) {
      layout.headings.push({ text: test.profile, at: layout.height + HEADING / 2 + 3 });
      layout.height += HEADING;
    }
    test.cells.forEach((cell, at) => {
      const dut = bench.duts[at];
      if (!cell || !dut || settings.hiddenDevices.has(dut.device)) return;
      const name = dut.baseline ? `${dut.name} (baseline)` : dut.name;
      layout.rows.push({ name, colour: deviceColour(theme, dut.device), cell, at: layout.height + ROW - BAR });
      layout.height += ROW;
    });
  }
  return layout;
}

function plan(layout: Layout, caption: string, size: Plan["size"], most: number, figures: Figures, theme: Theme): Plan {
  const points = layout.rows.map(
    ({ name, cell, at }): Point => ({ x: figures.place(cell.median, cell), y: -at, lines: cellLines(name, cell, figures) }),
  );
  const several = layout.rows.some(({ cell }) => cell.runs.length > 1);
  return {
    kind: "spread",
    size,
    height: layout.height + AROUND,
    caption,
    key: several
      ? [
          { sign: "▬", colour: theme.muted, text: "median" },
          { sign: "├┤", colour: theme.text, text: "its interval" },
          { sign: "○", colour: theme.muted, text: "each repeat" },
        ]
      : [],
    x: { range: [0, most > 0 ? most * 1.04 : 1], tick: figures.tick },
    y: { range: [-layout.height - 4, 0], tick: () => "", splits: () => [], width: 8 },
    margin: 24,
    points,
    paint: (ctx, plot) => {
      layout.headings.forEach(({ text, at }) => write(ctx, plot, text, at, theme.text, "600 "));
      layout.rows.forEach((row) => paintRow(ctx, plot, row, figures, theme));
    },
  };
}

/** Letters at the left edge of the axes, above what stands at `at`. */
function write(ctx: CanvasRenderingContext2D, plot: uPlot, text: string, at: number, colour: string, weight = ""): void {
  ctx.font = scaledFont(weight);
  ctx.fillStyle = colour;
  ctx.textAlign = "left";
  ctx.textBaseline = "middle";
  ctx.fillText(text, plot.bbox.left + 3 * uPlot.pxRatio, plot.valToPos(-at, "y", true));
}

function paintRow(ctx: CanvasRenderingContext2D, plot: uPlot, row: Row, figures: Figures, theme: Theme): void {
  const { cell, colour } = row;
  const scale = uPlot.pxRatio;
  const y = plot.valToPos(-row.at, "y", true);
  const x = (value: number) => plot.valToPos(figures.place(value, cell), "x", true);
  const { left, width } = plot.bbox;
  const inside = (place: number) => Math.min(Math.max(place, left), left + width);
  write(ctx, plot, row.name, row.at - BAR - 2, theme.muted);
  const half = (BAR / 2) * scale;
  ctx.fillStyle = faded(colour, 0.32);
  ctx.fillRect(left, y - half, inside(x(cell.median)) - left, 2 * half);
  for (const run of cell.runs) {
    if (cell.runs.length < 2 || inside(x(run.value)) !== x(run.value)) continue;
    ctx.beginPath();
    ctx.setLineDash([]);
    ctx.arc(x(run.value), y, 2.6 * scale, 0, 2 * Math.PI);
    ctx.strokeStyle = faded(theme.text, 0.5);
    ctx.lineWidth = scale;
    ctx.stroke();
  }
  stroke(ctx, colour, 3);
  const median = x(cell.median);
  if (inside(median) === median) line(ctx, [median, y - half], [median, y + half]);
  if (cell.runs.length < 2) return;
  // An interval has ends; what is only all there is has none.
  stroke(ctx, theme.text, 1.3, cell.interval ? [] : [2, 2]);
  line(ctx, [inside(x(cell.low)), y], [inside(x(cell.high)), y]);
  if (cell.interval) {
    for (const end of [x(cell.low), x(cell.high)]) if (inside(end) === end) line(ctx, [end, y - half * 0.7], [end, y + half * 0.7]);
  }
}
