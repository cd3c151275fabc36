// Checks where numbers stand on an axis.
//
//     node number-axis.mjs BUNDLED_NUMBER_AXIS.mjs

import assert from "node:assert/strict";
import { pathToFileURL } from "node:url";

const bundle = process.argv[2];
assert(bundle, "usage: number-axis.mjs BUNDLED_NUMBER_AXIS.mjs");
/** @type {typeof import("../src/number-axis")} */
const { numberAxis } = await import(pathToFileURL(bundle).href);

/** @param {ReturnType<typeof numberAxis>} axis */
const labels = (axis) => (axis.splits?.(...axis.range) ?? []).map(axis.tick);

// Cores: as they are, with room at both ends.
const cores = numberAxis([4, 1, 2, 2]);
assert.equal(cores.logarithmic, false);
assert.equal(cores.place(2), 2);
assert.deepEqual(labels(cores), ["1", "2", "4"]);
assert(cores.range[0] <= 1 && cores.range[1] > 4, String(cores.range));

// Rules: each ten times as many is a step, and none is one step below the least.
const rules = numberAxis([0, 1, 10, 1000]);
assert.equal(rules.logarithmic, true);
assert.deepEqual([0, 1, 1000].map(rules.place), [0.1, 1, 1000]);
assert.deepEqual(labels(rules), ["0", "1", "10", "1,000"]);
assert(rules.range[0] > 0 && rules.range[0] < 0.1 && rules.range[1] > 1000, String(rules.range));

// Just under two decades are still seen as they are; two are not.
assert.equal(numberAxis([1, 99]).logarithmic, false);
assert.equal(numberAxis([1, 100]).logarithmic, true);

// Labels that would cover each other are left out; a single number has an axis, too.
const sizes = numberAxis([64, 65, 66, 512, 1024, 1500]);
assert.deepEqual(labels(sizes), ["64", "512", "1,024", "1,500"]);
for (const numbers of [[0], [7], []]) {
  const { range } = numberAxis(numbers);
  assert(range.every(Number.isFinite) && range[0] < range[1], `${numbers}: ${range}`);
}
