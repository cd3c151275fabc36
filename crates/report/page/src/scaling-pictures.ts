// How figures change with a number that the bench file names, like rules, flows or cores: a line through
// the medians with their intervals, and, where more would help in the best case, what that would be.

import uPlot from "uplot";
import type { Bench, Cell } from "./bench-data";
import { cellLines, directionsOf, type Figures, figuresOf, hasProfiles, wayText } from "./cell-text";
import { numberAxis } from "./number-axis";
import { deviceSign, line, paintLimit, stroke } from "./paint";
import type { Plan, Point } from "./picture";
import { type Place, type Series, seriesOf } from "./scaling-series";
import type { Settings } from "./settings";
import type { Theme } from "./theme";

const HEIGHT = 320;

export function scalingPlans(bench: Bench, settings: Settings, theme: Theme): Plan[] {
  const { axis } = bench;
  if (!axis) return [];
  const figures = figuresOf(bench, settings);
  const directions = directionsOf(bench);
  const found = directions.map((direction) => ({
    direction,
    series: seriesOf(bench, direction, settings, theme).filter(({ places }) => places.length > 1),
  }));
  const drawn = found.filter(({ series }) => series.length > 0);
  const all = drawn.flatMap(({ series }) => series.flatMap(({ places }) => places));
  const most = Math.max(0, ...all.map(({ cell }) => figures.place(cell.high, cell)));
  return drawn.map(({ direction, series }) => {
    const way = directions.length > 1 ? `, ${wayText(direction)}` : "";
    const limits = axis.linear ? [] : baselines(bench, direction, settings, figures);
    // Of what would be in proportion, as much is shown as leaves half of the height to what is.
    const proportional = axis.linear ? series.map(({ places }) => proportion(places, figures).most) : [];
    const top = Math.max(most, ...limits.map(({ value }) => value), ...proportional.map((value) => Math.min(value, 2 * most)));
    return plan(axis, `${figures.name} against ${axis.name}${way}`, drawn.length > 1 ? "half" : "full", series, limits, top, hasProfiles(bench), figures, theme);
  });
}

/** The baseline where it has no number itself: a line across. */
function baselines(bench: Bench, direction: string, settings: Settings, figures: Figures): { value: number; name: string }[] {
  const column = bench.duts.findIndex(({ baseline, at }) => baseline && at === null);
  const dut = bench.duts[column];
  if (!dut || settings.hiddenDevices.has(dut.device) || bench.duts.every(({ at }) => at === null)) return [];
  const tests = bench.tests.filter((test) => test.direction === direction);
  return tests.flatMap((test) => {
    const cell = test.cells[column];
    const name = hasProfiles(bench) ? `${dut.name}, ${test.profile}` : dut.name;
    return cell ? [{ value: figures.place(cell.median, cell), name }] : [];
  });
}

function plan(
  axis: { name: string; linear: boolean },
  caption: string,
  size: Plan["size"],
  series: Series[],
  limits: { value: number; name: string }[],
  most: number,
  /** Whether a single line has to say what it is of. */
  named: boolean,
  figures: Figures,
  theme: Theme,
): Plan {
  const x = numberAxis(series.flatMap(({ places }) => places.map(({ at }) => at)));
  const y = (value: number, cell: Cell) => figures.place(value, cell);
  const points = series.flatMap(({ places }) =>
    places.map(
      ({ at, cell, name }): Point => ({ x: x.place(at), y: y(cell.median, cell), lines: cellLines(name, cell, figures) }),
    ),
  );
  return {
    kind: "scaling",
    size,
    height: HEIGHT,
    caption: caption.charAt(0).toUpperCase() + caption.slice(1) + (x.logarithmic ? " (logarithmic)" : ""),
    key: [
      ...(series.length > 1 || named ? series.map(({ name, colour, letter, dash }) => ({ sign: (dash.length > 0 ? "┅" : "━") + letter, colour, text: name })) : []),
      ...(axis.linear ? [{ sign: "┄", colour: theme.muted, text: `in proportion to ${axis.name}` }] : []),
    ],
    x,
    y: { range: [0, most > 0 ? most * 1.08 : 1], tick: figures.tick },
    margin: 24,
    points,
    paint: (ctx, plot) => {
      const at = (place: Place, value: number): [number, number] => [
        plot.valToPos(x.place(place.at), "x", true),
        plot.valToPos(y(value, place.cell), "y", true),
      ];
      limits.forEach(({ value, name }) => paintLimit(ctx, plot, value, name, theme));
      for (const { places, colour, dash, joined } of series) {
        if (axis.linear) paintProportional(ctx, plot, places, figures, x, theme);
        stroke(ctx, colour, 1.6, dash);
        if (joined) line(ctx, ...places.map((place) => at(place, place.cell.median)));
        for (const place of places) {
          stroke(ctx, place.colour, 1.4);
          line(ctx, at(place, place.cell.low), at(place, place.cell.high));
          for (const end of [place.cell.low, place.cell.high]) {
            const [across, down] = at(place, end);
            line(ctx, [across - 4 * uPlot.pxRatio, down], [across + 4 * uPlot.pxRatio, down]);
          }
          deviceSign(ctx, ...at(place, place.cell.median), place.colour, place.shape, theme);
        }
      }
    },
  };
}

/** Where the figures begin, at the least number above zero, and what they would be at the largest in proportion. */
function proportion(places: Place[], figures: Figures): { from: number; start: number; until: number; most: number } {
  const first = places.find(({ at }) => at > 0);
  const until = places[places.length - 1]?.at ?? 0;
  if (!first) return { from: 0, start: 0, until, most: 0 };
  const start = figures.place(first.cell.median, first.cell);
  return { from: first.at, start, until, most: (start * until) / first.at };
}

/** From the least number on, as if twice as many made twice the figure. */
function paintProportional(
  ctx: CanvasRenderingContext2D,
  plot: uPlot,
  places: Place[],
  figures: Figures,
  x: { place: (number: number) => number },
  theme: Theme,
): void {
  const { from, start, until } = proportion(places, figures);
  if (from === 0) return;
  const { left, top, width, height } = plot.bbox;
  ctx.save();
  ctx.beginPath();
  ctx.rect(left, top, width, height);
  ctx.clip();
  stroke(ctx, theme.muted, 1.3, [3, 4]);
  // On a logarithmic axis the line is bent.
  const steps = Array.from({ length: 61 }, (_, step) => from * (until / from) ** (step / 60));
  line(
    ctx,
    ...steps.map((at): [number, number] => [
      plot.valToPos(x.place(at), "x", true),
      plot.valToPos((start * at) / from, "y", true),
    ]),
  );
  ctx.restore();
}
