// An axis for loss ratios that has room for zero: 0, then a decade each step.

import type { Axis } from "./picture";
import { shareText } from "./units";

/** A loss on the axis: 0 at 0, 1 at `smallest` (a power of ten), 2 at ten times as much. */
export function lossPlace(loss: number, smallest: number): number {
  return loss <= 0 ? 0 : Math.max(0.5, 1 + Math.log10(loss / smallest));
}

/** The power of ten at or below the least loss that is not zero; at most 0.001. */
export function smallestLoss(losses: number[]): number {
  const least = losses.reduce((least, loss) => (loss > 0 && loss < least ? loss : least), 1e-3);
  return 10 ** Math.floor(Math.log10(least) + 1e-9);
}

/** The axis from no loss to all. */
export function lossAxis(smallest: number): Axis {
  return {
    range: [-0.25, lossPlace(1, smallest)],
    tick: (place) => (place === 0 ? "0" : shareText(smallest * 10 ** (place - 1))),
    splits: (min, max) => decades(min, max),
  };
}

function decades(min: number, max: number): number[] {
  const all: number[] = [];
  for (let place = Math.max(0, Math.ceil(min)); place <= max + 1e-9; place++) all.push(place);
  return all;
}
