// Opens a report page in a real headless browser, uses it as a reader would, and fails at the
// first thing that is not as it should be. Pictures go to a directory if one is named.
//
//     node browser.mjs CHROMIUM PAGE.html [PICTURES]

import assert from "node:assert/strict";
import { browse, ink, reachAll, settle } from "./browse.mjs";

const [chromium, file, pictures] = process.argv.slice(2);
assert(chromium && file, "usage: browser.mjs CHROMIUM PAGE.html [PICTURES]");

/** The test with 64-byte frames, in which the devices' curves differ. */
const TEST = 'section[data-test="2"]';

const { open, close } = await browse(chromium, file);
try {
  const page = await open({ width: 1400, height: 900 }, "light");
  await everyChartHasInk(page);
  await tablesHoldFigures(page);
  await hidingAChannelRemovesItsInk(page);
  await controlsRedraw(page);
  await theCursorReadsAllCharts(page);
  await draggingZoomsAllChartsOfATest(page);
  await headingsSort(page);
  await aRecordOpensAndDownloads(page);
  assert.equal(await page.getAttribute("html", "data-errors"), "");
  await page.close();
  for (const [width, scheme] of /** @type {const} */ ([[1400, "light"], [1400, "dark"], [500, "light"], [500, "dark"]])) {
    await fits(width, scheme);
  }
} finally {
  await close();
}

/** Its chart of rates. @param {import("playwright-core").Page} page */
function rateChart(page) {
  return page.locator(`${TEST} figure[data-kind="rate"] canvas`);
}

/** @param {import("playwright-core").Page} page */
async function everyChartHasInk(page) {
  await reachAll(page);
  const tests = await page.locator("section[data-test]").count();
  const canvases = page.locator("figure canvas");
  const count = await canvases.count();
  assert(count >= tests * 4, `${count} charts for ${tests} tests`);
  for (const canvas of await canvases.all()) assert((await ink(canvas)) > 500, "a chart is empty");
}

/** @param {import("playwright-core").Page} page */
async function tablesHoldFigures(page) {
  const rate = /^(≥?\d+(\.\d+)? [kM]?pps[!~…]*|failed ×)$/;
  for (const cell of await page.locator(".matrix tbody td a").allTextContents()) assert.match(cell, rate);
  assert.equal(await page.locator("table.runs tbody tr").count(), await page.locator("details.run").count());
  for (const value of await page.locator(".card tbody tr:first-child td").allTextContents()) {
    assert.match(value, /^(\d+\.\d+ [kM]pps|–)$/);
  }
}

/** @param {import("playwright-core").Page} page */
async function hidingAChannelRemovesItsInk(page) {
  const blue = /** @type {[number, number, number]} */ ([0x00, 0x72, 0xb2]);
  const before = await ink(rateChart(page), blue);
  assert(before > 300, `${before} pixels of the first device`);
  const box = page.locator(`${TEST} input[data-channel]`).first();
  await box.uncheck();
  await settle(page);
  assert.equal(await ink(rateChart(page), blue), 0, "a hidden channel is still drawn");
  await box.check();
  await settle(page);
  assert.equal(await ink(rateChart(page), blue), before, "a channel shown again is not as it was");

  const device = page.locator('input[name="device"]').first();
  await device.uncheck();
  await settle(page);
  assert.equal(await ink(rateChart(page), blue), 0, "a hidden device is still drawn");
  await device.check();
  await settle(page);
}

/** @param {import("playwright-core").Page} page */
async function controlsRedraw(page) {
  const value = page.locator(`${TEST} .card tbody tr:first-child td`).first();
  for (const [name, choice, text] of /** @type {const} */ ([
    ["unit", "percent", /%$/],
    ["unit", "l1", /bps$/],
    ["against", "offered", /bps$/],
    ["loss", "log", /bps$/],
    ["unit", "pps", /pps$/],
    ["against", "time", /pps$/],
    ["loss", "linear", /pps$/],
  ])) {
    await page.locator(`input[name="${name}"][value="${choice}"]`).check({ force: true });
    await settle(page);
    assert.match((await value.textContent()) ?? "", text, `${name} = ${choice}`);
    assert((await ink(rateChart(page))) > 500, `nothing is drawn with ${name} = ${choice}`);
  }
}

/** @param {import("playwright-core").Page} page */
async function theCursorReadsAllCharts(page) {
  const place = page.locator(`${TEST} .card .place`).first();
  assert.equal(await place.textContent(), "at max rate ≤ 0.1 % loss");
  const over = page.locator(`${TEST} figure[data-kind="rate"] .u-over`);
  await over.scrollIntoViewIfNeeded();
  await over.hover({ position: { x: 200, y: 100 } });
  await settle(page);
  assert.match((await place.textContent()) ?? "", /^at \d+\.\d s$/);
  const cursors = page.locator(`${TEST} .charts .u-cursor-x:not(.u-off)`);
  assert((await cursors.count()) >= 2, "the cursor is in one chart only");
  await page.mouse.move(5, 5);
  await settle(page);
  assert.equal(await place.textContent(), "at max rate ≤ 0.1 % loss");
}

/** @param {import("playwright-core").Page} page */
async function draggingZoomsAllChartsOfATest(page) {
  const charts = page.locator(`${TEST} .charts canvas`);
  const pictures = () => charts.evaluateAll((all) => all.map((one) => /** @type {HTMLCanvasElement} */ (one).toDataURL()));
  const whole = await pictures();
  const over = page.locator(`${TEST} figure[data-kind="rate"] .u-over`);
  await over.scrollIntoViewIfNeeded();
  const box = await over.boundingBox();
  assert(box);
  await page.mouse.move(box.x + 0.2 * box.width, box.y + 100);
  await page.mouse.down();
  await page.mouse.move(box.x + 0.5 * box.width, box.y + 110, { steps: 5 });
  await page.mouse.up();
  await settle(page);
  const zoomed = await pictures();
  zoomed.forEach((picture, at) => assert.notEqual(picture, whole[at], `chart ${at} did not zoom`));
  await page.mouse.dblclick(box.x + 0.5 * box.width, box.y + 100);
  await page.mouse.move(5, 5);
  await settle(page);
  assert.deepEqual(await pictures(), whole, "a double-click does not show all again");
}

/** @param {import("playwright-core").Page} page */
async function headingsSort(page) {
  const heading = page.locator("table.runs thead th").filter({ hasText: "Forwarded" }).first();
  const column = () =>
    page
      .locator("table.runs tbody tr td:nth-child(4)")
      .evaluateAll((cells) => cells.map((cell) => Number(/** @type {HTMLElement} */ (cell).dataset["value"] ?? -1)));
  const unsorted = await column();
  const falling = [...unsorted].sort((a, b) => b - a);
  assert.notDeepEqual(unsorted, falling);
  await heading.locator("button").click();
  assert.deepEqual(await column(), falling, "the largest figures do not come first");
  assert.equal(await heading.getAttribute("aria-sort"), "descending");
  await heading.locator("button").click();
  const known = (/** @type {number[]} */ values) => values.filter((value) => value >= 0);
  const rising = await column();
  assert.deepEqual(known(rising), known(falling).reverse());
  assert.equal(rising[rising.length - 1], -1, "a run without figures is not the last");
  await page.locator("table.runs thead th button").first().click();
  const devices = await page.locator("table.runs tbody th a").allTextContents();
  assert.deepEqual(devices, [...devices].sort());
}

/** @param {import("playwright-core").Page} page */
async function aRecordOpensAndDownloads(page) {
  await page.locator(".matrix tbody td a").first().click();
  const details = page.locator("details[open]");
  await details.waitFor();
  assert.equal(await details.count(), 1);
  const [download] = await Promise.all([page.waitForEvent("download"), details.locator("button").click()]);
  const stream = await download.createReadStream();
  let text = "";
  for await (const chunk of stream) text += chunk;
  const record = JSON.parse(text);
  assert.equal(record.schema, "linerate/run/1");
  assert.equal(download.suggestedFilename(), `${record.id}.json`);
}

/**
 * The page is no wider than the window, and its charts are no wider than their place.
 * @param {number} width
 * @param {"light" | "dark"} scheme
 */
async function fits(width, scheme) {
  const page = await open({ width, height: 900 }, scheme);
  const content = await page.evaluate(() => document.documentElement.scrollWidth);
  assert(content <= width, `the page is ${content} pixels wide in a window of ${width}`);
  await everyChartHasInk(page);
  if (pictures) {
    await page.screenshot({ path: `${pictures}/${width}-${scheme}.png` });
    await page.screenshot({ path: `${pictures}/${width}-${scheme}-full.png`, fullPage: true });
  }
  await page.close();
}
