// Drawing what comes near the window, and not before: a page of hundreds of runs opens as fast as a
// page of one.

/** How far from the window counts as near. */
const AROUND = "800px 0px";

const waiting = new Map<Element, () => void>();
const observer = new IntersectionObserver(
  (entries) => entries.filter((entry) => entry.isIntersecting).forEach((entry) => reach(entry.target)),
  { rootMargin: AROUND },
);

/** Calls `draw` once: when `place` comes near the window, or everything is wanted. */
export function whenNear(place: Element, draw: () => void): void {
  place.classList.add("waiting");
  waiting.set(place, draw);
  observer.observe(place);
}

/** Everything is wanted now, as for printing. */
export function reachAll(): void {
  [...waiting.keys()].forEach(reach);
}

function reach(place: Element): void {
  const draw = waiting.get(place);
  waiting.delete(place);
  observer.unobserve(place);
  place.classList.remove("waiting");
  draw?.();
}
