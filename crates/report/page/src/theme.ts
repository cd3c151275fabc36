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
}

/** As many as the style sheet has `--device-N`. */
export const DEVICE_COLOURS = 7;

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
  };
}

export function deviceColour(theme: Theme, device: number): string {
  return theme.devices[device % DEVICE_COLOURS] ?? theme.text;
}

/** `#rrggbb` with an opacity from 0 to 1. */
export function faded(colour: string, opacity: number): string {
  return colour + Math.round(opacity * 255).toString(16).padStart(2, "0");
}
