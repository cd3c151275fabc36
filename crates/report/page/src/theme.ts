// Colours as the style sheet defines them, for the canvases.

export interface Theme {
  text: string;
  muted: string;
  line: string;
  background: string;
  accent: string;
  /** What passed, what did not, and what proves nothing. */
  passed: string;
  failed: string;
  unproved: string;
  devices: string[];
  /** The letters of {@link SHAPES}. */
  letters: string[];
}

/** As many as the style sheet has `--device-N`. */
const DEVICE_COLOURS = 7;

/** What tells devices of one colour apart; the style sheet has a letter `--shape-N` for each, from 1 on. */
export const SHAPES = ["circle", "triangle", "square", "diamond"] as const;
export type Shape = (typeof SHAPES)[number];

export function theme(): Theme {
  const style = getComputedStyle(document.documentElement);
  const colour = (name: string) => style.getPropertyValue(name).trim();
  return {
    text: colour("--text"),
    muted: colour("--muted"),
    line: colour("--line"),
    background: colour("--background"),
    accent: colour("--accent"),
    passed: colour("--passed"),
    failed: colour("--failed"),
    unproved: colour("--unproved"),
    devices: Array.from({ length: DEVICE_COLOURS }, (_, at) => colour(`--device-${at}`)),
    letters: SHAPES.map((_, at) => colour(`--shape-${at + 1}`).replace(/["']/g, "")),
  };
}

export function deviceColour(theme: Theme, device: number): string {
  return theme.devices[device % DEVICE_COLOURS] ?? theme.text;
}

/** The shape of a device beyond the colours; the first devices have none. */
export function deviceShape(device: number): Shape | null {
  return SHAPES[shapeNumber(device) - 1] ?? null;
}

/** Its shape as a letter. */
export function deviceLetter(theme: Theme, device: number): string {
  return theme.letters[shapeNumber(device) - 1] ?? "";
}

function shapeNumber(device: number): number {
  return Math.floor(device / DEVICE_COLOURS) % (SHAPES.length + 1);
}

/** Gives `element` the colour and the shape of a device. */
export function dress(element: HTMLElement, device: number): void {
  element.style.setProperty("--colour", `var(--device-${device % DEVICE_COLOURS})`);
  const shape = shapeNumber(device);
  if (shape > 0) element.style.setProperty("--shape", `var(--shape-${shape})`);
}

/** `#rrggbb` with an opacity from 0 to 1. */
export function faded(colour: string, opacity: number): string {
  return colour + Math.round(opacity * 255).toString(16).padStart(2, "0");
}
