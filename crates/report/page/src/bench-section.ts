// A bench's part of the page: its tables are in the markup, its pictures are drawn here when they come
// near the window.

import type { Bench } from "./bench-data";
import { whenNear } from "./nearby";
import { nodePlans } from "./node-pictures";
import { drawPicture, type Picture } from "./picture";
import { scalingPlans } from "./scaling-pictures";
import { whenWidthChanges } from "./resizing";
import type { Settings } from "./settings";
import { spreadPlans } from "./spread-pictures";
import { theme } from "./theme";

export class BenchSection {
  private readonly place: HTMLElement;
  private pictures: Picture[] = [];
  private reached = false;

  constructor(
    section: HTMLElement,
    private readonly bench: Bench,
    private settings: Settings,
  ) {
    const place = section.querySelector<HTMLElement>(".pictures");
    if (!place) throw new Error(`the bench ${section.id} has no place for pictures`);
    this.place = place;
    whenNear(place, () => {
      this.reached = true;
      this.draw(this.settings);
    });
    whenWidthChanges(section, () => this.pictures.forEach((picture) => picture.resize()));
  }

  /** Draws everything anew. */
  draw(settings: Settings): void {
    this.settings = settings;
    if (!this.reached) return;
    this.pictures.forEach((picture) => picture.destroy());
    const colours = theme();
    const plans = [scalingPlans, spreadPlans, nodePlans].flatMap((plans) => plans(this.bench, settings, colours));
    this.pictures = plans.map((plan) => drawPicture(this.place, plan, colours));
  }

  /** Hidden devices have no rows. */
  show(settings: Settings): void {
    this.draw(settings);
  }
}
