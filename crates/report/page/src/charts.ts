// The charts of one test, one above the other, on one horizontal axis: zooming one zooms all, and
// the cursor is in all at once.

import uPlot from "uplot";
import { horizontalAxis, verticalAxis } from "./axes";
import type { Channel } from "./channel";
import { measured, nearest, type Points } from "./curves";
import type { RunRecord } from "./data";
import { exportChart, type Key } from "./exporting";
import { drawMarks, drawShapes, type Marks } from "./marks";
import type { Settings } from "./settings";
import { deviceColour, deviceLetter, faded, type Theme } from "./theme";
import { durationText, fromPps, rateTick, shareText, unitName } from "./units";

type Series = { values: (number | null)[]; dash?: number[]; width?: number; opacity?: number };

interface Kind {
  name: string;
  height: number;
  caption: string;
  series: (points: Points, channel: Channel) => Series[];
  scale: uPlot.Scale;
  tick: (value: number) => string;
  marks: Marks;
}

const DASHED = [5, 4];
/** How far apart charts that move are drawn. */
const STAGGER_MS = 30;
/** How faint repeats are beside the run that stands for them. */
const REPEAT = 0.3;
/** The logarithmic axis of loss shows at least from here to 1. */
const SMALL_LOSS = 1e-4;

function kinds(settings: Settings, channels: Channel[]): Kind[] {
  const some = (values: (points: Points) => (number | null)[]) =>
    channels.some((channel) => values(channel.points).some((value) => value !== null));
  const log = settings.loss === "log";
  const all: (Kind | false)[] = [
    {
      name: "rate",
      height: 300,
      caption: `Rate, ${unitName(settings.unit)}: forwarded solid, offered dashed, ▾ max rate within the loss threshold`,
      series: (points, { run }) => [
        ...(run.repeat ? [] : [{ values: points.offered, dash: DASHED, width: 1, opacity: 0.75 }]),
        { values: points.forwarded },
      ],
      scale: { range: (_, __, max) => [0, max > 0 ? max * 1.06 : 1] },
      tick: (value) => rateTick(value, settings.unit),
      marks: {
        named: true,
        threshold: false,
        alone: ({ record }) => {
          const ceiling = ceilingOf(record);
          if (ceiling === null) return null;
          return { value: fromPps(ceiling, record, settings.unit), name: "tester max received (loopback)" };
        },
      },
    },
    {
      name: "loss",
      height: 130,
      caption: `Loss (% of offered)${log ? " (logarithmic; no loss is not shown)" : ""}`,
      series: (points) => [{ values: log ? points.loss.map((loss) => (loss > 0 ? loss : null)) : points.loss }],
      scale: log
        ? { distr: 3, range: (_, min) => [Math.min(SMALL_LOSS, min > 0 ? 10 ** Math.floor(Math.log10(min)) : 1), 1] }
        : { range: (_, __, max) => [0, max > 0 ? max * 1.06 : 0.01] },
      tick: shareText,
      marks: { named: false, threshold: true, alone: () => null },
    },
    some((points) => points.p50) && {
      name: "latency",
      height: 190,
      caption: "Latency (logarithmic): median solid, 99th percentile dashed",
      series: (points, { run }) => [
        ...(run.repeat ? [] : [{ values: points.p99, dash: DASHED, width: 1 }]),
        { values: points.p50 },
      ],
      scale: { distr: 3 },
      tick: durationText,
      marks: {
        named: false,
        threshold: false,
        alone: ({ record }) => {
          const value = loopbackMedian(record);
          return value === null ? null : { value, name: `loopback p50 ${durationText(value)}` };
        },
      },
    },
    some((points) => points.busy) && {
      name: "busy",
      height: 120,
      caption: "DUT core utilisation (%)",
      series: (points, channel) => (channel.direction === 0 ? [{ values: points.busy }] : []),
      scale: { range: () => [0, 1.04] },
      tick: shareText,
      marks: { named: false, threshold: false, alone: () => null },
    },
  ];
  return all.filter((kind): kind is Kind => kind !== false);
}

/** The most that the tester receives alone; null where more came back in the run itself, so that it is no ceiling. */
function ceilingOf(record: RunRecord): number | null {
  const ceiling = record.tester?.self_test?.ceiling_pps ?? 0;
  const forwarded = measured(record).flatMap((sample) => sample.directions.map((d) => d.forwarded_pps));
  return ceiling > 0 && forwarded.every((pps) => pps <= ceiling) ? ceiling : null;
}

/** The median of the tester alone; null where the run itself saw a lower median, so that it is no baseline. */
function loopbackMedian(record: RunRecord): number | null {
  const alone = record.tester?.self_test?.base_latency_p50_ns;
  if (alone === undefined) return null;
  const medians = measured(record).flatMap((sample) => sample.directions.map((d) => d.latency?.p50_ns ?? Infinity));
  return medians.every((p50) => p50 >= alone) ? alone : null;
}

export interface Stack {
  /** Shows and hides curves as the channels say. */
  showChannels(): void;
  resize(): void;
  destroy(): void;
}

export interface Moving extends Stack {
  /** Draws new points of the same channels; false where they need other charts than these. */
  update(channels: Channel[]): boolean;
}

/** Draws all charts of a test into `parent`; `onCursor` gets the cursor's place, or null. */
export function drawStack(
  parent: HTMLElement,
  channels: Channel[],
  settings: Settings,
  theme: Theme,
  devices: string[],
  onCursor: (x: number | null) => void,
): Moving {
  const sync = uPlot.sync(`${parent.id}-${settings.against}`);
  // Where every device carried the whole load, all rates are the load and all losses none.
  const isSame = (kind: Kind) => "carriedAll" in parent.dataset && (kind.name === "rate" || kind.name === "loss");
  const wanted = kinds(settings, channels).filter((kind) => !isSame(kind));
  const keys = deviceKeys(channels, devices, theme);
  const charts = wanted.map((kind) => {
    const figure = document.createElement("figure");
    figure.dataset["kind"] = kind.name;
    const caption = document.createElement("figcaption");
    caption.textContent = kind.caption;
    figure.append(caption);
    parent.append(figure);
    const drawn = chart(figure, kind, channels, settings, theme, sync.key, onCursor);
    exportChart(caption, `${parent.id}-${kind.name}`, () => drawn.plot, keys);
    return drawn;
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
    update(now) {
      const names = (of: Kind[]) => of.map((kind) => kind.name).join();
      if (now.length !== channels.length || names(kinds(settings, now)) !== names(kinds(settings, channels))) return false;
      charts.forEach(({ plot, figure }, at) => {
        const kind = wanted[at];
        // Each in a task of its own: all at once would keep the browser from drawing for too long.
        if (kind) setTimeout(() => figure.isConnected && plot.setData(tableOf(kind, now)), at * STAGGER_MS);
      });
      return true;
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

/** The colours of the devices that are drawn. */
export function deviceKeys(channels: Channel[], devices: string[], theme: Theme): Key[] {
  const drawn = [...new Set(channels.map((channel) => channel.run.device))].sort((a, b) => a - b);
  return drawn.map((device) => ({
    sign: deviceLetter(theme, device) || "━",
    colour: deviceColour(theme, device),
    text: devices[device] ?? "",
  }));
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
  syncKey: string,
  onCursor: (x: number | null) => void,
): Chart {
  const owners: Channel[] = [];
  // Those of curves that stand for their device.
  const standing: (Channel | null)[] = [];
  const series: uPlot.Series[] = [{}];
  const runs = [...new Set(channels.map((channel) => channel.run))].filter((run) => !run.repeat);
  for (const channel of channels) {
    const above = runs.length - 1 - runs.indexOf(channel.run);
    const curves = kind.series(channel.points, channel);
    if (curves.length === 0) continue;
    for (const curve of curves) {
      owners.push(channel);
      standing.push(channel.run.repeat || curve.dash ? null : channel);
      series.push(seriesOptions(curve, channel, above, theme));
    }
  }
  const options: uPlot.Options = {
    width: figure.clientWidth,
    height: kind.height + 34,
    // Room at the right for half of the last label.
    padding: [10, 20, 0, 0],
    legend: { show: false },
    // Time begins at the ramp's start, not at the middle of its first sample.
    scales: { x: { time: false, range: (plot, min, max) => [min === plot.data[0][0] ? 0 : min, max] }, y: kind.scale },
    axes: [horizontalAxis(theme, horizontalTick(settings)), verticalAxis(theme, kind.tick, kind.scale.distr === 3)],
    series,
    cursor: {
      sync: { key: syncKey, scales: ["x", null] },
      drag: { x: true, y: false },
      y: false,
      points: { size: 6, width: 1.5 },
      // Runs are sampled at different moments: each curve shows its sample nearest to the cursor.
      dataIdx: (plot, _, index, x) => nearestIndex(plot.data[0] as number[], plot.data[_] ?? [], index, x),
    },
    hooks: {
      draw: [
        (plot) => drawMarks(plot, channels.filter(({ run }) => !run.repeat), theme, kind.marks),
        (plot) => drawShapes(plot, standing, theme),
      ],
      setCursor: [(plot) => onCursor(cursorPlace(plot))],
    },
  };
  return { plot: new uPlot(options, tableOf(kind, channels), figure), figure, owners };
}

/** The points of all curves, on one horizontal axis. */
function tableOf(kind: Kind, channels: Channel[]): uPlot.AlignedData {
  const tables = channels.flatMap((channel): uPlot.AlignedData[] => {
    const curves = kind.series(channel.points, channel);
    return curves.length > 0 ? [[channel.points.x, ...curves.map((curve) => curve.values)]] : [];
  });
  const [first] = tables;
  if (first === undefined) return [[]];
  const x = first[0];
  // Directions of one run have one axis already: joining would only take time.
  const isOne = tables.every(([other]) => other.length === x.length && other.every((value, at) => value === x[at]));
  return isOne ? [x, ...tables.flatMap(([, ...values]) => values)] : uPlot.join(tables);
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

/** `above` is how many runs are drawn above: the lower ones are wider, so that equal curves show. */
function seriesOptions(curve: Series, channel: Channel, above: number, theme: Theme): uPlot.Series {
  const colour = deviceColour(theme, channel.run.device);
  const { repeat } = channel.run;
  const wide = channel.direction > 0 && !repeat;
  const width = repeat ? 1 : (curve.width ?? 1.6 + 1.1 * Math.min(above, 2));
  return {
    stroke: faded(colour, repeat ? REPEAT : wide ? 0.38 : (curve.opacity ?? 1)),
    width: wide ? width * 3 : width,
    ...(curve.dash ? { dash: curve.dash } : {}),
    // A line needs two points.
    points: { show: channel.points.x.length < 2 },
    show: channel.shown,
  };
}

function horizontalTick(settings: Settings): (value: number) => string {
  return settings.against === "time" ? (value) => `${value} s` : (value) => rateTick(value, settings.unit);
}

/** The values of a channel nearest to `x`, as an index into its points. */
export function indexAt(channel: Channel, x: number): number | null {
  return nearest(channel.points.x, x);
}
