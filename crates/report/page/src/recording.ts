// A chart on a canvas as SVG: it is drawn once more, and what it draws is written down.

import type uPlot from "uplot";

type Context = CanvasRenderingContext2D;

/** The part of a path's methods that charts use, written as the `d` of an SVG path. */
class Outline {
  d = "";

  add(name: string, args: unknown[]): void {
    const [a = 0, b = 0, c = 0, e = 0, f = 0, g = 0] = args.filter((arg) => typeof arg === "number");
    if (name === "moveTo") this.d += `M${places(a, b)}`;
    else if (name === "lineTo") this.d += `${this.d === "" ? "M" : "L"}${places(a, b)}`;
    else if (name === "bezierCurveTo") this.d += `C${places(a, b, c, e, f, g)}`;
    else if (name === "rect") this.d += `M${places(a, b)}h${places(c)}v${places(e)}h${places(-c)}Z`;
    else if (name === "arc") this.arc(a, b, c, e, f);
    else if (name === "closePath") this.d += "Z";
  }

  /** An SVG arc cannot be a whole circle: it is drawn in halves. */
  private arc(x: number, y: number, r: number, from: number, until: number): void {
    const at = (angle: number) => places(x + r * Math.cos(angle), y + r * Math.sin(angle));
    const middle = (from + until) / 2;
    this.d += `${this.d === "" ? "M" : "L"}${at(from)}`;
    for (const angle of [middle, until]) this.d += `A${places(r, r)} 0 0 1 ${at(angle)}`;
  }
}

const PATH_METHODS = ["moveTo", "lineTo", "bezierCurveTo", "rect", "arc", "closePath"] as const;

function places(...values: number[]): string {
  return values.map((value) => String(Math.round(value * 100) / 100)).join(" ");
}

/** Paths that were made while a chart is drawn, and what is in them. */
const outlines = new WeakMap<Path2D, Outline>();

class RecordedPath extends Path2D {
  constructor(path?: Path2D | string) {
    if (path === undefined) super();
    else super(path);
    const outline = new Outline();
    if (path instanceof Path2D) outline.d = outlines.get(path)?.d ?? "";
    outlines.set(this, outline);
  }
}
for (const name of PATH_METHODS) {
  const original = Path2D.prototype[name] as (...args: unknown[]) => void;
  Reflect.set(RecordedPath.prototype, name, function (this: Path2D, ...args: unknown[]) {
    outlines.get(this)?.add(name, args);
    original.apply(this, args);
  });
}

/** What is drawn on `plot` when all of it is drawn again. */
export async function recorded(plot: uPlot): Promise<SVGSVGElement> {
  const { ctx } = plot;
  const recording = new Recording(ctx);
  const native = globalThis.Path2D;
  globalThis.Path2D = RecordedPath;
  try {
    // uPlot keeps the paths of series until they change.
    plot.series.forEach((series) => Reflect.set(series, "_paths", null));
    plot.redraw(false, true);
    await new Promise((done) => requestAnimationFrame(done));
  } finally {
    globalThis.Path2D = native;
    recording.stop();
  }
  return recording.svg;
}

class Recording {
  readonly svg: SVGSVGElement;
  private path = new Outline();
  /** Ids of the clips in force, one for each state that was saved. */
  private clips: (string | null)[] = [null];
  private clipCount = 0;
  private readonly replaced: string[] = [];

  constructor(private readonly ctx: Context) {
    const { width, height } = ctx.canvas;
    this.svg = element("svg");
    set(this.svg, { viewBox: `0 0 ${width} ${height}`, width: ctx.canvas.clientWidth, height: ctx.canvas.clientHeight });
    this.watch("save", () => this.clips.push(this.clip));
    this.watch("restore", () => this.clips.length > 1 && this.clips.pop());
    this.watch("clearRect", () => this.svg.replaceChildren());
    this.watch("beginPath", () => (this.path = new Outline()));
    for (const name of PATH_METHODS) this.watch(name, (...args) => this.path.add(name, args));
    this.watch("clip", (path) => this.addClip(this.outline(path)));
    this.watch("stroke", (path) => this.addStroke(this.outline(path)));
    this.watch("fill", (path) => this.addFill(this.outline(path)));
    this.watch("fillText", (text, x, y) => this.addText(String(text), Number(x), Number(y)));
    this.watch("fillRect", (...args) => {
      const outline = new Outline();
      outline.add("rect", args);
      this.addFill(outline.d);
    });
  }

  stop(): void {
    this.replaced.forEach((name) => Reflect.deleteProperty(this.ctx, name));
  }

  private watch(name: keyof Context & string, note: (...args: unknown[]) => unknown): void {
    const original = this.ctx[name] as unknown as (...args: unknown[]) => unknown;
    this.replaced.push(name);
    Reflect.set(this.ctx, name, (...args: unknown[]) => {
      note(...args);
      return original.apply(this.ctx, args);
    });
  }

  private get clip(): string | null {
    return this.clips[this.clips.length - 1] ?? null;
  }

  private outline(path: unknown): string {
    return path instanceof Path2D ? (outlines.get(path)?.d ?? "") : this.path.d;
  }

  private addClip(d: string): void {
    const id = `clip-${++this.clipCount}`;
    const clip = element("clipPath");
    set(clip, { id, ...this.within() });
    const path = element("path");
    set(path, { d, ...this.transform() });
    clip.append(path);
    this.svg.append(clip);
    this.clips[this.clips.length - 1] = id;
  }

  private addStroke(d: string): void {
    const { strokeStyle, lineWidth } = this.ctx;
    const dash = this.ctx.getLineDash().join(" ");
    this.add("path", { d, fill: "none", stroke: String(strokeStyle), "stroke-width": lineWidth, ...(dash ? { "stroke-dasharray": dash } : {}) }, d !== "");
  }

  private addFill(d: string): void {
    this.add("path", { d, fill: String(this.ctx.fillStyle) }, d !== "");
  }

  private addText(text: string, x: number, y: number): void {
    const { textAlign, textBaseline, fillStyle } = this.ctx;
    const anchor = { center: "middle", right: "end", end: "end", left: "start", start: "start" }[textAlign];
    const baseline = { top: "hanging", hanging: "hanging", middle: "central", alphabetic: "auto", ideographic: "auto", bottom: "text-after-edge" }[textBaseline];
    const attributes = { x: places(x), y: places(y), fill: String(fillStyle), ...font(this.ctx.font), "text-anchor": anchor, "dominant-baseline": baseline };
    this.add("text", attributes, text !== "").textContent = text;
  }

  private add(name: "path" | "text", attributes: Record<string, string | number>, visible: boolean): SVGElement {
    const added = element(name);
    set(added, { ...attributes, ...this.transform() });
    if (!visible) return added;
    // A clip is in places of the canvas, so it belongs to an element that is not moved.
    const group = element("g");
    set(group, this.within());
    group.append(added);
    this.svg.append(group);
    return added;
  }

  private transform(): Record<string, string> {
    const { a, b, c, d, e, f } = this.ctx.getTransform();
    return a === 1 && b === 0 && c === 0 && d === 1 && e === 0 && f === 0 ? {} : { transform: `matrix(${places(a, b, c, d, e, f)})` };
  }

  private within(): Record<string, string> {
    return this.clip === null ? {} : { "clip-path": ["url", `(#${this.clip})`].join("") };
  }
}

/** The namespace of SVG, as the browser knows it: the page holds no address. */
const NAMESPACE = document.createRange().createContextualFragment("<svg></svg>").firstElementChild?.namespaceURI ?? null;

export function element<K extends keyof SVGElementTagNameMap>(name: K): SVGElementTagNameMap[K] {
  return document.createElementNS(NAMESPACE, name) as SVGElementTagNameMap[K];
}

/** A font as a canvas names it, as attributes: the page's policy refuses styles of single elements. */
export function font(name: string): Record<string, string> {
  const [, weight, size, family] = /^(?:(\w+) )?([\d.]+px) (.*)$/.exec(name) ?? [];
  return { "font-family": family ?? name, "font-size": size ?? "12px", "font-weight": weight ?? "normal" };
}

export function set(element: Element, attributes: Record<string, string | number>): void {
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
}
