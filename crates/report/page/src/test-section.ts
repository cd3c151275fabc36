// One test's part of the page: its charts and cards, drawn again when the view changes.

import { addedUp } from "./added-up";
import { type Cards, drawCards } from "./cards";
import { type Channel, channelsOf, isShown, runsOf } from "./channel";
import { deviceKeys, drawStack, type Stack } from "./charts";
import type { Page, Run } from "./data";
import { gaugePlans } from "./gauge-pictures";
import { whenNear } from "./nearby";
import { drawPercentiles } from "./percentiles";
import { drawPicture, type Picture } from "./picture";
import { whenWidthChanges } from "./resizing";
import type { Settings } from "./settings";
import { type Theme, theme } from "./theme";

export class TestSection {
  private readonly runs: Run[];
  /** The same with their directions added up, when they were wanted so. */
  private sums: Run[] | null = null;
  private readonly charts: HTMLElement;
  private readonly side: HTMLElement;
  /** Keys of the channels that this test's own boxes hide. */
  private readonly hidden = new Set<string>();
  private channels: Channel[] = [];
  private stacks: Stack[] = [];
  /** What the machine told beside each run, below its charts. */
  private gauges: Picture[] = [];
  private cards: Cards | null = null;
  private reached = false;

  constructor(
    section: HTMLElement,
    private readonly page: Page,
    private settings: Settings,
  ) {
    this.runs = runsOf(page, Number(section.dataset["test"]));
    this.charts = part(section, ".charts");
    this.side = part(section, ".side");
    whenNear(this.charts, () => {
      this.reached = true;
      this.draw(this.settings);
    });
    whenWidthChanges(section, () => [...this.stacks, ...this.gauges].forEach((drawn) => drawn.resize()));
  }

  /** Draws everything anew. */
  draw(settings: Settings): void {
    this.settings = settings;
    if (!this.reached) return;
    this.stacks.forEach((stack) => stack.destroy());
    this.drawGauges([], theme());
    this.side.replaceChildren();
    const runs = settings.addedUp ? (this.sums ??= this.runs.map((run) => ({ ...run, record: addedUp(run.record) }))) : this.runs;
    this.channels = channelsOf(runs, settings, this.hidden);
    if (this.channels.length === 0) {
      this.charts.textContent = "No samples: nothing was measured after the warm-up.";
      return;
    }
    const colours = theme();
    const standing = runs.filter((run) => !run.repeat);
    this.cards = drawCards(this.side, standing, this.channels, settings, this.page.devices, this.hidden, () =>
      this.show(this.settings),
    );
    const percentiles = drawPercentiles(this.side, this.channels, colours, deviceKeys(this.channels, this.page.devices, colours));
    const stack = drawStack(this.charts, this.channels, settings, colours, this.page.devices, (x) => this.cards?.update(x));
    this.stacks = percentiles ? [stack, percentiles] : [stack];
    this.drawGauges(standing, colours);
  }

  /** Draws the gauges of these runs in the place of others. */
  private drawGauges(runs: Run[], colours: Theme): void {
    this.gauges.forEach((picture) => picture.destroy());
    this.charts.querySelector(".pictures")?.remove();
    const plans = runs.flatMap((run) => gaugePlans(run, colours, runs.length > 1 ? this.page.devices[run.device] : ""));
    const place = document.createElement("div");
    place.className = "pictures";
    if (plans.length > 0) this.charts.append(place);
    this.gauges = plans.map((plan) => drawPicture(place, plan, colours));
  }

  /** Shows and hides curves without drawing anew, so that the zoom stays. */
  show(settings: Settings): void {
    this.settings = settings;
    for (const channel of this.channels) {
      channel.shown = isShown(channel.run, channel.direction, settings, this.hidden);
    }
    this.stacks.forEach((stack) => stack.showChannels());
  }
}

function part(section: HTMLElement, selector: string): HTMLElement {
  const found = section.querySelector<HTMLElement>(selector);
  if (!found) throw new Error(`the page has no ${selector} in test ${section.dataset["test"]}`);
  return found;
}
