// Pictures of a waterfall: what a frame costs a core at each step from memory to the port, and how many frames so many
// cores build in each size.

import uPlot from "uplot";
import type { BuiltFrames, Run } from "./data";
import { dot, line, scaledFont, stroke } from "./paint";
import type { Plan, Point } from "./picture";
import { deviceColour, faded, type Theme } from "./theme";
import { rateText, rateTick } from "./units";

const HEIGHT = 300;
const DASHES: number[][] = [[], [6, 4], [2, 3], [10, 3, 2, 3]];

export function waterfallPlans(run: Run, theme: Theme): Plan[] {
  const steps = run.record.generator?.waterfall ?? [];
  const built = run.record.generator?.built ?? [];
  if (steps.length === 0) return [];
  const size = built.length > 0 ? "half" : "full";
  return [costs(run, steps, size, theme), ...(built.length > 0 ? [bySize(built, theme)] : [])];
}

function costs(run: Run, steps: { name: string; pps: number }[], size: Plan["size"], theme: Theme): Plan {
  const colour = deviceColour(theme, run.device);
  const bars = steps.map(({ name, pps }, at) => ({ name, pps, at: at + 1, ns: 1e9 / pps }));
  const building = bars.find(({ name }) => name === "memory")?.ns ?? 0;
  return {
    kind: "waterfall",
    size,
    height: HEIGHT,
    caption: "Time that one core needs for a frame of 64 bytes (ns); paler: building the frame",
    key: [],
    x: { range: [0.4, bars.length + 0.6], tick: (value) => bars[value - 1]?.name ?? "", splits: () => bars.map(({ at }) => at) },
    y: { range: [0, Math.max(...bars.map(({ ns }) => ns)) * 1.12], tick: (value) => `${value} ns` },
    margin: 24,
    points: bars.map(
      ({ name, pps, at, ns }): Point => ({
        x: at,
        y: ns,
        lines: [`${name}: ${ns.toFixed(1)} ns per frame`, rateText(pps, "pps"), ...(name === "memory" ? [] : [`${(ns - building).toFixed(1)} ns more than building it`])],
      }),
    ),
    paint: (ctx, plot) => {
      ctx.font = scaledFont();
      ctx.textAlign = "center";
      ctx.textBaseline = "bottom";
      const floor = plot.valToPos(0, "y", true);
      for (const { at, ns } of bars) {
        const [left, right] = [plot.valToPos(at - 0.32, "x", true), plot.valToPos(at + 0.32, "x", true)];
        const top = plot.valToPos(ns, "y", true);
        const split = plot.valToPos(Math.min(building, ns), "y", true);
        ctx.fillStyle = colour;
        ctx.fillRect(left, top, right - left, floor - top);
        ctx.fillStyle = faded(theme.background, 0.55);
        ctx.fillRect(left, split, right - left, floor - split);
        ctx.fillStyle = theme.text;
        ctx.fillText(`${ns.toFixed(ns < 100 ? 1 : 0)} ns`, (left + right) / 2, top - 3 * uPlot.pxRatio);
      }
    },
  };
}

/** A line for each place and number of cores. */
function bySize(built: BuiltFrames[], theme: Theme): Plan {
  const places = [...new Set(built.map(({ onto }) => onto))];
  const counts = [...new Set(built.map(({ cores }) => cores.length))].sort((a, b) => a - b);
  const coresText = (count: number) => (count === 1 ? "1 core" : `${count} cores`);
  const series = places.flatMap((onto, place) =>
    counts.map((count, at) => ({
      name: `${onto}, ${coresText(count)}`,
      colour: deviceColour(theme, place),
      dash: DASHES[at % DASHES.length] ?? [],
      frames: built.filter((frames) => frames.onto === onto && frames.cores.length === count).sort((a, b) => a.frame_size - b.frame_size),
    })),
  ).filter(({ frames }) => frames.length > 0);
  const sizes = built.map(({ frame_size }) => frame_size);
  return {
    kind: "built",
    size: "half",
    height: HEIGHT,
    caption: "Frames built and not sent, packets/s of all cores together, against frame size (logarithmic)",
    key: series.map(({ name, colour, dash }) => ({ sign: dash.length > 0 ? "┅" : "━", colour, text: name })),
    x: { range: [Math.min(...sizes) / 1.1, Math.max(...sizes) * 1.1], tick: (value) => `${value} B`, splits: () => [...new Set(sizes)], logarithmic: true },
    y: { range: [0, Math.max(...built.map(({ pps }) => pps)) * 1.08], tick: (value) => rateTick(value, "pps") },
    margin: 24,
    points: series.flatMap(({ name, frames }) =>
      frames.map(({ frame_size, pps }): Point => ({ x: frame_size, y: pps, lines: [`${rateText(pps, "pps")} at ${Math.round(frame_size)} bytes`, name] })),
    ),
    paint: (ctx, plot) => {
      for (const { colour, dash, frames } of series) {
        const at = frames.map(({ frame_size, pps }): [number, number] => [plot.valToPos(frame_size, "x", true), plot.valToPos(pps, "y", true)]);
        stroke(ctx, colour, 1.6, dash);
        line(ctx, ...at);
        at.forEach(([x, y]) => dot(ctx, x, y, colour));
      }
    },
  };
}
