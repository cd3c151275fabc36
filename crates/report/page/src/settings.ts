// What the controls at the top say. The controls are in the page's markup; here they are read.

import type { View } from "./curves";

export interface Settings extends View {
  loss: "linear" | "log";
  /** Whether repeats are drawn beside the runs that stand for them. */
  repeats: boolean;
  hiddenDevices: ReadonlySet<number>;
  /** Whether the two directions of a run are one curve. */
  addedUp: boolean;
  hiddenDirections: ReadonlySet<number>;
}

/** Reads the controls; calls `changed` with what they say from then on whenever they change. */
export function bindControls(form: HTMLFormElement, changed: (now: Settings, before: Settings) => void): Settings {
  let settings = read(form);
  form.addEventListener("change", () => {
    const before = settings;
    settings = read(form);
    changed(settings, before);
  });
  form.hidden = false;
  return settings;
}

function read(form: HTMLFormElement): Settings {
  const data = new FormData(form);
  const unchecked = (name: string) =>
    [...form.querySelectorAll<HTMLInputElement>(`input[name="${name}"]`)]
      .filter((box) => !box.checked)
      .map((box) => Number(box.value));
  return {
    unit: data.get("unit") as Settings["unit"],
    // A page without ramps has no controls for these.
    against: (data.get("against") ?? "time") as Settings["against"],
    loss: (data.get("loss") ?? "linear") as Settings["loss"],
    repeats: data.has("repeats"),
    hiddenDevices: new Set(unchecked("device")),
    addedUp: data.get("direction") === "sum",
    hiddenDirections: new Set(hiddenBy(data.get("direction"))),
  };
}

/** The direction that is not shown where only the other one is. */
function hiddenBy(shown: FormDataEntryValue | null): number[] {
  return shown === "0" ? [1] : shown === "1" ? [0] : [];
}

/** Whether two settings differ only in what they hide. */
export function sameView(a: Settings, b: Settings): boolean {
  return a.unit === b.unit && a.against === b.against && a.loss === b.loss && a.addedUp === b.addedUp;
}
