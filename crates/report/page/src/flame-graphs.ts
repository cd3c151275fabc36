// Flame graphs: each is shown in a frame of its own when it is opened. Its script runs there without the
// page's origin, so that it reaches neither the page nor anything else.

export function bindFlameGraphs(): void {
  for (const element of document.querySelectorAll<HTMLDetailsElement>("details.flame-graph")) {
    element.addEventListener("toggle", () => {
      const place = element.querySelector<HTMLElement>(".frame");
      if (element.open && place && place.childElementCount === 0) place.append(frame(element));
    });
  }
}

function frame(element: HTMLElement): HTMLIFrameElement {
  const svg = JSON.parse(element.querySelector("script")?.textContent ?? '""') as string;
  // What stands before the drawing belongs to a file of its own.
  const drawing = svg.slice(Math.max(0, svg.indexOf("<svg")));
  const frame = document.createElement("iframe");
  frame.setAttribute("sandbox", "allow-scripts");
  frame.title = element.querySelector("summary")?.textContent ?? "flame graph";
  const [, width, height] = /viewBox="0 0 ([\d.]+) ([\d.]+)"/.exec(drawing) ?? [];
  if (width && height) frame.style.aspectRatio = `${width} / ${height}`;
  frame.srcdoc = `<!DOCTYPE html><style>body { margin: 0 } svg { width: 100%; height: auto }</style>${drawing}`;
  return frame;
}
