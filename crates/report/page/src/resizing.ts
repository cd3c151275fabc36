// Following the width of an element without asking for it, which would lay out the whole page.

/** Calls `changed` whenever the width of `element` is another than before. */
export function whenWidthChanges(element: Element, changed: () => void): void {
  let width: number | null = null;
  new ResizeObserver((entries) => {
    const now = entries[entries.length - 1]?.contentRect.width ?? 0;
    if (width !== null && now !== width) changed();
    width = now;
  }).observe(element);
}
