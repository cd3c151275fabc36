// What is drawn against a bench's axis: its figures enter, the places that a line joins leave.

import type { Bench, BenchTest, Cell } from "./bench-data";
import { hasProfiles } from "./cell-text";
import type { Settings } from "./settings";
import { deviceColour, deviceLetter, deviceShape, type Shape, type Theme } from "./theme";

const DASHES: number[][] = [[], [6, 4], [2, 3], [10, 3, 2, 3]];

export interface Place {
  at: number;
  cell: Cell;
  name: string;
  colour: string;
  shape: Shape | null;
}

/** What belongs together. */
export interface Series {
  name: string;
  colour: string;
  /** The shape of its device. */
  letter: string;
  dash: number[];
  places: Place[];
  /** Whether a line joins them. */
  joined: boolean;
}

type Dut = Bench["duts"][number] & { column: number };

/** The devices that have numbers, of each kind and each profile; or each device over the profiles that have. */
export function seriesOf(bench: Bench, direction: string, settings: Settings, theme: Theme): Series[] {
  const tests = bench.tests.filter((test) => test.direction === direction);
  const duts: Dut[] = bench.duts.map((dut, column) => ({ ...dut, column })).filter(({ device }) => !settings.hiddenDevices.has(device));
  const place = (dut: Dut, test: BenchTest, at: number | null, name: string): Place[] => {
    const cell = test.cells[dut.column];
    return cell && at !== null ? [{ at, cell, name, colour: deviceColour(theme, dut.device), shape: deviceShape(dut.device) }] : [];
  };
  const numbered = bench.duts.filter(({ at }) => at !== null);
  if (numbered.length > 0) {
    const kinds = [...new Set(numbered.map(({ kind }) => kind))];
    const names = (kind: string, profile: string) =>
      kinds.length === 1 ? profile : hasProfiles(bench) ? `${kind}, ${profile}` : kind;
    return kinds.flatMap((kind) => {
      const first = numbered.find((dut) => dut.kind === kind);
      const its = duts.filter((dut) => dut.kind === kind);
      const name = (dut: Dut, test: BenchTest) => (hasProfiles(bench) ? `${dut.name}, ${test.profile}` : dut.name);
      return tests.map((test, number) => ({
        name: names(kind, test.profile),
        colour: first && kinds.length > 1 ? deviceColour(theme, first.device) : theme.muted,
        letter: "",
        dash: DASHES[number % DASHES.length] ?? [],
        ...along(its.flatMap((dut) => place(dut, test, dut.at, name(dut, test)))),
      }));
    });
  }
  return duts.map((dut) => ({
    name: dut.name,
    colour: deviceColour(theme, dut.device),
    letter: deviceLetter(theme, dut.device),
    dash: [],
    ...along(tests.flatMap((test) => place(dut, test, test.at, `${dut.name}, ${test.profile}`))),
  }));
}

/** In the order of their numbers. Several at one number are different things, which no line joins. */
function along(places: Place[]): Pick<Series, "places" | "joined"> {
  const numbers = new Set(places.map(({ at }) => at));
  return { places: places.sort((a, b) => a.at - b.at), joined: numbers.size === places.length };
}
