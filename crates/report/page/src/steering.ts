// A slider and a button: what a person wants of the load leaves, by the token that the page carries.

/** The load in each direction. */
export interface Load {
  /** Of the line rate. */
  percent: number;
  paused: boolean;
}

const part = <E extends HTMLElement>(id: string) => document.getElementById(id) as E;

/** Steers the load, where the program lets it and the page has a token. */
export class Steering {
  private load: Load | null = null;
  /** What waits while an earlier wish is on its way. */
  private wish: Load | null = null;
  private busy = false;

  constructor(private readonly token: string) {
    const slider = part<HTMLInputElement>("load");
    slider.addEventListener("input", () => this.want({ percent: slider.valueAsNumber }));
    part("pause").addEventListener("click", () => this.want({ paused: !this.load?.paused }));
    part("steering").addEventListener("submit", (event) => event.preventDefault());
  }

  /** What the program says. */
  show(load: Load | null): void {
    part("steering").hidden = load === null || this.token === "";
    if (this.busy || this.wish) return;
    this.load = load;
    if (load) this.draw(load);
  }

  private draw({ percent, paused }: Load): void {
    part<HTMLInputElement>("load").valueAsNumber = percent;
    part("percent").textContent = `${percent.toPrecision(3)} % of the line rate`;
    part("pause").textContent = paused ? "Resume" : "Pause";
    part("pause").setAttribute("aria-pressed", String(paused));
  }

  private want(change: Partial<Load>): void {
    if (this.load === null) return;
    this.load = { ...this.load, ...change };
    this.wish = this.load;
    this.draw(this.load);
    void this.send();
  }

  /** One wish at a time, the last one of all that came meanwhile. */
  private async send(): Promise<void> {
    if (this.busy) return;
    this.busy = true;
    while (this.wish) {
      const body = JSON.stringify(this.wish);
      this.wish = null;
      try {
        const headers = { "Content-Type": "application/json", "X-Linerate-Token": this.token };
        const reply = await fetch("load", { method: "POST", headers, body, signal: AbortSignal.timeout(5000) });
        part("refusal").textContent = reply.ok ? "" : await reply.text();
      } catch {
        part("refusal").textContent = "No answer: the load is as it was.";
      }
    }
    this.busy = false;
  }
}
