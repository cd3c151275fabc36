// An axis for numbers of something, like rules, flows or cores: the numbers enter, where each stands and
// what is written there leaves.

import type { Axis } from "./picture";

/** An axis that spans as much is logarithmic. */
const DECADES = 2;

/** The numbers on an axis: a logarithmic one has a place for zero, a decade below the least. */
export function numberAxis(numbers: number[]): Axis & { place: (number: number) => number } {
  const sorted = [...new Set(numbers)].sort((a, b) => a - b);
  const positive = sorted.filter((number) => number > 0);
  const [least, most] = [positive[0] ?? 1, positive[positive.length - 1] ?? 1];
  const logarithmic = Math.log10(most / least) > DECADES - 1e-9;
  const place = (number: number) => (logarithmic && number === 0 ? least / 10 : number);
  const places = sorted.map(place);
  const [first, last] = [places[0] ?? 0, places[places.length - 1] ?? 1];
  const room = (last - first) * 0.05 || 1;
  const back = new Map(sorted.map((number) => [place(number), number]));
  return {
    place,
    logarithmic,
    range: logarithmic ? [first / 1.6, last * 1.6] : [Math.min(first, Math.max(0, first - room)), last + room],
    splits: (min, max) => roomy(places.filter((one) => one >= min && one <= max), min, max, logarithmic),
    tick: (value) => (back.get(value) ?? value).toLocaleString("en"),
  };
}

/** Those that have room for a label each. */
function roomy(places: number[], min: number, max: number, logarithmic: boolean): number[] {
  const scale = logarithmic ? Math.log10 : (value: number) => value;
  const apart = (scale(max) - scale(min)) / 9;
  return places.reduce((chosen: number[], one) => {
    const last = chosen[chosen.length - 1];
    return last !== undefined && scale(one) - scale(last) < apart ? chosen : [...chosen, one];
  }, []);
}
