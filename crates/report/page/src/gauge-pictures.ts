// Pictures of the machine beside a run: power, frequency and temperature over time, each where anything tells it.

import type { GaugeReading, Run } from "./data";
import { line, stroke } from "./paint";
import type { Plan, Point } from "./picture";
import { deviceColour, type Theme } from "./theme";

/** Points that the mouse can find. */
const MOST_POINTS = 400;

const GAUGES = [
  { key: "watts", name: "Power", unit: "W" },
  { key: "mhz", name: "Frequency of the slowest core in use", unit: "MHz" },
  { key: "celsius", name: "Temperature of the hottest sensor", unit: "°C" },
] as const;

interface Place {
  x: number;
  y: number;
}

/** Those of a run; `whose` names it where several are drawn. */
export function gaugePlans(run: Run, theme: Theme, whose = ""): Plan[] {
  const readings = run.record.gauges?.readings ?? [];
  return GAUGES.flatMap(({ key, name, unit }) => {
    const places = readings.flatMap((reading) => placeOf(reading, key));
    return places.length > 1 ? [plan(run, `${name} over time${whose && `, ${whose}`}`, unit, places, theme)] : [];
  });
}

function placeOf(reading: GaugeReading, key: (typeof GAUGES)[number]["key"]): Place[] {
  const y = reading[key];
  return y === undefined ? [] : [{ x: reading.at_s + reading.duration_s / 2, y }];
}

function plan(run: Run, caption: string, unit: string, places: Place[], theme: Theme): Plan {
  const values = places.map(({ y }) => y);
  const [least, most] = [Math.min(...values), Math.max(...values)];
  const room = Math.max((most - least) * 0.1, most * 0.02, 1);
  const [first, last] = [places[0]?.x ?? 0, places[places.length - 1]?.x ?? 1];
  const step = Math.max(1, Math.ceil(places.length / MOST_POINTS));
  const told = ({ x, y }: Place): Point => ({ x, y, lines: [`${Math.round(y * 10) / 10} ${unit}`, `at ${x.toFixed(1)} s`] });
  return {
    kind: "gauge",
    size: "half",
    height: 180,
    caption,
    key: [],
    x: { range: [first, last], tick: (value) => `${value} s` },
    y: { range: [Math.max(0, least - room), most + room], tick: (value) => `${value} ${unit}` },
    margin: 20,
    points: places.filter((_, index) => index % step === 0).map(told),
    paint: (ctx, plot) => {
      stroke(ctx, deviceColour(theme, run.device), 1.6);
      line(ctx, ...places.map(({ x, y }): [number, number] => [plot.valToPos(x, "x", true), plot.valToPos(y, "y", true)]));
    },
  };
}
