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
  const frame = document.createElement("iframe");
  frame.setAttribute("sandbox", "allow-scripts");
  frame.title = element.querySelector("summary")?.textContent ?? "flame graph";
  const [, width, height] = /viewBox="0 0 ([\d.]+) ([\d.]+)"/.exec(svg) ?? [];
  if (width && height) frame.style.aspectRatio = `${width} / ${height}`;
  // As a document of its own: the script asks the drawing how wide it is. It also keeps what is chosen in
  // its address, which a frame without an origin may not change.
  const drawing = svg.replace(/<svg[^>]*>/, (start) => `${start}<script>history.replaceState = () => {};</script>`);
  frame.setAttribute("src", URL.createObjectURL(new Blob([drawing], { type: "image/svg+xml" })));
  return frame;
}
