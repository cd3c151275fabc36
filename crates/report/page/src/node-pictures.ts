// What a packet costs the nodes of a device's graph, over the load: the fuller the vectors, the less. Both
// axes are logarithmic, as the cost falls by as many times as the load rises.

import type { Bench, NodeLoad } from "./bench-data";
import { deviceSign, line, stroke } from "./paint";
import { logarithmicSplits, type Plan, type Point } from "./picture";
import type { Settings } from "./settings";
import { deviceColour, deviceShape, type Theme } from "./theme";
import { rateText, rateTick } from "./units";

const HEIGHT = 300;
const DASHES: number[][] = [[], [6, 4], [2, 3], [10, 3, 2, 3]];

export function nodePlans(bench: Bench, settings: Settings, theme: Theme): Plan[] {
  const series = bench.nodes
    .map(({ device, loads }, at) => ({
      device,
      dash: DASHES[at % DASHES.length] ?? [],
      loads: loads.filter((load) => !settings.hiddenDevices.has(load.device)).sort((a, b) => a.pps - b.pps),
    }))
    .filter(({ loads }) => loads.length > 1);
  const all = series.flatMap(({ loads }) => loads);
  if (all.length === 0) return [];
  return [
    {
      kind: "nodes",
      size: "full",
      height: HEIGHT,
      caption: "Clocks a packet of all forwarding nodes together against what was forwarded (both logarithmic)",
      key: series.map(({ device, dash }) => ({ sign: dash.length > 0 ? "┅" : "━", colour: theme.muted, text: device })),
      x: { range: around(all.map(({ pps }) => pps)), tick: (pps) => rateTick(pps, "pps"), logarithmic: true },
      y: {
        range: around(all.flatMap(({ low, high }) => [low, high])),
        tick: (clocks) => clocks.toLocaleString("en"),
        splits: logarithmicSplits,
        logarithmic: true,
      },
      margin: 24,
      points: all.map((load): Point => ({ x: load.pps, y: load.forwarding, lines: loadLines(load) })),
      paint: (ctx, plot) => {
        const at = (load: NodeLoad, clocks: number): [number, number] => [plot.valToPos(load.pps, "x", true), plot.valToPos(clocks, "y", true)];
        for (const { loads, dash } of series) {
          stroke(ctx, theme.muted, 1.6, dash);
          line(ctx, ...loads.map((load) => at(load, load.forwarding)));
          for (const load of loads) {
            const colour = deviceColour(theme, load.device);
            stroke(ctx, colour, 1.4);
            line(ctx, at(load, load.low), at(load, load.high));
            deviceSign(ctx, ...at(load, load.forwarding), colour, deviceShape(load.device), theme);
          }
        }
      },
    },
  ];
}

/** A range of a logarithmic axis with room at both ends. */
function around(values: number[]): [number, number] {
  return [Math.min(...values) / 1.8, Math.max(...values) * 1.8];
}

/** The load, its sum and each node. */
function loadLines({ name, pps, forwarding, nodes }: NodeLoad): string[] {
  return [
    name,
    `${rateText(pps, "pps")} forwarded, ${clocksText(forwarding)} clocks a packet`,
    ...nodes.map(({ name, clocks, per_call }) => `${name}: ${clocksText(clocks)}, ${per_call.toFixed(1)} a call`),
  ];
}

function clocksText(clocks: number): string {
  return clocks < 100 ? clocks.toFixed(1) : Math.round(clocks).toLocaleString("en");
}
