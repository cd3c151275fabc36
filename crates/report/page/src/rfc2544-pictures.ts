// Pictures of the tests of RFC 2544 at several frame sizes: rate against size with the theoretical
// line (section 26.1), and loss against load (section 26.3).

import type { Run } from "./data";
import { lossAxis, lossPlace, smallestLoss } from "./loss-axis";
import { dot, line, nameCurves, stroke } from "./paint";
import type { Plan, Point } from "./picture";
import { deviceColour, faded, type Theme } from "./theme";
import { fromPps, L1_OVERHEAD_BYTES, preciseText, rateText, rateTick, shareText, type Unit, unitName } from "./units";

const HEIGHT = 320;

export function rfc2544Plans(runs: Run[], unit: Unit, theme: Theme): Plan[] {
  const tested = runs.filter((run) => run.record.rfc2544 !== undefined);
  const rates = tested.filter((run) => run.record.rfc2544?.throughput);
  const losses = tested.filter((run) => (run.record.rfc2544?.loss ?? []).length > 0);
  const size = rates.length > 0 && losses.length > 0 ? "half" : "full";
  return [
    ...(rates.length > 0 ? [rateBySize(rates, unit, theme, size)] : []),
    ...(losses.length > 0 ? [lossByLoad(losses, theme, size)] : []),
  ];
}

function frameSize(run: Run): number {
  return run.record.profile.mean_frame_size;
}

function rateBySize(runs: Run[], unit: Unit, theme: Theme, size: Plan["size"]): Plan {
  const colour = deviceColour(theme, runs[0]?.device ?? 0);
  const rates = runs.map((run) => {
    const test = run.record.rfc2544;
    return {
      run,
      x: frameSize(run),
      theoretical: fromPps(test?.theoretical_pps ?? 0, run.record, unit),
      found: fromPps(test?.throughput?.pps ?? 0, run.record, unit),
      doubt: doubt(run),
    };
  });
  const highest = Math.max(...rates.flatMap(({ theoretical, found }) => [theoretical, found]));
  const points = rates.map(
    ({ run, x, theoretical, found, doubt }): Point => ({
      x,
      y: found,
      lines: [
        `${preciseText(found, unit)} at ${Math.round(frameSize(run))} bytes`,
        `${shareText(found / theoretical)} of the theoretical ${rateText(theoretical, unit)}`,
        ...(doubt === null ? [] : [doubt]),
      ],
    }),
  );
  const sizes = rates.map(({ x }) => x);
  const [least, most] = [Math.min(...sizes), Math.max(...sizes)];
  const room = Math.max((most - least) * 0.04, 20);
  return {
    kind: "rfc2544-rate",
    size,
    height: HEIGHT,
    caption: `Throughput against frame size, ${unitName(unit)} of each direction; hollow: in doubt`,
    key: [
      { sign: "●", colour, text: "throughput" },
      { sign: "┄", colour: theme.muted, text: "theoretical" },
    ],
    x: { range: [least - room, most + room], tick: (value) => `${value} B`, splits: (min, max) => roomy(sizes, min, max) },
    y: { range: [0, highest * 1.06], tick: (value) => rateTick(value, unit) },
    margin: 24,
    points,
    paint: (ctx, plot) => {
      const place = (x: number, y: number): [number, number] => [plot.valToPos(x, "x", true), plot.valToPos(y, "y", true)];
      stroke(ctx, theme.muted, 1.4, [5, 4]);
      const lineRate = runs[0]?.record.line_rate_bps ?? 0;
      line(ctx, ...between(least, most).map((x) => place(x, theoreticalAt(x, lineRate, unit))));
      stroke(ctx, colour, 1.8);
      line(ctx, ...points.map(({ x, y }) => place(x, y)));
      rates.forEach(({ x, theoretical }) => dot(ctx, ...place(x, theoretical), theme.muted, false));
      rates.forEach(({ x, found, doubt }) => dot(ctx, ...place(x, found), colour, doubt === null));
    },
  };
}

/** Why a throughput may not be the device's limit, if so. */
function doubt(run: Run): string | null {
  const found = run.record.rfc2544?.throughput;
  if (found?.limited_by === "tester") return "limited by the tester";
  const irregular = found?.irregular;
  return irregular === undefined || irregular === "max-load-is-lower-bound" ? null : `irregular: ${irregular}`;
}

/** What the line carries of frames of `size` bytes. */
function theoreticalAt(size: number, lineRate: number, unit: Unit): number {
  switch (unit) {
    case "pps":
      return lineRate / ((size + L1_OVERHEAD_BYTES) * 8);
    case "l1":
      return lineRate;
    case "l2":
      return (lineRate * size) / (size + L1_OVERHEAD_BYTES);
    case "percent":
      return 100;
  }
}

/** Sizes close enough for a smooth curve. */
function between(least: number, most: number): number[] {
  return Array.from({ length: 201 }, (_, at) => least + ((most - least) * at) / 200);
}

/** The sizes that have room for a label each. */
function roomy(sizes: number[], min: number, max: number): number[] {
  const apart = (max - min) / 9;
  return sizes
    .filter((size) => size >= min && size <= max)
    .reduce((chosen: number[], size) => {
      const last = chosen[chosen.length - 1];
      return last !== undefined && size - last < apart ? chosen : [...chosen, size];
    }, []);
}

/** A curve for each size, as section 26.3 asks for. */
function lossByLoad(runs: Run[], theme: Theme, size: Plan["size"]): Plan {
  const smallest = smallestLoss(runs.flatMap((run) => (run.record.rfc2544?.loss ?? []).map((point) => point.loss_ratio)));
  const curves = runs.map((run, at) => ({
    size: Math.round(frameSize(run)),
    colour: deviceColour(theme, at),
    dash: at < theme.devices.length ? [] : [6, 3],
    points: [...(run.record.rfc2544?.loss ?? [])].reverse(),
  }));
  const points = curves.flatMap((curve) =>
    curve.points.map(
      (point): Point => ({
        x: point.load_percent,
        y: lossPlace(point.loss_ratio, smallest),
        lines: [
          `${shareText(point.loss_ratio)} lost at ${point.load_percent}% load`,
          `${curve.size} bytes, ${preciseText(point.offered_pps, "pps")} offered`,
          ...(point.tester_limited ? ["the tester could not send more"] : []),
          ...(point.disturbed ? [`disturbed: ${point.disturbed}`] : []),
        ],
      }),
    ),
  );
  const least = Math.min(...points.map(({ x }) => x));
  return {
    kind: "rfc2544-loss",
    size,
    height: HEIGHT,
    caption: "Loss against load in percent of the theoretical rate; hollow: limited by the tester or disturbed",
    key: curves.map(({ size, colour, dash }) => ({ sign: dash.length > 0 ? "┅" : "━", colour, text: `${size} B` })),
    x: { range: [Math.max(0, least - 5), 103], tick: (value) => `${value}%` },
    y: lossAxis(smallest),
    margin: 60,
    points,
    paint: (ctx, plot) => {
      // The smallest frames, which lose most, on top.
      const labels = [...curves].reverse().map(({ size, points, colour, dash }) => {
        const places = points.map((point): [number, number] => [
          plot.valToPos(point.load_percent, "x", true),
          plot.valToPos(lossPlace(point.loss_ratio, smallest), "y", true),
        ]);
        stroke(ctx, faded(colour, 0.85), 1.6, dash);
        line(ctx, ...places);
        places.forEach((place, at) => {
          const point = points[at];
          dot(ctx, ...place, colour, !point?.tester_limited && !point?.disturbed);
        });
        return { text: `${size} B`, colour, y: places[places.length - 1]?.[1] ?? 0 };
      });
      nameCurves(ctx, plot, labels);
    },
  };
}
