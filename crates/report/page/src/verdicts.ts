// How verdicts on trials look: by colour and by shape.

import type { Verdict } from "./data";
import { polygon } from "./paint";
import type { Theme } from "./theme";

interface Look {
  text: string;
  /** The shape as a letter, for keys. */
  sign: string;
  colour: (theme: Theme) => string;
  /** Adds the shape of radius `r` around (x, y) to the path. */
  trace: (path: CanvasRenderingContext2D, x: number, y: number, r: number) => void;
  filled: boolean;
}

/**
 * A trial lost little, or much, or it is unclear which: more than the goal forgives, but no more than
 * the machine may account for beyond that. Records call the last `disturbed`.
 */
export const VERDICTS: Record<Verdict, Look> = {
  "low-loss": {
    text: "low loss",
    sign: "●",
    colour: (theme) => theme.passed,
    trace: (path, x, y, r) => path.arc(x, y, r * 0.85, 0, 2 * Math.PI),
    filled: true,
  },
  "high-loss": {
    text: "high loss",
    sign: "✕",
    colour: (theme) => theme.failed,
    trace: (path, x, y, r) => {
      path.moveTo(x - r, y - r);
      path.lineTo(x + r, y + r);
      path.moveTo(x - r, y + r);
      path.lineTo(x + r, y - r);
    },
    filled: false,
  },
  disturbed: {
    text: "unclear: lost more, but the machine may be why",
    sign: "◇",
    colour: (theme) => theme.unproved,
    trace: (path, x, y, r) => polygon(path, [x, y - r * 1.3], [x + r * 1.3, y], [x, y + r * 1.3], [x - r * 1.3, y]),
    filled: false,
  },
  "tester-fell-short": {
    text: "the tester fell short: proves nothing",
    sign: "△",
    colour: (theme) => theme.unproved,
    trace: (path, x, y, r) => polygon(path, [x, y - r * 1.2], [x + r * 1.2, y + r], [x - r * 1.2, y + r]),
    filled: false,
  },
};

/** A trial during which the machine did more than usual, whatever the verdict. */
export const DISTURBED = { sign: "◌", text: "ringed: disturbed", colour: (theme: Theme) => theme.unproved };

/** A ring around the sign of a disturbed trial. */
export function drawDisturbed(ctx: CanvasRenderingContext2D, x: number, y: number, theme: Theme, scale: number): void {
  ctx.beginPath();
  ctx.setLineDash([1.5 * scale, 1.5 * scale]);
  ctx.arc(x, y, 7.5 * scale, 0, 2 * Math.PI);
  ctx.strokeStyle = DISTURBED.colour(theme);
  ctx.lineWidth = scale;
  ctx.stroke();
  ctx.setLineDash([]);
}

/** Draws the sign of a verdict at a place of the canvas; `scale` is its pixels in one of the page. */
export function drawVerdict(
  ctx: CanvasRenderingContext2D,
  verdict: Verdict,
  x: number,
  y: number,
  theme: Theme,
  scale: number,
): void {
  const look = VERDICTS[verdict];
  ctx.beginPath();
  ctx.setLineDash([]);
  look.trace(ctx, x, y, 4 * scale);
  ctx.strokeStyle = ctx.fillStyle = look.colour(theme);
  ctx.lineWidth = 1.8 * scale;
  if (look.filled) {
    ctx.fill();
  } else {
    ctx.stroke();
  }
}
