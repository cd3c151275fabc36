// One run's panel: its tables are in the markup, its pictures are drawn here when it is open.

import type { Page, Run } from "./data";
import type { Picture } from "./picture";
import { drawSearch } from "./search-pictures";
import type { Settings } from "./settings";
import { theme } from "./theme";

export class Panel {
  private readonly run: Run | undefined;
  private readonly place: HTMLElement;
  private pictures: Picture[] = [];

  constructor(
    private readonly element: HTMLDetailsElement,
    page: Page,
    private settings: Settings,
  ) {
    this.run = page.runs.find((run) => run.anchor === element.dataset["run"]);
    const place = element.querySelector<HTMLElement>(".pictures");
    if (!place) throw new Error(`the panel of ${element.dataset["run"]} has no place for pictures`);
    this.place = place;
    const choice = element.querySelector<HTMLElement>(".choice");
    if (choice) {
      choice.hidden = false;
      choice.addEventListener("change", () => this.draw(this.settings));
    }
    element.addEventListener("toggle", () => this.draw(this.settings));
    this.draw(settings);
    let width = element.clientWidth;
    new ResizeObserver(() => {
      if (element.clientWidth === width) return;
      width = element.clientWidth;
      this.pictures.forEach((picture) => picture.resize());
    }).observe(element);
  }

  /** Draws everything anew. */
  draw(settings: Settings): void {
    this.show(settings);
    this.pictures.forEach((picture) => picture.destroy());
    this.pictures = [];
    this.place.replaceChildren();
    if (!this.element.open || !this.run || this.element.hidden) return;
    const choice = this.element.querySelector<HTMLInputElement>(".choice input:checked")?.value ?? null;
    this.pictures = drawSearch(this.place, this.run, choice, settings.unit, theme());
  }

  /** Shows or hides it with its device. */
  show(settings: Settings): void {
    this.settings = settings;
    const wasHidden = this.element.hidden;
    this.element.hidden = this.run !== undefined && settings.hiddenDevices.has(this.run.device);
    if (wasHidden && !this.element.hidden && this.pictures.length === 0) this.draw(settings);
  }
}
