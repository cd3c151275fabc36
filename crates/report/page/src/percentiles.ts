// The plot of latency percentiles over a whole run: the horizontal axis counts nines.

import uPlot from "uplot";
import { horizontalAxis, verticalAxis } from "./axes";
import type { Channel } from "./channel";
import { percentiles } from "./curves";
import { drawShapes } from "./marks";
import { exportChart, type Key } from "./exporting";
import { deviceColour, faded, type Theme } from "./theme";
import { durationText } from "./units";
import type { Stack } from "./charts";

const HEIGHT = 250;
/** Rarer than one frame in 100,000 is not shown. */
const MOST_NINES = 5;

export function drawPercentiles(parent: HTMLElement, channels: Channel[], theme: Theme, keys: Key[]): Stack | null {
  const owners = channels.filter((channel) => !channel.run.repeat && verdict(channel).latency_ns.length > 0);
  if (owners.length === 0) return null;
  const figure = document.createElement("figure");
  figure.dataset["kind"] = "percentiles";
  const caption = document.createElement("figcaption");
  caption.textContent = "Latency percentiles of the whole run";
  figure.append(caption);
  parent.append(figure);

  const tables = owners.map((channel): uPlot.AlignedData => {
    const { x, y } = percentiles(verdict(channel).latency_ns);
    return [x, y];
  });
  const options: uPlot.Options = {
    width: figure.clientWidth,
    height: HEIGHT,
    padding: [10, 26, 0, 0],
    legend: { show: false },
    cursor: { show: false },
    scales: {
      x: { time: false, range: (_, __, max) => [0, Math.min(Math.max(2, max), MOST_NINES)] },
      y: { distr: 3 },
    },
    axes: [
      { ...horizontalAxis(theme, percentileText), splits: (plot, __, min, max) => nines(min, max, plot.width) },
      verticalAxis(theme, durationText, true),
    ],
    series: [{}, ...owners.map((channel) => curve(channel, theme))],
    hooks: { draw: [(plot) => drawShapes(plot, owners, theme)] },
  };
  const plot = new uPlot(options, uPlot.join(tables), figure);
  exportChart(caption, "latency-percentiles", () => plot, keys);
  return {
    showChannels() {
      owners.forEach((owner, at) => plot.setSeries(at + 1, { show: owner.shown }));
    },
    resize() {
      plot.setSize({ width: figure.clientWidth, height: HEIGHT });
    },
    destroy() {
      plot.destroy();
      figure.remove();
    },
  };
}

function verdict(channel: Channel): { latency_ns: [number, number][] } {
  return channel.run.record.directions[channel.direction] ?? { latency_ns: [] };
}

function curve(channel: Channel, theme: Theme): uPlot.Series {
  const wide = channel.direction > 0;
  return {
    stroke: faded(deviceColour(theme, channel.run.device), wide ? 0.38 : 1),
    width: wide ? 5 : 1.75,
    points: { show: false },
    show: channel.shown,
  };
}

/** Every nine, or every other where a chart of `width` has no room for all labels. */
export function nines(min: number, max: number, width: number): number[] {
  const step = width / (max - min) < 70 ? 2 : 1;
  const splits: number[] = [];
  for (let nine = Math.ceil(min); nine <= max; nine += step) splits.push(nine);
  return splits;
}

/** 0 → `0%`, 1 → `90%`, 2 → `99%`, 3 → `99.9%`. */
export function percentileText(nines: number): string {
  if (nines === 0) return "0%";
  return `${(100 - 10 ** (2 - nines)).toFixed(Math.max(0, nines - 2))}%`;
}
