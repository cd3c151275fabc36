// Lines and letters on a canvas, in places of the canvas.

import uPlot from "uplot";
import { FONT } from "./axes";
import type { Shape, Theme } from "./theme";

export function line(ctx: CanvasRenderingContext2D, ...places: [number, number][]): void {
  ctx.beginPath();
  places.forEach(([x, y], at) => (at === 0 ? ctx.moveTo(x, y) : ctx.lineTo(x, y)));
  ctx.stroke();
}

/** A stroke `width` of the page's pixels wide; `dash` in the same. */
export function stroke(ctx: CanvasRenderingContext2D, colour: string, width: number, dash: number[] = []): void {
  ctx.strokeStyle = colour;
  ctx.lineWidth = width * uPlot.pxRatio;
  ctx.setLineDash(dash.map((length) => length * uPlot.pxRatio));
}

/** The page's letters at the canvas's scale. */
export function scaledFont(weight = ""): string {
  return weight + FONT.replace("11px", `${11 * uPlot.pxRatio}px`);
}

export function dot(ctx: CanvasRenderingContext2D, x: number, y: number, colour: string, filled = true): void {
  ctx.beginPath();
  ctx.setLineDash([]);
  ctx.arc(x, y, 3.2 * uPlot.pxRatio, 0, 2 * Math.PI);
  ctx.strokeStyle = ctx.fillStyle = colour;
  ctx.lineWidth = 1.6 * uPlot.pxRatio;
  if (filled) ctx.fill();
  else ctx.stroke();
}

/** The sign of a device: a dot, or the hollow shape that tells it from others of its colour. */
export function deviceSign(ctx: CanvasRenderingContext2D, x: number, y: number, colour: string, shape: Shape | null, theme: Theme): void {
  if (shape === null) return dot(ctx, x, y, colour);
  const r = 4.6 * uPlot.pxRatio;
  ctx.beginPath();
  ctx.setLineDash([]);
  switch (shape) {
    case "circle":
      ctx.arc(x, y, r * 0.9, 0, 2 * Math.PI);
      break;
    case "triangle":
      polygon(ctx, [x, y - r * 1.15], [x + r * 1.1, y + r * 0.85], [x - r * 1.1, y + r * 0.85]);
      break;
    case "square":
      polygon(ctx, [x - r * 0.85, y - r * 0.85], [x + r * 0.85, y - r * 0.85], [x + r * 0.85, y + r * 0.85], [x - r * 0.85, y + r * 0.85]);
      break;
    case "diamond":
      polygon(ctx, [x, y - r * 1.25], [x + r * 1.1, y], [x, y + r * 1.25], [x - r * 1.1, y]);
      break;
  }
  ctx.fillStyle = theme.background;
  ctx.fill();
  ctx.strokeStyle = colour;
  ctx.lineWidth = 1.6 * uPlot.pxRatio;
  ctx.stroke();
}

/** Adds the outline through `corners` to the path. */
export function polygon(ctx: CanvasRenderingContext2D, ...corners: [number, number][]): void {
  corners.forEach(([x, y], at) => (at === 0 ? ctx.moveTo(x, y) : ctx.lineTo(x, y)));
  ctx.closePath();
}

/** A named line across the axes at `value`, if that is within them. */
export function paintLimit(ctx: CanvasRenderingContext2D, plot: uPlot, value: number, name: string, theme: Theme): void {
  const { left, top, width, height } = plot.bbox;
  const y = plot.valToPos(value, "y", true);
  if (y < top || y > top + height) return;
  stroke(ctx, theme.muted, 1.2, [8, 3, 2, 3]);
  line(ctx, [left, y], [left + width, y]);
  ctx.font = scaledFont();
  ctx.fillStyle = theme.muted;
  ctx.textAlign = "left";
  // Below the line where there is no room above it.
  const above = y - top > 16 * uPlot.pxRatio;
  ctx.textBaseline = above ? "bottom" : "top";
  ctx.fillText(name, left + 6 * uPlot.pxRatio, y + (above ? -3 : 3) * uPlot.pxRatio);
}

/** What a curve is called, in its colour. */
export interface Label {
  text: string;
  colour: string;
  /** Where the curve ends. */
  y: number;
}

/** Writes the names of curves at the right of the axes, from the lowest up, so that none covers another. */
export function nameCurves(ctx: CanvasRenderingContext2D, plot: uPlot, labels: Label[]): void {
  const { left, top, width, height } = plot.bbox;
  const row = 13 * uPlot.pxRatio;
  ctx.font = scaledFont();
  ctx.textAlign = "left";
  ctx.textBaseline = "middle";
  // Up from the bottom, and down again from the top if that ran out of room.
  const sorted = [...labels].sort((a, b) => b.y - a.y);
  let free = top + height;
  const places = sorted.map(({ y }) => {
    const place = Math.min(y, free);
    free = place - row;
    return place;
  });
  free = top + row / 2;
  for (let at = sorted.length - 1; at >= 0; at--) {
    const place = Math.max(places[at] ?? 0, free);
    free = place + row;
    ctx.fillStyle = sorted[at]?.colour ?? "";
    ctx.fillText(sorted[at]?.text ?? "", left + width + 8 * uPlot.pxRatio, place);
  }
}
