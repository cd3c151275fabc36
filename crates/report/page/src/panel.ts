// The panel of a run, or of several of RFC 2544: its tables are in the markup, its pictures are
// drawn here when it is open.

import type { Page, Run } from "./data";
import { gaugePlans } from "./gauge-pictures";
import { latencyPlans } from "./latency-pictures";
import { whenNear } from "./nearby";
import { drawPicture, type Picture, type Plan } from "./picture";
import { rfc2544Plans } from "./rfc2544-pictures";
import { searchPlans } from "./search-pictures";
import { soakPlans } from "./soak-pictures";
import { stallPlans } from "./stall-pictures";
import { whenWidthChanges } from "./resizing";
import type { Settings } from "./settings";
import { waterfallPlans } from "./waterfall-pictures";
import { type Theme, theme } from "./theme";

export class Panel {
  private readonly runs: Run[];
  private readonly place: HTMLElement;
  private pictures: Picture[] = [];
  private reached = false;

  constructor(
    private readonly element: HTMLDetailsElement,
    page: Page,
    private settings: Settings,
  ) {
    const anchors = (element.dataset["runs"] ?? "").split(" ");
    this.runs = anchors.flatMap((anchor) => page.runs.filter((run) => run.anchor === anchor));
    const place = element.querySelector<HTMLElement>(".pictures");
    if (!place) throw new Error(`the panel of ${anchors} has no place for pictures`);
    this.place = place;
    const choice = element.querySelector<HTMLElement>(".choice");
    if (choice) {
      choice.hidden = false;
      choice.addEventListener("change", () => this.draw(this.settings));
    }
    element.addEventListener("toggle", () => this.draw(this.settings));
    this.show(settings);
    whenNear(place, () => {
      this.reached = true;
      this.draw(this.settings);
    });
    whenWidthChanges(element, () => this.pictures.forEach((picture) => picture.resize()));
  }

  /** Draws everything anew. */
  draw(settings: Settings): void {
    this.show(settings);
    this.pictures.forEach((picture) => picture.destroy());
    this.pictures = [];
    this.place.replaceChildren();
    if (!this.reached || !this.element.open || this.element.hidden) return;
    const choice = this.element.querySelector<HTMLInputElement>(".choice input:checked")?.value ?? null;
    const colours = theme();
    const wanted = plans(this.runs, choice, settings, colours);
    if (wanted.length === 0) this.place.textContent = "Nothing was measured after the warm-up.";
    this.pictures = wanted.map((plan) => drawPicture(this.place, plan, colours));
  }

  /** Shows or hides it with its device. */
  show(settings: Settings): void {
    this.settings = settings;
    const wasHidden = this.element.hidden;
    this.element.hidden = this.runs.some((run) => settings.hiddenDevices.has(run.device));
    if (wasHidden && !this.element.hidden && this.pictures.length === 0) this.draw(settings);
  }
}

/** All that there is to draw of some runs: a latency test may hold a search, for instance. */
function plans(runs: Run[], choice: string | null, settings: Settings, theme: Theme): Plan[] {
  const alone = runs.length === 1 ? runs : [];
  return [
    ...rfc2544Plans(runs, settings.unit, theme),
    ...alone.flatMap((run) => [
      ...soakPlans(run, theme),
      ...stallPlans(run, settings.unit, theme),
      ...waterfallPlans(run, theme),
      ...latencyPlans(run, theme),
      ...searchPlans(run, choice, settings.unit, theme),
      ...gaugePlans(run, theme),
    ]),
  ];
}
