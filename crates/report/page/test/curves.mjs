// Checks the arithmetic between records and curves.
//
//     node curves.mjs BUNDLED_CURVES.mjs

import assert from "node:assert/strict";
import { pathToFileURL } from "node:url";

const bundle = process.argv[2];
assert(bundle, "usage: curves.mjs BUNDLED_CURVES.mjs");
/** @type {typeof import("../src/curves")} */
const { limitAt, nearest, percentiles, points } = await import(pathToFileURL(bundle).href);

/**
 * A record of frames of 64 bytes on 10 Gb/s: offered and forwarded of each second from 3 s on.
 * @param {[offered: number, forwarded: number][]} rates
 * @param {number} lossless
 * @returns {import("../src/data").RunRecord}
 */
function record(rates, lossless) {
  return {
    id: "a",
    name: "a",
    line_rate_bps: 10e9,
    elapsed_s: 1 + rates.length,
    strategy: { name: "ramp", parameters: {}, loss_threshold: 0.001 },
    profile: { mean_frame_size: 64 },
    directions: [{ name: "0->1", max_rate_pps: lossless, latency_ns: [] }],
    samples: [/** @type {[number, number]} */ ([9, 9]), ...rates].map(([offered, forwarded], at) => ({
      at_s: 2 + at,
      duration_s: 1,
      phase: at === 0 ? "warm-up" : "ramp",
      dut_core_busy: null,
      directions: [
        {
          intended_pps: offered,
          offered_pps: offered,
          forwarded_pps: forwarded,
          loss_ratio: (offered - forwarded) / offered,
          l1_bps: forwarded * 84 * 8,
          l2_bps: forwarded * 64 * 8,
        },
      ],
    })),
  };
}

const ramp = record([[100, 100], [200, 200], [300, 240], [300, 260]], 200);

// Against time: one point a sample, in its middle, from the end of the warm-up.
const time = points(ramp, 0, { unit: "pps", against: "time" });
assert.deepEqual(time.x, [0.5, 1.5, 2.5, 3.5]);
assert.deepEqual(time.forwarded, [100, 200, 240, 260]);
assert.deepEqual(time.p50, [null, null, null, null]);

// Against offered load: samples of one load are one point.
const offered = points(ramp, 0, { unit: "l2", against: "offered" });
assert.deepEqual(offered.x, [100, 200, 300].map((pps) => pps * 512));
assert.deepEqual(offered.forwarded, [100, 200, 250].map((pps) => pps * 512));
assert.equal(offered.loss[2], 50 / 300);

// A full line of 64-byte frames is 14.88 Mpps, and 100 %.
const full = points(record([[10e9 / 672, 10e9 / 672]], 0), 0, { unit: "percent", against: "offered" });
assert(Math.abs((full.x[0] ?? 0) - 100) < 1e-9 && Math.abs((full.forwarded[0] ?? 0) - 100) < 1e-9);

// The lossless limit is where the highest lossless load was offered; without one it is nowhere.
assert.equal(limitAt(ramp, 0, { unit: "pps", against: "time" }), 1.5);
assert.equal(limitAt(ramp, 0, { unit: "l1", against: "offered" }), 200 * 672);
// A sample in which a frame more left than was intended is not beyond it.
const ahead = record([[100, 100], [200, 200]], 200);
for (const sample of ahead.samples) for (const direction of sample.directions) direction.offered_pps *= 1.00001;
assert.equal(limitAt(ahead, 0, { unit: "pps", against: "time" }), 1.5);
assert.equal(limitAt(record([[100, 50]], 0), 0, { unit: "pps", against: "time" }), null);

// The nearest sample, up to one spacing beyond the ends.
assert.deepEqual([-2, -0.5, 0.4, 0.6, 2.9, 4.1].map((x) => nearest([0, 1, 2, 3], x)), [null, 0, 0, 1, 3, null]);
assert.equal(nearest([], 0), null);

// 90 of 100 frames stayed within 10 ns, 99 within 20 ns, all within 40 ns.
const { x, y } = percentiles([[10, 90], [20, 9], [40, 1]]);
const at = (/** @type {number} */ nines) => y[x.findIndex((value) => value >= nines - 1e-9)];
assert.deepEqual([at(0), at(0.5), at(1), at(1.5), at(2)], [10, 10, 10, 20, 20]);
assert.equal(y[y.length - 1], 40);
assert.deepEqual(percentiles([]), { x: [], y: [] });
