// Checks the axis of losses: zero, then a decade each step.
//
//     node loss-axis.mjs BUNDLED_LOSS_AXIS.mjs

import assert from "node:assert/strict";
import { pathToFileURL } from "node:url";

const bundle = process.argv[2];
assert(bundle, "usage: loss-axis.mjs BUNDLED_LOSS_AXIS.mjs");
/** @type {typeof import("../src/loss-axis")} */
const { lossAxis, lossPlace, smallestLoss } = await import(pathToFileURL(bundle).href);

assert.deepEqual([0, 1e-4, 1e-3, 1].map((loss) => Math.round(lossPlace(loss, 1e-4))), [0, 1, 2, 5]);
assert.deepEqual([[0], [0.02], [0.00002, 0.5]].map((losses) => Math.log10(smallestLoss(losses))), [-3, -3, -5]);
const axis = lossAxis(1e-3);
assert.deepEqual(axis.splits?.(...axis.range).map(axis.tick), ["0", "0.1%", "1%", "10%", "100%"]);
