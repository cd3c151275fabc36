// Buttons that save a chart as SVG or PNG: a drawing enters, a file leaves.

import type uPlot from "uplot";
import { element, font, recorded, set } from "./recording";
import { theme } from "./theme";

/** How many pixels of a PNG stand for one of the page. */
const SCALE = 2;
/** What of an element's look its style sheet may set. */
const LOOKS = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "font-family", "font-size", "font-weight", "text-anchor"];
/** Room around a chart and above it, for its title. */
const MARGIN = 16;
const TITLE = 22;
/** How wide a letter of the key is at most in the mean. */
const LETTER = 7.4;

/** What a sign or a colour stands for. */
export interface Key {
  sign: string;
  colour: string;
  text: string;
}

/** Adds the buttons to the caption of a chart that uPlot draws; the file has `keys` below its title. */
export function exportChart(caption: HTMLElement, name: string, plot: () => uPlot, keys: Key[]): void {
  // Without the key, which the caption may hold.
  const title = () => caption.firstChild?.textContent ?? name;
  caption.append(tools(name, async () => framed(await recorded(plot()), title(), keys)));
}

/** Adds the buttons to each drawing that is in the page's markup. */
export function bindDrawings(): void {
  for (const figure of document.querySelectorAll<HTMLElement>("figure.drawing")) {
    const caption = figure.querySelector("figcaption");
    if (!caption) continue;
    const title = caption.textContent ?? "";
    caption.append(
      tools(figure.dataset["name"] ?? "drawing", () => {
        // The one that the style sheet shows: there may be another for phones.
        const shown = [...figure.querySelectorAll<SVGSVGElement>(":scope > svg")].find((svg) => getComputedStyle(svg).display !== "none");
        if (!shown) throw new Error("the figure has no drawing");
        return Promise.resolve(framed(styled(shown), title, []));
      }),
    );
  }
}

function tools(name: string, draw: () => Promise<SVGSVGElement>): HTMLElement {
  const all = document.createElement("span");
  all.className = "tools";
  all.append(
    button("SVG", async () => save(`${name}.svg`, blobOf(await draw()))),
    button("PNG", async () => save(`${name}.png`, await png(await draw()))),
  );
  return all;
}

function button(text: string, act: () => Promise<void>): HTMLButtonElement {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = text;
  button.title = `Save this chart as ${text}`;
  button.addEventListener("click", () => void act());
  return button;
}

/** A copy of `svg` that looks the same without the page's style sheet. */
function styled(svg: SVGSVGElement): SVGSVGElement {
  const copy = svg.cloneNode(true) as SVGSVGElement;
  const originals = [svg, ...svg.querySelectorAll("*")];
  [copy, ...copy.querySelectorAll("*")].forEach((element, at) => {
    const style = getComputedStyle(originals[at] ?? svg);
    for (const name of LOOKS) element.setAttribute(name, plainColour(style.getPropertyValue(name)));
    element.removeAttribute("class");
    element.removeAttribute("style");
    element.removeAttribute("href");
  });
  const [, , width, height] = (svg.getAttribute("viewBox") ?? "").split(" ");
  set(copy, { width: width ?? "", height: height ?? "" });
  return copy;
}

/** A mixed colour in the notation that every viewer of SVG knows. */
function plainColour(value: string): string {
  const parts = /^color\(srgb ([\d.e-]+) ([\d.e-]+) ([\d.e-]+)(?: \/ ([\d.e-]+))?\)$/.exec(value);
  if (!parts) return value;
  const [red, green, blue] = parts.slice(1, 4).map((part) => Math.round(Number(part) * 255));
  return `rgba(${red}, ${green}, ${blue}, ${parts[4] ?? 1})`;
}

/** `inner` on the page's background, below `title` and what its signs stand for. */
function framed(inner: SVGSVGElement, title: string, keys: Key[]): SVGSVGElement {
  const { background, text } = theme();
  const [width, height] = [Number(inner.getAttribute("width")), Number(inner.getAttribute("height"))];
  const outer = element("svg");
  const legend = legendOf(keys, width, text);
  const top = MARGIN + TITLE * (1 + legend.rows);
  const size = { width: width + 2 * MARGIN, height: height + top + MARGIN };
  set(outer, { ...size, viewBox: `0 0 ${size.width} ${size.height}` });
  const paper = element("rect");
  set(paper, { ...size, fill: background });
  const heading = element("text");
  set(heading, { x: MARGIN, y: MARGIN + 12, fill: text, ...font("600 13px system-ui, sans-serif") });
  heading.textContent = title;
  set(inner, { x: MARGIN, y: top });
  outer.append(paper, heading, ...legend.texts, inner);
  return outer;
}

/** Signs and what they mean, in as many rows as they need. */
function legendOf(keys: Key[], width: number, text: string): { rows: number; texts: SVGElement[] } {
  let [x, rows] = [0, keys.length > 0 ? 1 : 0];
  const texts = keys.map((key) => {
    const room = 24 + key.text.length * LETTER;
    if (x > 0 && x + room > width) [x, rows] = [0, rows + 1];
    const entry = element("text");
    set(entry, { x: MARGIN + x, y: MARGIN + 10 + TITLE * rows, ...font("12px system-ui, sans-serif") });
    const [sign, meaning] = [element("tspan"), element("tspan")];
    set(sign, { fill: key.colour });
    sign.textContent = key.sign;
    set(meaning, { fill: text });
    meaning.textContent = ` ${key.text}`;
    entry.append(sign, meaning);
    x += room;
    return entry;
  });
  return { rows, texts };
}

function blobOf(svg: SVGSVGElement): Blob {
  return new Blob([new XMLSerializer().serializeToString(svg)], { type: "image/svg+xml" });
}

async function png(svg: SVGSVGElement): Promise<Blob> {
  const address = URL.createObjectURL(blobOf(svg));
  try {
    const image = new Image();
    const loaded = new Promise((done, fail) => {
      image.addEventListener("load", done);
      image.addEventListener("error", () => fail(new Error("the browser cannot draw the chart as a picture")));
    });
    image.setAttribute("src", address);
    await loaded;
    const canvas = document.createElement("canvas");
    canvas.width = Number(svg.getAttribute("width")) * SCALE;
    canvas.height = Number(svg.getAttribute("height")) * SCALE;
    canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
    const blob = await new Promise<Blob | null>((done) => canvas.toBlob(done, "image/png"));
    if (!blob) throw new Error("the browser cannot write the chart as PNG");
    return blob;
  } finally {
    URL.revokeObjectURL(address);
  }
}

/** Has the browser save a file. */
export function save(name: string, content: Blob): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
