// Opens the page of more devices than there are colours in a real headless browser, and tells devices of one
// colour apart as a reader would. Pictures go to a directory if one is named.
//
//     node devices.mjs CHROMIUM PAGE.html [PICTURES]

import assert from "node:assert/strict";
import { browse, ink, reachAll, settle } from "./browse.mjs";

const [chromium, file, pictures] = process.argv.slice(2);
assert(chromium && file, "usage: devices.mjs CHROMIUM PAGE.html [PICTURES]");

/** The page gives the eighth device the colour of the first. */
const [FIRST, EIGHTH] = [0, 7];

const { open, close } = await browse(chromium, file);
try {
  for (const [width, scheme] of /** @type {const} */ ([[1400, "light"], [1400, "dark"]])) {
    const page = await open({ width, height: 900 }, scheme);
    await reachAll(page);
    await namesHaveShapes(page);
    await curvesHaveShapes(page);
    assert.equal(await page.getAttribute("html", "data-errors"), "");
    if (pictures) await page.screenshot({ path: `${pictures}/devices-${scheme}.png`, fullPage: true });
    await page.close();
  }
} finally {
  await close();
}

/** What stands before a device's name, and in which colour. @param {import("playwright-core").Locator} name */
function look(name) {
  return name.evaluate((element) => {
    const { content, color } = getComputedStyle(element, "::before");
    return { content, color };
  });
}

/** @param {import("playwright-core").Page} page */
async function namesHaveShapes(page) {
  const name = (/** @type {number} */ device) => page.locator(`input[name="device"][value="${device}"] + span`);
  const [first, eighth] = [await look(name(FIRST)), await look(name(EIGHTH))];
  assert.equal(first.content, "none");
  assert.equal(eighth.content, '"○"');
  const swatch = page.locator("table.runs tbody tr", { hasText: await name(EIGHTH).innerText() }).locator(".swatch").first();
  assert.equal(await swatch.evaluate((element) => getComputedStyle(element, "::after").content), '"○"');
}

/** Shapes are filled with the page's background, which nothing else on a chart is. @param {import("playwright-core").Page} page */
async function curvesHaveShapes(page) {
  const test = page.locator('section[data-test]:has(.card header a)').first();
  await test.scrollIntoViewIfNeeded();
  const canvas = test.locator('figure[data-kind="rate"] canvas');
  const shown = async (/** @type {number} */ device) => {
    for (const box of await page.locator('input[name="device"]').all()) {
      await box.setChecked((await box.getAttribute("value")) === String(device));
    }
    await settle(page);
    return canvas.evaluate((element) => {
      const canvas = /** @type {HTMLCanvasElement} */ (element);
      const { data } = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d")).getImageData(0, 0, canvas.width, canvas.height);
      const background = (getComputedStyle(document.body.parentElement ?? document.body).backgroundColor.match(/\d+/g) ?? []).map(Number);
      let filled = 0;
      for (let at = 0; at < data.length; at += 4) {
        if (data[at + 3] === 255 && background.every((part, place) => data[at + place] === part)) filled++;
      }
      return filled;
    });
  };
  const [first, eighth] = [await shown(FIRST), await shown(EIGHTH)];
  assert(first === 0 && eighth > 50, `${eighth} pixels within the shapes of a device, ${first} of one that needs none`);
  assert((await ink(canvas)) > 500);
}
