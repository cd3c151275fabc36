// Pictures of a soak: loss and latency over time, with what happened marked.

import uPlot from "uplot";
import { measured } from "./curves";
import type { Run, Sample } from "./data";
import { lossAxis, lossPlace, smallestLoss } from "./loss-axis";
import { line, paintLimit, scaledFont, stroke } from "./paint";
import type { Axis, Plan, Point } from "./picture";
import { deviceColour, faded, type Theme } from "./theme";
import { durationText, shareText } from "./units";

/** Points that the mouse can find; of more, those with the most loss stand. */
const MOST_POINTS = 400;

/** Something in a span of time. */
interface Event {
  from: number;
  until: number;
  text: string;
  colour: string;
  lines: string[];
}

export function soakPlans(run: Run, theme: Theme): Plan[] {
  const samples = measured(run.record);
  const [first, last] = [samples[0], samples[samples.length - 1]];
  if (!run.record.soak || !first || !last) return [];
  const end = last.at_s + last.duration_s;
  const time: Axis = { range: [first.at_s, end], tick: (value) => `${value} s` };
  const events = eventsOf(run, end, theme);
  const latency = samples.some((sample) => sample.directions.some((direction) => direction.latency));
  return [
    lossOverTime(run, samples, time, events, theme),
    ...(latency ? [latencyOverTime(run, samples, time, events, theme)] : []),
  ];
}

function eventsOf(run: Run, end: number, theme: Theme): Event[] {
  const { soak } = run.record;
  if (!soak) return [];
  const stalls = soak.directions.flatMap((direction) =>
    direction.stalls.map(
      (stall): Event => ({
        from: stall.from_s,
        until: stall.until_s ?? end,
        text: "stall",
        colour: theme.failed,
        lines: [
          `stall of ${direction.name.replace("->", "→")} at ${stall.from_s.toFixed(2)} s`,
          stall.until_s === undefined ? "until the end" : `for ${(stall.until_s - stall.from_s).toFixed(2)} s`,
          `after ${stall.after_frames.toLocaleString("en")} frames`,
          ...(stall.disturbed ? ["the machine was disturbed meanwhile"] : []),
        ],
      }),
    ),
  );
  const hiccups = soak.hiccups.map(
    (hiccup): Event => ({
      from: hiccup.from_s,
      until: hiccup.until_s,
      text: "tester held up",
      colour: theme.unproved,
      lines: [`tester held up at ${hiccup.from_s.toFixed(2)} s`, hiccup.cause ?? "cause unknown"],
    }),
  );
  return [...hiccups, ...stalls];
}

/** Bands of events. */
function paintEvents(ctx: CanvasRenderingContext2D, plot: uPlot, events: Event[]): void {
  const { top, height } = plot.bbox;
  for (const { from, until, colour } of events) {
    const [left, right] = [plot.valToPos(from, "x", true), plot.valToPos(until, "x", true)];
    ctx.fillStyle = faded(colour, 0.16);
    ctx.fillRect(left, top, Math.max(right - left, uPlot.pxRatio), height);
    stroke(ctx, colour, 1);
    line(ctx, [left, top], [left, top + height]);
  }
}

/** The names of events above them, where there is room. */
function nameEvents(ctx: CanvasRenderingContext2D, plot: uPlot, events: Event[]): void {
  const { left, top, width } = plot.bbox;
  ctx.font = scaledFont("600 ");
  ctx.textAlign = "left";
  ctx.textBaseline = "bottom";
  let free = 0;
  for (const { from, text, colour } of [...events].sort((a, b) => a.from - b.from)) {
    const wide = ctx.measureText(text).width;
    const place = Math.min(plot.valToPos(from, "x", true), left + width - wide);
    if (place < free) continue;
    ctx.fillStyle = colour;
    ctx.fillText(text, place, top - 3 * uPlot.pxRatio);
    free = place + wide + 10 * uPlot.pxRatio;
  }
}

function keyOf(events: Event[]): Plan["key"] {
  const texts = [...new Set(events.map((event) => event.text))];
  return texts.map((text) => ({ sign: "▮", text, colour: events.find((event) => event.text === text)?.colour ?? "" }));
}

function lossOverTime(run: Run, samples: Sample[], time: Axis, events: Event[], theme: Theme): Plan {
  const lossOf = (sample: Sample) => Math.max(0, ...sample.directions.map((direction) => direction.loss_ratio));
  const smallest = smallestLoss(samples.map(lossOf));
  const lossy = samples
    .filter((sample) => lossOf(sample) > 0)
    .sort((a, b) => lossOf(b) - lossOf(a))
    .slice(0, MOST_POINTS)
    .sort((a, b) => a.at_s - b.at_s);
  const colour = deviceColour(theme, run.device);
  const atLoss = (sample: Sample): Point => ({
    x: sample.at_s + sample.duration_s / 2,
    y: lossPlace(lossOf(sample), smallest),
    lines: [
      `${shareText(lossOf(sample))} lost at ${sample.at_s.toFixed(2)} s`,
      ...sample.directions.map(
        (direction, at) =>
          `${run.record.directions[at]?.name.replace("->", "→") ?? ""}: ${shareText(direction.loss_ratio)} of ${Math.round(direction.offered_pps * sample.duration_s).toLocaleString("en")} frames`,
      ),
      ...(sample.disturbed ? [`disturbed: ${sample.disturbed}`] : []),
    ],
  });
  const y = lossAxis(smallest);
  const marks = events.map((event): Point => ({ x: event.from, y: y.range[1] - 0.2, lines: event.lines }));
  return {
    kind: "soak-loss",
    size: "full",
    height: 220,
    caption: "Loss over time (% of offered in each interval); of two directions the larger",
    key: [...keyOf(events), ...(samples.some((sample) => sample.disturbed && lossOf(sample) > 0) ? [{ sign: "▮", colour: theme.unproved, text: "lost while the machine disturbed" }] : [])],
    x: time,
    y,
    margin: 20,
    points: [...lossy.map(atLoss), ...marks],
    paint: (ctx, plot) => {
      paintEvents(ctx, plot, events);
      nameEvents(ctx, plot, events);
      const floor = plot.valToPos(0, "y", true);
      for (const sample of samples) {
        const loss = lossOf(sample);
        if (loss <= 0) continue;
        const left = plot.valToPos(sample.at_s, "x", true);
        const width = plot.valToPos(sample.at_s + sample.duration_s, "x", true) - left;
        const high = plot.valToPos(lossPlace(loss, smallest), "y", true);
        ctx.fillStyle = sample.disturbed ? theme.unproved : colour;
        ctx.fillRect(left, high, Math.max(width, 1.5 * uPlot.pxRatio), floor - high);
      }
      stroke(ctx, theme.muted, 1);
      line(ctx, [plot.bbox.left, floor], [plot.bbox.left + plot.bbox.width, floor]);
    },
  };
}

function latencyOverTime(run: Run, samples: Sample[], time: Axis, events: Event[], theme: Theme): Plan {
  const colour = deviceColour(theme, run.device);
  const curves = run.record.directions.flatMap((direction, at) =>
    (["p50_ns", "p99_ns"] as const).map((kind) => ({
      name: direction.name.replace("->", "→"),
      at,
      kind,
      points: samples.flatMap((sample) => {
        const latency = sample.directions[at]?.latency;
        return latency && latency[kind] > 0 ? [{ sample, ns: latency[kind] }] : [];
      }),
    })),
  );
  const values = curves.flatMap(({ points }) => points.map(({ ns }) => ns));
  const step = Math.max(1, Math.ceil(samples.length / MOST_POINTS));
  const base = run.record.tester?.self_test?.base_latency_mean_ns;
  const lowest = values.reduce((least, ns) => Math.min(least, ns), base || Infinity);
  const highest = values.reduce((most, ns) => Math.max(most, ns), 0);
  return {
    kind: "soak-latency",
    size: "full",
    height: 220,
    caption: `Latency over time (logarithmic): median solid, 99th percentile dashed${run.record.directions.length > 1 ? "; 1→0 paler" : ""}`,
    key: [],
    x: time,
    y: {
      range: [lowest / 1.3, highest * 1.3],
      tick: durationText,
      logarithmic: true,
    },
    margin: 20,
    points: curves
      .flatMap(({ name, kind, points }) =>
        points
          .filter((_, index) => index % step === 0)
          .map(({ sample, ns }): Point => ({
            x: sample.at_s + sample.duration_s / 2,
            y: ns,
            lines: [`${kind === "p50_ns" ? "median" : "99th percentile"} ${durationText(ns)}`, `${name} at ${sample.at_s.toFixed(2)} s`],
          })),
      )
      .sort((a, b) => a.x - b.x),
    paint: (ctx, plot) => {
      paintEvents(ctx, plot, events);
      if (base) paintLimit(ctx, plot, base, `loopback, mean ${durationText(base)}`, theme);
      for (const { at, kind, points } of curves) {
        stroke(ctx, faded(colour, at > 0 ? 0.45 : 1), kind === "p50_ns" ? 1.8 : 1.1, kind === "p50_ns" ? [] : [5, 4]);
        for (const part of unbroken(points)) {
          line(
            ctx,
            ...part.map(({ sample, ns }): [number, number] => [
              plot.valToPos(sample.at_s + sample.duration_s / 2, "x", true),
              plot.valToPos(ns, "y", true),
            ]),
          );
        }
      }
    },
  };
}

/** Parts between which nothing came back. */
function unbroken<T extends { sample: Sample }>(points: T[]): T[][] {
  const parts: T[][] = [];
  for (const point of points) {
    const part = parts[parts.length - 1];
    const before = part?.[part.length - 1]?.sample;
    const gap = before === undefined || point.sample.at_s - before.at_s > 1.5 * before.duration_s;
    if (gap || part === undefined) parts.push([point]);
    else part.push(point);
  }
  return parts;
}
