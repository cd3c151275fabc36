// What is drawn over the curves: limits, stalls and thresholds, and the shapes of devices that share a
// colour with others.

import uPlot from "uplot";
import { FONT } from "./axes";
import type { Channel } from "./channel";
import type { Run } from "./data";
import { deviceSign, paintLimit } from "./paint";
import { deviceColour, deviceShape, faded, type Theme } from "./theme";

/** How far the shapes on a curve are apart, in pixels. */
const APART = 70;

export interface Marks {
  /** With a triangle or a word at the top. */
  named: boolean;
  /** With a line at the loss above which a sample is lossy. */
  threshold: boolean;
  /** With a line at what the tester reaches without a device, on this axis. */
  alone: (run: Run) => { value: number; name: string } | null;
}

/** Limits and stalls as vertical lines, the loss threshold as a horizontal one. */
export function drawMarks(plot: uPlot, channels: Channel[], theme: Theme, marks: Marks): void {
  const { ctx, bbox } = plot;
  const scale = uPlot.pxRatio;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top - 8 * scale, bbox.width, bbox.height + 8 * scale);
  ctx.clip();
  for (const channel of channels.filter((channel) => channel.shown)) {
    const colour = deviceColour(theme, channel.run.device);
    if (channel.limit !== null) {
      const x = plot.valToPos(channel.limit, "x", true);
      vertical(ctx, x, bbox, faded(colour, 0.6), [2 * scale, 3 * scale], scale);
      if (marks.named) triangle(ctx, x, bbox.top, colour, 5 * scale);
    }
    if (channel.stalled !== null) {
      const x = plot.valToPos(channel.stalled, "x", true);
      vertical(ctx, x, bbox, colour, [], scale);
      if (marks.named) label(ctx, "stalled", x + 5 * scale, bbox.top + 12 * scale, colour, scale);
    }
  }
  if (marks.threshold) {
    for (const threshold of new Set(channels.map((channel) => channel.run.record.strategy.loss_threshold))) {
      const y = plot.valToPos(threshold, "y", true);
      horizontal(ctx, y, bbox, faded(theme.text, 0.35), scale);
    }
  }
  const alone = new Map(
    channels.flatMap((channel) => {
      const limit = marks.alone(channel.run);
      return limit === null ? [] : [[limit.value, limit.name] as const];
    }),
  );
  // Runs of one tester have one limit; of many testers the lines would only confuse.
  if (alone.size === 1) alone.forEach((name, value) => paintLimit(ctx, plot, value, name, theme));
  ctx.restore();
}

/** The shapes of devices along their curves; `owners` has the channel of each series, or null of those without. */
export function drawShapes(plot: uPlot, owners: (Channel | null)[], theme: Theme): void {
  const { left, width } = plot.bbox;
  owners.forEach((channel, at) => {
    const shape = channel ? deviceShape(channel.run.device) : null;
    if (!channel || shape === null || !channel.shown) return;
    const { device } = channel.run;
    // Where curves coincide the shapes of both are seen.
    let free = left + ((device * 23) % APART) * uPlot.pxRatio;
    (plot.data[at + 1] ?? []).forEach((value, index) => {
      const across = plot.valToPos(plot.data[0][index] ?? 0, "x", true);
      if (value === null || value === undefined || across < free || across > left + width) return;
      const down = plot.valToPos(value, "y", true);
      if (Number.isFinite(down)) deviceSign(plot.ctx, across, down, deviceColour(theme, device), shape, theme);
      free = across + APART * uPlot.pxRatio;
    });
  });
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
