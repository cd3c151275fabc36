// Checks what a line joins in a picture against a bench's axis.
//
//     node scaling-series.mjs BUNDLED_SCALING_SERIES.mjs

import assert from "node:assert/strict";
import { pathToFileURL } from "node:url";

const bundle = process.argv[2];
assert(bundle, "usage: scaling-series.mjs BUNDLED_SCALING_SERIES.mjs");
/** @type {typeof import("../src/scaling-series")} */
const { seriesOf } = await import(pathToFileURL(bundle).href);

const shown = /** @type {unknown} */ ({ hiddenDevices: new Set() });
const settings = /** @type {import("../src/settings").Settings} */ (shown);
const theme = /** @type {import("../src/theme").Theme} */ ({
  muted: "grey",
  devices: ["blue", "red", "green", "pink", "sky", "orange", "yellow"],
  letters: ["", "", "", ""],
});

/**
 * A bench of devices and profiles, each with its number; a cell's median is its place in the matrix.
 * @param {[name: string, kind: string, at: number | null][]} duts
 * @param {[profile: string, at: number | null][]} profiles
 * @returns {import("../src/bench-data").Bench}
 */
function bench(duts, profiles) {
  const cell = (/** @type {number} */ median) => ({
    median, low: median, high: median, interval: false, runs: [], mean_frame_size: 64, line_rate_bps: 1e10,
  });
  return {
    metric: "max_forwarded",
    unit: "pps",
    axis: { name: "routes", linear: false },
    duts: duts.map(([name, kind, at], device) => ({ name, kind, device, at, baseline: device === 0 })),
    tests: profiles.map(([profile, at], row) => ({
      profile, direction: "one", at, cells: duts.map((_, column) => cell(10 * row + column)),
    })),
    nodes: [],
  };
}

/** @param {import("../src/bench-data").Bench} bench */
function lines(bench) {
  return seriesOf(bench, "one", settings, theme).map(({ name, colour, joined, places }) => [
    name, colour, joined, places.map(({ at, cell }) => [at, cell.median]),
  ]);
}

// One kind of device: a line for each profile, in the order of the numbers.
assert.deepEqual(lines(bench([["100 rules", "linux-router", 100], ["1 rule", "linux-router", 1], ["none", "linux-router", null]], [["64 B", null], ["1500 B", null]])), [
  ["64 B", "grey", true, [[1, 1], [100, 0]]],
  ["1500 B", "grey", true, [[1, 11], [100, 10]]],
]);

// Several kinds at the same numbers: a line for each of them, in its own colour.
const routers = bench(
  [["kernel, 1 route", "linux-router", 1], ["VPP, 1 route", "vpp", 1], ["kernel, 1k", "linux-router", 1000], ["VPP, 1k", "vpp", 1000]],
  [["64 B", null]],
);
assert.deepEqual(lines(routers), [
  ["linux-router", "blue", true, [[1, 0], [1000, 2]]],
  ["vpp", "red", true, [[1, 1], [1000, 3]]],
]);
const twoProfiles = bench([["a", "linux-router", 1], ["b", "vpp", 1]], [["64 B", null], ["1500 B", null]]);
assert.deepEqual(lines(twoProfiles).map(([name]) => name), ["linux-router, 64 B", "linux-router, 1500 B", "vpp, 64 B", "vpp, 1500 B"]);

// Two of one kind at one number are different things: no line goes up and down between them.
const firewalls = bench([["nftables", "linux-router", 10], ["iptables", "linux-router", 10], ["1 rule", "linux-router", 1]], [["64 B", null]]);
assert.deepEqual(lines(firewalls), [["64 B", "grey", false, [[1, 2], [10, 0], [10, 1]]]]);

// Profiles that have numbers: a line for each device.
assert.deepEqual(lines(bench([["a", "linux-router", null], ["b", "vpp", null]], [["10 flows", 10], ["1 flow", 1]])), [
  ["a", "blue", true, [[1, 10], [10, 0]]],
  ["b", "red", true, [[1, 11], [10, 1]]],
]);
