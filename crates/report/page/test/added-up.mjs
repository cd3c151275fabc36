// Checks the sums of both directions.
//
//     node added-up.mjs BUNDLED_ADDED_UP.mjs

import assert from "node:assert/strict";
import { pathToFileURL } from "node:url";

const bundle = process.argv[2];
assert(bundle, "usage: added-up.mjs BUNDLED_ADDED_UP.mjs");
/** @type {typeof import("../src/added-up")} */
const { addedUp } = await import(pathToFileURL(bundle).href);

/** @param {number} offered @param {number} forwarded @param {number} p50 */
const direction = (offered, forwarded, p50) => ({
  intended_pps: offered,
  offered_pps: offered,
  forwarded_pps: forwarded,
  loss_ratio: (offered - forwarded) / offered,
  l1_bps: forwarded * 672,
  l2_bps: forwarded * 512,
  latency: { p50_ns: p50, p99_ns: 2 * p50 },
});
/** @param {string} name @param {number} rate @param {number | null} upper @returns {import("../src/data").Direction} */
const verdict = (name, rate, upper) => ({
  name,
  max_rate_pps: rate,
  evidence: { limit: { lower_pps: rate - 10, upper_pps: upper } },
  latency_ns: [[10, 1], [20, 2]],
});
/** @type {import("../src/data").RunRecord} */
const record = {
  id: "a",
  name: "a",
  line_rate_bps: 1e9,
  elapsed_s: 2,
  strategy: { name: "ramp", parameters: {}, loss_threshold: 0.001 },
  profile: { mean_frame_size: 64 },
  directions: [verdict("0->1", 100, 120), verdict("1->0", 200, 220)],
  samples: [
    { at_s: 0, duration_s: 1, phase: "ramp", dut_core_busy: null, directions: [direction(100, 100, 5), direction(100, 100, 7)] },
    { at_s: 1, duration_s: 1, phase: "ramp", dut_core_busy: null, directions: [direction(200, 150, 9), direction(200, 200, 8)] },
  ],
};

const both = addedUp(record);
assert.deepEqual(both.directions.map(({ name, max_rate_pps }) => [name, max_rate_pps]), [["both", 300]]);
assert.deepEqual(both.directions[0]?.evidence, {
  limit: { lower_pps: 280, upper_pps: 340 },
  loss_began: { pps: 400, loss_ratio: 0.125 },
});
assert.deepEqual(both.directions[0]?.latency_ns, [[10, 2], [20, 4]]);
assert.deepEqual(both.samples[1]?.directions[0]?.latency, { p50_ns: 9, p99_ns: 18 });
assert.equal(both.samples[1]?.directions[0]?.forwarded_pps, 350);
assert.equal(both.line_rate_bps, 2e9);

// Without an upper bound in one direction there is none for both; one direction stays as it is.
const open = addedUp({ ...record, directions: [verdict("0->1", 100, 120), verdict("1->0", 200, null)] });
assert.equal(open.directions[0]?.evidence?.limit?.upper_pps, null);
const one = { ...record, directions: record.directions.slice(0, 1) };
assert.equal(addedUp(one), one);
