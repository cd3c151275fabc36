// A channel: one direction of one run, which is one set of curves.

import type { Page, Run } from "./data";
import { limitAt, type Points, points, rampStart } from "./curves";
import type { Settings } from "./settings";

export interface Channel {
  run: Run;
  direction: number;
  points: Points;
  /** Where its highest load at or below the loss threshold lies. */
  limit: number | null;
  /** When it stalled, where the horizontal axis is time. */
  stalled: number | null;
  shown: boolean;
}

/** The runs of one test whose samples are curves, device by device; the others have panels. */
export function runsOf(page: Page, test: number): Run[] {
  const runs = page.runs.filter((run) => run.test === test && run.curves);
  return runs.sort((a, b) => a.device - b.device);
}

/**
 * The channels of `runs`. Repeats come first, since they are drawn faint below the runs that stand for
 * them; then those of direction 1->0, since they are drawn wide and pale and those of 0->1 thin on
 * top: curves that coincide stay visible both.
 */
export function channelsOf(runs: Run[], settings: Settings, hidden: ReadonlySet<string>): Channel[] {
  const channels = runs.flatMap((run) =>
    run.record.directions.map((verdict, direction): Channel => {
      const stall = settings.against === "time" ? verdict.stalled : undefined;
      return {
        run,
        direction,
        points: points(run.record, direction, settings),
        limit: limitAt(run.record, direction, settings),
        stalled: stall ? stall.at_s - rampStart(run.record) : null,
        shown: isShown(run, direction, settings, hidden),
      };
    }),
  );
  const order = ({ run, direction }: Channel) => (run.repeat ? 0 : 2) - direction;
  return channels.filter((channel) => channel.points.x.length > 0).sort((a, b) => order(a) - order(b));
}

/** The same for all repeats of a device. */
export function channelKey(run: Run, direction: number): string {
  return `${run.device} ${direction}`;
}

export function isShown(run: Run, direction: number, settings: Settings, hidden: ReadonlySet<string>): boolean {
  return (
    (settings.repeats || !run.repeat) &&
    !settings.hiddenDevices.has(run.device) &&
    !settings.hiddenDirections.has(direction) &&
    !hidden.has(channelKey(run, direction))
  );
}
