// Opens the page of a bench of a device that is a graph of nodes in a real headless browser, on a screen and
// on a phone. Pictures go to a directory if one is named.
//
//     node nodes.mjs CHROMIUM PAGE.html [PICTURES]

import assert from "node:assert/strict";
import { browse, ink, reachAll } from "./browse.mjs";

const [chromium, file, pictures] = process.argv.slice(2);
assert(chromium && file, "usage: nodes.mjs CHROMIUM PAGE.html [PICTURES]");

const { open, close } = await browse(chromium, file);
try {
  for (const [width, scheme] of /** @type {const} */ ([[1400, "light"], [360, "dark"]])) {
    const page = await open({ width, height: 900 }, scheme);
    await reachAll(page);
    await costsFallWithTheLoad(page);
    await theTableIsThere(page, width);
    assert.equal(await page.getAttribute("html", "data-errors"), "");
    if (pictures) await page.screenshot({ path: `${pictures}/nodes-${width}-${scheme}.png`, fullPage: true });
    await page.close();
  }
} finally {
  await close();
}

/** By keyboard. @param {import("playwright-core").Page} page */
async function costsFallWithTheLoad(page) {
  const figure = page.locator('figure[data-kind="nodes"]');
  assert((await ink(figure.locator("canvas"))) > 300, "the picture is empty");
  await figure.focus();
  await page.keyboard.press("Home");
  const tooltip = figure.locator(".tooltip");
  assert.match(await tooltip.innerText(), /^VPP, 1 kpps\n.*, 4,082 clocks a packet\ndpdk-input: 1,510,000, 0\.0 a call\nethernet-input: 1,220, 1\.0 a call\n/);
  await page.keyboard.press("End");
  assert.match(await tooltip.innerText(), /^VPP, 10 Mpps\n.*, 235 clocks a packet\n/);
  await page.keyboard.press("Escape");
}

/** Whole on a screen; moved sideways within itself on a phone at most. @param {import("playwright-core").Page} page @param {number} width */
async function theTableIsThere(page, width) {
  const table = page.locator("table.nodes");
  assert.equal(await table.locator("tbody tr").count(), 8 + 4);
  const content = await page.evaluate(() => document.documentElement.scrollWidth);
  assert(content <= width, `the page is ${content} pixels wide in a window of ${width}`);
}
