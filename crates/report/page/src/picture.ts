// A picture with axes, painted by its owner, whose points tell their figures: to the mouse that
// comes near, and to the arrow keys when the picture has the focus.

import uPlot from "uplot";
import { horizontalAxis, verticalAxis } from "./axes";
import { exportChart, type Key } from "./exporting";
import type { Theme } from "./theme";

/** A point that tells something; the first line is its title. */
export interface Point {
  x: number;
  y: number;
  lines: string[];
}

export interface Axis {
  range: [number, number];
  tick: (value: number) => string;
  /** Where the labels stand, if not at round values. */
  splits?: (min: number, max: number) => number[];
  logarithmic?: boolean;
  /** Room for the labels of a vertical one, in pixels, if not as much as all others have. */
  width?: number;
}

export interface Plan {
  /** What it is, for style and tests. */
  kind: string;
  /** Its share of the width. */
  size: "full" | "major" | "minor" | "half";
  height: number;
  caption: string;
  /** Signs in their colours, and what they mean. */
  key: Key[];
  x: Axis;
  y: Axis;
  /** Room at the right, in pixels. */
  margin: number;
  points: Point[];
  paint: (ctx: CanvasRenderingContext2D, plot: uPlot) => void;
}

/** Powers of ten, and between them 2 and 5 where there are few. */
export function logarithmicSplits(min: number, max: number): number[] {
  const within = (steps: number[]) => {
    const splits: number[] = [];
    for (let power = Math.floor(Math.log10(min)); power <= Math.log10(max); power++) {
      splits.push(...steps.map((step) => step * 10 ** power).filter((value) => value >= min && value <= max));
    }
    return splits;
  };
  const powers = within([1]);
  return powers.length >= 2 ? powers : within([1, 2, 3, 5, 7]);
}

/** What can be resized and removed. */
export interface Picture {
  resize(): void;
  destroy(): void;
}

/** How near the mouse must be to a point, in pixels. */
const REACH = 40;

export function drawPicture(parent: HTMLElement, plan: Plan, theme: Theme): Picture {
  const figure = document.createElement("figure");
  figure.dataset["kind"] = plan.kind;
  figure.className = plan.size;
  figure.tabIndex = 0;
  const caption = captionOf(plan);
  figure.append(caption);
  parent.append(figure);

  const tooltip = document.createElement("div");
  tooltip.className = "tooltip";
  tooltip.setAttribute("role", "status");
  tooltip.hidden = true;

  let chosen: number | null = null;
  const choose = (point: number | null) => {
    if (point === chosen) return;
    chosen = point;
    showTooltip(tooltip, plot, point === null ? undefined : plan.points[point]);
    plot.redraw(false);
  };
  const plot = new uPlot(options(figure, plan, theme, () => chosen, choose), extent(plan), figure);
  figure.append(tooltip);
  exportChart(caption, plan.kind, () => plot, plan.key);
  figure.addEventListener("keydown", (event) => {
    const next = byKey(event.key, chosen, plan.points.length);
    if (next === undefined) return;
    event.preventDefault();
    choose(next);
  });
  figure.addEventListener("blur", () => choose(null));
  return {
    resize() {
      plot.setSize({ width: figure.clientWidth, height: plan.height });
    },
    destroy() {
      plot.destroy();
      figure.remove();
    },
  };
}

function captionOf(plan: Plan): HTMLElement {
  const caption = document.createElement("figcaption");
  caption.textContent = plan.caption;
  const key = document.createElement("ul");
  key.className = "key";
  for (const { sign, colour, text } of plan.key) {
    const item = document.createElement("li");
    const letter = document.createElement("b");
    letter.textContent = sign;
    letter.style.color = colour;
    item.append(letter, text);
    key.append(item);
  }
  caption.append(key);
  return caption;
}

/** Two corners: the axes begin and end there. */
function extent(plan: Plan): uPlot.AlignedData {
  return [plan.x.range, plan.y.range];
}

function options(
  figure: HTMLElement,
  plan: Plan,
  theme: Theme,
  chosen: () => number | null,
  choose: (point: number | null) => void,
): uPlot.Options {
  const scale = (axis: Axis): uPlot.Scale => ({
    time: false,
    ...(axis.logarithmic ? { distr: 3 } : {}),
    // While zoomed, the corners may be out of sight.
    range: (_, min, max) => (min !== null && max !== null && min < max ? [min, max] : axis.range),
  });
  const axis = (options: uPlot.Axis, of: Axis): uPlot.Axis => {
    const splits = of.splits ?? (of.logarithmic ? logarithmicSplits : undefined);
    return splits ? { ...options, splits: (_, __, min, max) => splits(min, max) } : options;
  };
  return {
    width: figure.clientWidth,
    height: plan.height,
    padding: [16, plan.margin, 0, 0],
    legend: { show: false },
    scales: { x: scale(plan.x), y: scale(plan.y) },
    axes: [
      axis(horizontalAxis(theme, plan.x.tick), plan.x),
      { ...axis(verticalAxis(theme, plan.y.tick, plan.y.logarithmic ?? false), plan.y), ...(plan.y.width === undefined ? {} : { size: plan.y.width }) },
    ],
    series: [{}, { show: true, paths: () => null, points: { show: false } }],
    cursor: { x: false, y: false, points: { show: false }, drag: { x: true, y: true, uni: 30 } },
    hooks: {
      draw: [
        (plot) => {
          clipped(plot, () => plan.paint(plot.ctx, plot));
          const at = chosen();
          const point = at === null ? undefined : plan.points[at];
          if (point) drawRing(plot, point, theme);
        },
      ],
      setCursor: [(plot) => choose(nearestPoint(plot, plan.points))],
    },
  };
}

/** Paints within the axes and the margin at their right. */
function clipped(plot: uPlot, paint: () => void): void {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.beginPath();
  // Signs and names may stand out a little.
  const room = 16 * uPlot.pxRatio;
  ctx.rect(bbox.left - room, bbox.top - room, ctx.canvas.width - bbox.left + room, bbox.height + 2 * room);
  ctx.clip();
  paint();
  ctx.restore();
}

/** Where a point stands on the canvas: at the edge if it is out of sight. */
export function placeOf(plot: uPlot, x: number, y: number): { x: number; y: number; outside: boolean } {
  const { left, top, width, height } = plot.bbox;
  const [across, down] = [plot.valToPos(x, "x", true), plot.valToPos(y, "y", true)];
  const inside = { x: clamp(across, left, left + width), y: clamp(down, top, top + height) };
  const apart = Math.abs(inside.x - across) + Math.abs(inside.y - down);
  return { ...inside, outside: apart > 1 };
}

function clamp(value: number, low: number, high: number): number {
  return Math.min(Math.max(value, low), high);
}

function drawRing(plot: uPlot, point: Point, theme: Theme): void {
  const { x, y } = placeOf(plot, point.x, point.y);
  plot.ctx.save();
  plot.ctx.beginPath();
  plot.ctx.setLineDash([]);
  plot.ctx.lineWidth = 1.5 * uPlot.pxRatio;
  plot.ctx.strokeStyle = theme.text;
  plot.ctx.arc(x, y, 9 * uPlot.pxRatio, 0, 2 * Math.PI);
  plot.ctx.stroke();
  plot.ctx.restore();
}

function nearestPoint(plot: uPlot, points: Point[]): number | null {
  const { left, top } = plot.cursor;
  if (left === undefined || top === undefined || left < 0) return null;
  let [best, distance] = [-1, REACH];
  points.forEach((point, at) => {
    const place = placeOf(plot, point.x, point.y);
    const [x, y] = [(place.x - plot.bbox.left) / uPlot.pxRatio, (place.y - plot.bbox.top) / uPlot.pxRatio];
    const apart = Math.hypot(x - left, y - top);
    if (apart < distance) [best, distance] = [at, apart];
  });
  return best < 0 ? null : best;
}

/** The point that a key leads to; undefined if the key means nothing here. */
function byKey(key: string, chosen: number | null, count: number): number | null | undefined {
  if (count === 0) return undefined;
  switch (key) {
    case "ArrowRight":
      return chosen === null ? 0 : Math.min(chosen + 1, count - 1);
    case "ArrowLeft":
      return chosen === null ? count - 1 : Math.max(chosen - 1, 0);
    case "Home":
      return 0;
    case "End":
      return count - 1;
    case "Escape":
      return null;
    default:
      return undefined;
  }
}

/** Puts the tooltip beside the point, on the side that has more room. */
function showTooltip(tooltip: HTMLElement, plot: uPlot, point: Point | undefined): void {
  tooltip.hidden = point === undefined;
  if (point === undefined) return;
  tooltip.replaceChildren(
    ...point.lines.map((line, at) => {
      const element = document.createElement(at === 0 ? "b" : "div");
      element.textContent = line;
      return element;
    }),
  );
  const place = placeOf(plot, point.x, point.y);
  const [x, y] = [place.x / uPlot.pxRatio, place.y / uPlot.pxRatio + plot.root.offsetTop];
  const right = x > plot.width / 2;
  tooltip.style.left = right ? "" : `${x + 14}px`;
  tooltip.style.right = right ? `${plot.width - x + 14}px` : "";
  tooltip.style.top = `${y - 8}px`;
}
