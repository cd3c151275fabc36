// Checks the arithmetic of searches.
//
//     node search.mjs BUNDLED_SEARCH.mjs

import assert from "node:assert/strict";
import { pathToFileURL } from "node:url";

const bundle = process.argv[2];
assert(bundle, "usage: search.mjs BUNDLED_SEARCH.mjs");
/** @type {typeof import("../src/search")} */
const { closing, focus, goals, intervals } = await import(pathToFileURL(bundle).href);

/**
 * A trial of a second.
 * @param {number} at_s
 * @param {number} load_pps
 * @param {import("../src/data").Verdict} verdict
 * @returns {import("../src/data").Trial}
 */
function trial(at_s, load_pps, verdict) {
  return { at_s, duration_s: 1, load_pps, loss_ratio: 0, verdicts: { ndr: verdict }, directions: [] };
}

/**
 * @param {import("../src/data").Trial[]} trials
 * @param {Record<string, import("../src/data").GoalResult>} results
 * @returns {import("../src/data").RunRecord}
 */
function record(trials, results) {
  const direction = { name: "0->1", max_rate_pps: 0, latency_ns: /** @type {[number, number][]} */ ([]) };
  return {
    id: "a",
    name: "a",
    line_rate_bps: 10e9,
    elapsed_s: 9,
    strategy: {
      name: "search",
      parameters: { "goal ndr": "loss=0%,exceed=50%,width=0.5%", "goal pdr": "loss=0.5%,exceed=10%" },
      loss_threshold: 0,
    },
    profile: { mean_frame_size: 64 },
    directions: [direction, direction],
    samples: [],
    trials,
    results,
  };
}

// Goals are those with verdicts; their figures stand among the parameters.
const { verdicts, ...rest } = trial(0, 1, "low-loss");
assert.deepEqual(goals(record([{ ...rest, verdicts: { ...verdicts, pdr: "low-loss" } }], {})), [
  { name: "ndr", loss: 0, exceed: 0.5 },
  { name: "pdr", loss: 0.005, exceed: 0.1 },
]);
assert.deepEqual(goals(record([], {})), []);
const unknown = { ...rest, verdicts: /** @type {const} */ ({ other: "low-loss" }) };
assert.deepEqual(goals(record([unknown], {})), [{ name: "other", loss: null, exceed: 0.5 }]);

// The interval closes in; what proves nothing moves nothing; a majority outvotes.
const ndr = { name: "ndr", loss: 0, exceed: 0.5 };
const steps = closing(
  [
    trial(0, 1000, "tester-fell-short"),
    trial(1, 100, "high-loss"),
    trial(2, 50, "low-loss"),
    trial(3, 70, "disturbed"),
    trial(4, 80, "high-loss"),
    trial(5, 80, "low-loss"),
  ],
  ndr,
);
assert.deepEqual(steps.map(({ lower, upper }) => [lower, upper]), [
  [null, null],
  [null, 100],
  [50, 100],
  [50, 100],
  [50, 80],
  [80, 100],
]);
assert.deepEqual(steps.map((step) => step.at), [1, 2, 3, 4, 5, 6]);

// Results are of both directions, loads of each.
const found = record([trial(0, 1e6, "high-loss"), trial(1, 101, "high-loss")], {
  ndr: { lower_pps: 200, upper_pps: 202 },
});
assert.deepEqual(intervals(found), [{ goal: "ndr", lower: 100, upper: 101 }]);
// A load far away is out of sight.
const [low, high] = focus(found);
assert(low > 90 && low < 100 && high > 101 && high < 110, `${low} to ${high}`);
// Without an interval all loads are shown.
const none = focus(record([trial(0, 1e6, "high-loss"), trial(1, 1e3, "high-loss")], {}));
assert(none[0] <= 1e3 && none[1] >= 1e6);
assert.deepEqual(focus(record([trial(0, 0, "high-loss")], { ndr: { lower_pps: 0, upper_pps: null } })), [0, 1]);
