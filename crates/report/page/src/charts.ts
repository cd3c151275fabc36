// The charts of one test, one above the other, on one horizontal axis: zooming one zooms all, and
// the cursor is in all at once.

import uPlot from "uplot";
import type { Channel } from "./channel";
import { nearest, type Points } from "./curves";
import type { Settings } from "./settings";
import { deviceColour, faded, type Theme } from "./theme";
import { durationText, rateTick, shareText, unitName } from "./units";

type Series = { values: (number | null)[]; dash?: number[]; width?: number; opacity?: number };

interface Kind {
  name: string;
  height: number;
  caption: string;
  series: (points: Points, channel: Channel) => Series[];
  scale: uPlot.Scale;
  tick: (value: number) => string;
  marks?: boolean;
  threshold?: boolean;
}

/** Room for the labels of all vertical axes, so that charts line up. */
const AXIS_WIDTH = 62;
const FONT = '11px system-ui, -apple-system, "Segoe UI", sans-serif';
const DASHED = [5, 4];
/** The least loss ratio that the logarithmic axis shows. */
const LEAST_LOSS = 1e-6;

function kinds(settings: Settings, channels: Channel[]): Kind[] {
  const some = (values: (points: Points) => (number | null)[]) =>
    channels.some((channel) => values(channel.points).some((value) => value !== null));
  const log = settings.loss === "log";
  const all: (Kind | false)[] = [
    {
      name: "rate",
      height: 300,
      caption: `Rate, ${unitName(settings.unit)}: forwarded solid, offered dashed, ▾ highest lossless`,
      series: (points) => [
        { values: points.offered, dash: DASHED, width: 1, opacity: 0.75 },
        { values: points.forwarded },
      ],
      scale: { range: (_, __, max) => [0, max > 0 ? max * 1.06 : 1] },
      tick: (value) => rateTick(value, settings.unit),
      marks: true,
    },
    {
      name: "loss",
      height: 130,
      caption: `Loss, share of offered${log ? " (logarithmic; no loss is not shown)" : ""}`,
      series: (points) => [{ values: log ? points.loss.map((loss) => (loss > 0 ? loss : null)) : points.loss }],
      scale: log
        ? { distr: 3, range: () => [LEAST_LOSS, 1] }
        : { range: (_, __, max) => [0, max > 0 ? max * 1.06 : 0.01] },
      tick: shareText,
      threshold: true,
    },
    some((points) => points.p50) && {
      name: "latency",
      height: 190,
      caption: "Latency (logarithmic): median solid, 99th percentile dashed",
      series: (points) => [{ values: points.p99, dash: DASHED, width: 1 }, { values: points.p50 }],
      scale: { distr: 3 },
      tick: durationText,
    },
    some((points) => points.busy) && {
      name: "busy",
      height: 120,
      caption: "DUT core, share of time busy",
      series: (points, channel) => (channel.direction === 0 ? [{ values: points.busy }] : []),
      scale: { range: () => [0, 1.04] },
      tick: shareText,
    },
  ];
  return all.filter((kind): kind is Kind => kind !== false);
}

export interface Stack {
  /** Shows and hides curves as the channels say. */
  showChannels(): void;
  resize(): void;
  destroy(): void;
}

/** Draws all charts of a test into `parent`; `onCursor` gets the cursor's place, or null. */
export function drawStack(
  parent: HTMLElement,
  channels: Channel[],
  settings: Settings,
  theme: Theme,
  onCursor: (x: number | null) => void,
): Stack {
  const sync = uPlot.sync(`${parent.id}-${settings.against}`);
  const wanted = kinds(settings, channels);
  const charts = wanted.map((kind, at) => {
    const figure = document.createElement("figure");
    figure.dataset["kind"] = kind.name;
    const caption = document.createElement("figcaption");
    caption.textContent = kind.caption;
    figure.append(caption);
    parent.append(figure);
    return chart(figure, kind, channels, settings, theme, at === wanted.length - 1, sync.key, onCursor);
  });
  return {
    showChannels() {
      for (const { plot, owners } of charts) {
        plot.batch(() => {
          owners.forEach((owner, at) => {
            if (plot.series[at + 1]?.show !== owner.shown) plot.setSeries(at + 1, { show: owner.shown });
          });
        });
        plot.redraw();
      }
    },
    resize() {
      for (const { plot, figure } of charts) plot.setSize({ width: figure.clientWidth, height: plot.height });
    },
    destroy() {
      for (const { plot, figure } of charts) {
        plot.destroy();
        figure.remove();
      }
    },
  };
}

interface Chart {
  plot: uPlot;
  figure: HTMLElement;
  /** The channel of each curve. */
  owners: Channel[];
}

function chart(
  figure: HTMLElement,
  kind: Kind,
  channels: Channel[],
  settings: Settings,
  theme: Theme,
  last: boolean,
  syncKey: string,
  onCursor: (x: number | null) => void,
): Chart {
  const owners: Channel[] = [];
  const series: uPlot.Series[] = [{}];
  const tables: uPlot.AlignedData[] = [];
  for (const channel of channels) {
    const curves = kind.series(channel.points, channel);
    if (curves.length === 0) continue;
    tables.push([channel.points.x, ...curves.map((curve) => curve.values)]);
    for (const curve of curves) {
      owners.push(channel);
      series.push(seriesOptions(curve, channel, theme));
    }
  }
  const options: uPlot.Options = {
    width: figure.clientWidth,
    height: kind.height + (last ? 34 : 8),
    // Room at the right for half of the last label.
    padding: [10, 20, last ? 0 : 8, 0],
    legend: { show: false },
    scales: { x: { time: false }, y: kind.scale },
    axes: [horizontalAxis(settings, theme, last), verticalAxis(kind, theme)],
    series,
    cursor: {
      sync: { key: syncKey, scales: ["x", null] },
      drag: { x: true, y: false, uni: 20 },
      points: { size: 6, width: 1.5 },
      // Runs are sampled at different moments: each curve shows its sample nearest to the cursor.
      dataIdx: (plot, _, index, x) => nearestIndex(plot.data[0] as number[], plot.data[_] ?? [], index, x),
    },
    hooks: {
      draw: [(plot) => drawMarks(plot, kind, channels, theme)],
      setCursor: [(plot) => onCursor(cursorPlace(plot))],
    },
  };
  const data = tables.length > 0 ? uPlot.join(tables) : ([[]] as uPlot.AlignedData);
  return { plot: new uPlot(options, data, figure), figure, owners };
}

function cursorPlace(plot: uPlot): number | null {
  const left = plot.cursor.left ?? -1;
  return left < 0 ? null : plot.posToVal(left, "x");
}

/** The index of the value nearest to `x` that is there; `index` is the nearest of all. */
function nearestIndex(xs: number[], values: ArrayLike<number | null | undefined>, index: number, x: number): number {
  if (values[index] !== undefined) return index;
  let [before, after] = [index, index];
  while (before > 0 && values[before] === undefined) before--;
  while (after < xs.length - 1 && values[after] === undefined) after++;
  if (values[before] === undefined) return after;
  if (values[after] === undefined) return before;
  return x - (xs[before] ?? 0) <= (xs[after] ?? 0) - x ? before : after;
}

function seriesOptions(curve: Series, channel: Channel, theme: Theme): uPlot.Series {
  const colour = deviceColour(theme, channel.run.device);
  const wide = channel.direction > 0;
  const width = curve.width ?? 1.75;
  return {
    stroke: faded(colour, wide ? 0.38 : (curve.opacity ?? 1)),
    width: wide ? width * 3 : width,
    ...(curve.dash ? { dash: curve.dash } : {}),
    // A line needs two points.
    points: { show: channel.points.x.length < 2 },
    show: channel.shown,
  };
}

function horizontalAxis(settings: Settings, theme: Theme, labelled: boolean): uPlot.Axis {
  const time = settings.against === "time";
  const text = (value: number) => (time ? `${value} s` : rateTick(value, settings.unit));
  return {
    stroke: theme.muted,
    font: FONT,
    grid: { stroke: theme.line, width: 1 },
    ticks: { show: labelled, stroke: theme.line, size: 5 },
    size: labelled ? 34 : 0,
    space: 70,
    values: (_, splits) => splits.map((value) => (labelled ? text(value) : "")),
  };
}

function verticalAxis(kind: Kind, theme: Theme): uPlot.Axis {
  return {
    stroke: theme.muted,
    font: FONT,
    grid: { stroke: theme.line, width: 1 },
    ticks: { show: false },
    size: AXIS_WIDTH,
    space: 34,
    // Null is where a logarithmic axis leaves labels out.
    values: (_, splits) => splits.map((value: number | null) => (value === null ? "" : kind.tick(value))),
  };
}

/** Lossless limits and stalls as vertical lines, the loss threshold as a horizontal one. */
function drawMarks(plot: uPlot, kind: Kind, channels: Channel[], theme: Theme): void {
  const { ctx, bbox } = plot;
  const scale = uPlot.pxRatio;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top - 8 * scale, bbox.width, bbox.height + 8 * scale);
  ctx.clip();
  for (const channel of channels.filter((channel) => channel.shown)) {
    const colour = deviceColour(theme, channel.run.device);
    if (channel.lossless !== null) {
      const x = plot.valToPos(channel.lossless, "x", true);
      vertical(ctx, x, bbox, faded(colour, 0.6), [2 * scale, 3 * scale], scale);
      if (kind.marks) triangle(ctx, x, bbox.top, colour, 5 * scale);
    }
    if (channel.stalled !== null) {
      const x = plot.valToPos(channel.stalled, "x", true);
      vertical(ctx, x, bbox, colour, [], scale);
      if (kind.marks) label(ctx, "stalled", x + 5 * scale, bbox.top + 12 * scale, colour, scale);
    }
  }
  if (kind.threshold) {
    for (const threshold of new Set(channels.map((channel) => channel.run.record.strategy.loss_threshold))) {
      const y = plot.valToPos(threshold, "y", true);
      horizontal(ctx, y, bbox, faded(theme.text, 0.35), scale);
    }
  }
  ctx.restore();
}

function vertical(
  ctx: CanvasRenderingContext2D,
  x: number,
  bbox: uPlot.BBox,
  colour: string,
  dash: number[],
  width: number,
): void {
  ctx.beginPath();
  ctx.setLineDash(dash);
  ctx.lineWidth = width;
  ctx.strokeStyle = colour;
  ctx.moveTo(x, bbox.top);
  ctx.lineTo(x, bbox.top + bbox.height);
  ctx.stroke();
}

function horizontal(ctx: CanvasRenderingContext2D, y: number, bbox: uPlot.BBox, colour: string, width: number): void {
  ctx.beginPath();
  ctx.setLineDash([]);
  ctx.lineWidth = width;
  ctx.strokeStyle = colour;
  ctx.moveTo(bbox.left, y);
  ctx.lineTo(bbox.left + bbox.width, y);
  ctx.stroke();
}

function triangle(ctx: CanvasRenderingContext2D, x: number, y: number, colour: string, size: number): void {
  ctx.beginPath();
  ctx.fillStyle = colour;
  ctx.moveTo(x - size, y - size);
  ctx.lineTo(x + size, y - size);
  ctx.lineTo(x, y + size / 2);
  ctx.closePath();
  ctx.fill();
}

function label(ctx: CanvasRenderingContext2D, text: string, x: number, y: number, colour: string, scale: number): void {
  ctx.font = FONT.replace("11px", `${11 * scale}px`);
  ctx.fillStyle = colour;
  ctx.textAlign = "left";
  ctx.fillText(text, x, y);
}

/** The values of a channel nearest to `x`, as an index into its points. */
export function indexAt(channel: Channel, x: number): number | null {
  return nearest(channel.points.x, x);
}
