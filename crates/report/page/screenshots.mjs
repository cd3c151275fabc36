// Photographs the first screen of a report page at the widths of a desktop, a tablet and a phone, in both
// colour schemes.
//
//     node screenshots.mjs CHROMIUM PAGE.html DIRECTORY

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { withPalette } from "./palette.mjs";
import { browse, settle } from "./test/browse.mjs";

const [chromium, file, directory] = process.argv.slice(2);
assert(chromium && file && directory, "usage: screenshots.mjs CHROMIUM PAGE.html DIRECTORY");

const SIZES = /** @type {const} */ ([[1280, 900], [800, 1100], [390, 844]]);
/** Pictures in a repository are downloaded by everyone who clones it. */
const MOST_BYTES = 150_000;

const { open, close } = await browse(chromium, file);
try {
  for (const [width, height] of SIZES) {
    for (const scheme of /** @type {const} */ (["light", "dark"])) {
      const page = await open({ width, height }, scheme);
      await settle(page);
      const path = join(directory, `first-screen-${width}-${scheme}.png`);
      const picture = withPalette(await page.screenshot());
      const size = picture.length;
      assert(size < MOST_BYTES, `${path} has ${size} bytes, more than ${MOST_BYTES}`);
      writeFileSync(path, picture);
      console.log(`${path}: ${Math.round(size / 1000)} kB`);
      await page.close();
    }
  }
} finally {
  await close();
}
