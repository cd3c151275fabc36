// Pictures of a search: the loads tried over time with the interval closing in, and what was lost
// at each load.

import uPlot from "uplot";
import type { Run, Trial, Verdict } from "./data";
import { lossAxis, lossPlace, smallestLoss } from "./loss-axis";
import { line, paintLimit, scaledFont } from "./paint";
import { placeOf, type Plan, type Point } from "./picture";
import { closing, focus, type Goal, goals, intervals } from "./search";
import { faded, type Theme } from "./theme";
import { fromPps, intervalText, preciseText, rateText, rateTick, shareText, type Unit, unitName } from "./units";
import { DISTURBED, drawDisturbed, drawVerdict, VERDICTS } from "./verdicts";

const HEIGHT = 320;
/** Room for the names and figures of the intervals. */
const MARGIN = 150;

export function searchPlans(run: Run, choice: string | null, unit: Unit, theme: Theme): Plan[] {
  const search = new Search(run, choice, unit, theme);
  return search.trials.length === 0 ? [] : [search.overTime(), search.lossByLoad()];
}

/** The frames that left while nothing was interrupted, where that is known: their loss, and their share. */
function undisturbed(trial: Trial): { loss: number; share: number } | null {
  const total = (figures: number[]) => figures.reduce((sum, figure) => sum + figure, 0);
  const parts = trial.directions.flatMap((direction) => direction.undisturbed ?? []);
  if (parts.length === 0 || parts.length < trial.directions.length) return null;
  const offered = total(parts.map((part) => part.offered));
  const lost = offered - total(parts.map((part) => part.forwarded));
  const all = total(trial.directions.map((direction) => direction.offered));
  return { loss: lost / Math.max(1, offered), share: offered / Math.max(1, all) };
}

/** The loss that a trial is judged by. */
function judgedLoss(trial: Trial): number {
  return Math.min(trial.loss_ratio, undisturbed(trial)?.loss ?? 1);
}

class Search {
  readonly trials: Trial[];
  private readonly goals: Goal[];
  private readonly goal: Goal;
  private readonly loads: [number, number];

  constructor(
    private readonly run: Run,
    choice: string | null,
    private readonly unit: Unit,
    private readonly theme: Theme,
  ) {
    this.trials = run.record.trials ?? [];
    this.goals = goals(run.record);
    this.goal = this.goals.find((goal) => goal.name === choice) ?? this.goals[0] ?? { name: "", loss: null, exceed: 0 };
    const [low, high] = focus(run.record);
    this.loads = [this.rate(low), this.rate(high)];
  }

  private rate(pps: number): number {
    return fromPps(pps, this.run.record, this.unit);
  }

  private verdict(trial: Trial): Verdict {
    return trial.verdicts[this.goal.name] ?? "disturbed";
  }

  /** What the load of a trial is, where there are two directions. */
  private get each(): string {
    return this.run.record.directions.length > 1 ? " in each direction" : "";
  }

  /** The verdicts that occur. */
  private key(): Plan["key"] {
    const looks = (Object.keys(VERDICTS) as Verdict[]).filter((verdict) =>
      this.trials.some((trial) => this.verdict(trial) === verdict),
    );
    return looks.map((verdict) => {
      const { sign, text, colour } = VERDICTS[verdict];
      return { sign, text, colour: colour(this.theme) };
    }).concat(
      this.trials.some((trial) => trial.disturbed) ? [{ ...DISTURBED, colour: DISTURBED.colour(this.theme) }] : [],
    );
  }

  private lines(trial: Trial): string[] {
    const part = undisturbed(trial);
    const verdicts = Object.entries(trial.verdicts).map(([goal, verdict]) => `${goal}: ${VERDICTS[verdict].text}`);
    return [
      `${preciseText(this.rate(trial.load_pps), this.unit)}${this.each}`,
      `lost ${shareText(trial.loss_ratio)} in ${trial.duration_s} s, from ${trial.at_s.toFixed(1)} s on`,
      ...(part ? [`${shareText(part.loss)} of those that left undisturbed, which were ${shareText(part.share)}`] : []),
      ...verdicts,
      ...(trial.noise ? [`the machine may have cost up to ${shareText(trial.noise)} of the frames`] : []),
      ...(trial.disturbed ? [`disturbed: ${trial.disturbed}`] : []),
    ];
  }

  overTime(): Plan {
    const points = this.trials.map(
      (trial): Point => ({
        x: trial.at_s + trial.duration_s / 2,
        y: this.rate(trial.load_pps),
        lines: this.lines(trial),
      }),
    );
    const last = this.trials[this.trials.length - 1];
    const end = last ? last.at_s + last.duration_s : 1;
    return {
      kind: "search",
      size: "major",
      height: HEIGHT,
      caption: `Loads tried over time, ${unitName(this.unit)}${this.each}; shaded: the interval of ${this.goal.name} as it closed in`,
      key: this.key(),
      x: { range: [0, end], tick: (value) => `${value} s` },
      y: { range: this.loads, tick: (value) => rateTick(value, this.unit) },
      margin: MARGIN,
      points,
      paint: (ctx, plot) => {
        this.paintClosing(ctx, plot, end);
        this.paintCeiling(ctx, plot);
        this.paintIntervals(ctx, plot);
        this.trials.forEach((trial, at) => this.paintTrial(ctx, plot, trial, points[at]));
        this.paintOutside(ctx, plot, points);
      },
    };
  }

  private paintTrial(ctx: CanvasRenderingContext2D, plot: uPlot, trial: Trial, point: Point | undefined): void {
    if (!point) return;
    const verdict = this.verdict(trial);
    const place = placeOf(plot, point.x, point.y);
    const [from, until] = [trial.at_s, trial.at_s + trial.duration_s].map((time) => plot.valToPos(time, "x", true));
    ctx.strokeStyle = faded(VERDICTS[verdict].colour(this.theme), 0.7);
    ctx.lineWidth = 2 * uPlot.pxRatio;
    ctx.setLineDash([]);
    line(ctx, [from ?? 0, place.y], [until ?? 0, place.y]);
    if (place.outside) return;
    drawVerdict(ctx, verdict, place.x, place.y, this.theme, uPlot.pxRatio);
    if (trial.disturbed) drawDisturbed(ctx, place.x, place.y, this.theme, uPlot.pxRatio);
  }

  /** Loads that are out of sight: which way, and how much they were, where there is room. */
  private paintOutside(ctx: CanvasRenderingContext2D, plot: uPlot, points: Point[]): void {
    const scale = uPlot.pxRatio;
    const free = { up: 0, down: 0 };
    ctx.font = scaledFont();
    ctx.fillStyle = this.theme.muted;
    ctx.textAlign = "left";
    ctx.textBaseline = "middle";
    for (const point of points) {
      const place = placeOf(plot, point.x, point.y);
      const edge = place.y < plot.bbox.top + plot.bbox.height / 2 ? "up" : "down";
      if (!place.outside) continue;
      const text = `${edge === "up" ? "↑" : "↓"} ${rateText(point.y, this.unit)}`;
      const { width } = ctx.measureText(text);
      const from = Math.min(place.x - 4 * scale, plot.bbox.left + plot.bbox.width - width);
      if (from < free[edge]) continue;
      ctx.fillText(text, from, place.y + (edge === "up" ? 9 : -9) * scale);
      free[edge] = from + width + 12 * scale;
    }
  }

  /** The interval of the chosen goal as the trials narrowed it. */
  private paintClosing(ctx: CanvasRenderingContext2D, plot: uPlot, end: number): void {
    const steps = closing(this.trials, this.goal);
    const { top, height } = plot.bbox;
    const across = (time: number) => plot.valToPos(time, "x", true);
    const down = (pps: number | null, edge: number) =>
      pps === null ? edge : Math.min(Math.max(plot.valToPos(this.rate(pps), "y", true), top), top + height);
    steps.forEach((step, at) => {
      if (step.lower === null && step.upper === null) return;
      const [from, until] = [across(step.at), across(steps[at + 1]?.at ?? end)];
      const [high, low] = [down(step.upper, top), down(step.lower, top + height)];
      ctx.fillStyle = faded(this.theme.accent, 0.13);
      ctx.fillRect(from, high, until - from, low - high);
      ctx.strokeStyle = faded(this.theme.accent, 0.55);
      ctx.lineWidth = uPlot.pxRatio;
      if (step.upper !== null) line(ctx, [from, high], [until, high]);
      if (step.lower !== null) line(ctx, [from, low], [until, low]);
    });
  }

  /** What the tester reaches without a device, if that is in sight. */
  private paintCeiling(ctx: CanvasRenderingContext2D, plot: uPlot): void {
    const ceiling = this.run.record.tester?.self_test?.ceiling_pps;
    if (ceiling !== undefined) paintLimit(ctx, plot, this.rate(ceiling), "tester max received (loopback)", this.theme);
  }

  /** The final intervals as brackets at the right, with their figures. */
  private paintIntervals(ctx: CanvasRenderingContext2D, plot: uPlot): void {
    const scale = uPlot.pxRatio;
    const { left, top, width, height } = plot.bbox;
    const found = intervals(this.run.record).sort((a, b) => b.lower - a.lower);
    let free = top - 4 * scale;
    found.forEach((interval) => {
      const chosen = interval.goal === this.goal.name;
      const place = (pps: number) => plot.valToPos(this.rate(pps), "y", true);
      const low = Math.min(place(interval.lower), top + height);
      const high = interval.upper === null ? top : Math.max(place(interval.upper), top);
      if (low < top || high > top + height) return;
      const colour = chosen ? this.theme.accent : this.theme.muted;
      ctx.fillStyle = faded(colour, chosen ? 0.9 : 0.6);
      ctx.fillRect(left + width + 5 * scale, Math.min(high, low - 3 * scale), 4 * scale, Math.max(low - high, 3 * scale));
      const middle = Math.max((low + high) / 2 - 7 * scale, free);
      free = middle + 34 * scale;
      ctx.textAlign = "left";
      ctx.textBaseline = "middle";
      ctx.font = scaledFont("600 ");
      ctx.fillStyle = chosen ? colour : this.theme.text;
      ctx.fillText(interval.goal, left + width + 14 * scale, middle);
      ctx.font = scaledFont();
      const text = intervalText(
        this.rate(interval.lower),
        interval.upper === null ? null : this.rate(interval.upper),
        this.unit,
      );
      ctx.fillText(text, left + width + 14 * scale, middle + 14 * scale);
    });
  }

  lossByLoad(): Plan {
    const losses = this.trials.map(judgedLoss);
    const smallest = smallestLoss([...losses, ...this.goals.map((goal) => goal.loss ?? 0)]);
    const points = this.trials.map(
      (trial): Point => ({
        x: this.rate(trial.load_pps),
        y: lossPlace(judgedLoss(trial), smallest),
        lines: this.lines(trial),
      }),
    );
    return {
      kind: "search-loss",
      size: "minor",
      height: HEIGHT,
      caption: `${this.trials.some(undisturbed) ? "Loss of undisturbed frames" : "Loss"} against load${this.goals.some((goal) => goal.loss !== null) ? "; dashed: what each goal forgives" : ""}`,
      key: [],
      x: { range: this.loads, tick: (value) => rateTick(value, this.unit) },
      y: lossAxis(smallest),
      margin: 14,
      points,
      paint: (ctx, plot) => {
        this.paintInterval(ctx, plot);
        this.paintGoals(ctx, plot, smallest);
        this.trials.forEach((trial, at) => {
          const point = points[at];
          if (!point) return;
          const place = placeOf(plot, point.x, point.y);
          drawVerdict(ctx, this.verdict(trial), place.x, place.y, this.theme, uPlot.pxRatio);
          if (trial.disturbed) drawDisturbed(ctx, place.x, place.y, this.theme, uPlot.pxRatio);
        });
      },
    };
  }

  private paintInterval(ctx: CanvasRenderingContext2D, plot: uPlot): void {
    const { left, top, width, height } = plot.bbox;
    const found = intervals(this.run.record).find((interval) => interval.goal === this.goal.name);
    if (!found) return;
    const across = (pps: number) =>
      Math.min(Math.max(plot.valToPos(this.rate(pps), "x", true), left), left + width);
    const [low, high] = [across(found.lower), found.upper === null ? left + width : across(found.upper)];
    ctx.fillStyle = faded(this.theme.accent, 0.2);
    ctx.fillRect(low, top, Math.max(high - low, uPlot.pxRatio), height);
  }

  private paintGoals(ctx: CanvasRenderingContext2D, plot: uPlot, smallest: number): void {
    const { left, width } = plot.bbox;
    for (const goal of this.goals) {
      if (goal.loss === null) continue;
      const chosen = goal.name === this.goal.name;
      const y = plot.valToPos(lossPlace(goal.loss, smallest), "y", true);
      ctx.strokeStyle = ctx.fillStyle = chosen ? this.theme.accent : this.theme.muted;
      ctx.lineWidth = (chosen ? 1.5 : 1) * uPlot.pxRatio;
      ctx.setLineDash([5 * uPlot.pxRatio, 4 * uPlot.pxRatio]);
      line(ctx, [left, y], [left + width, y]);
      ctx.font = scaledFont(chosen ? "600 " : "");
      ctx.textAlign = "left";
      ctx.textBaseline = "bottom";
      ctx.fillText(`${goal.name} ≤ ${shareText(goal.loss)}`, left + 4 * uPlot.pxRatio, y - 3 * uPlot.pxRatio);
    }
  }
}
