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
  await chartsAreFolded(page);
  await everyChartHasInk(page);
  await gaugesStandBelowTheCharts(page);
  await tablesHoldFigures(page);
  await hidingAChannelRemovesItsInk(page);
  await controlsRedraw(page);
  await theCursorReadsAllCharts(page);
  await draggingZoomsAllChartsOfATest(page);
  await headingsSort(page);
  await aRecordOpensAndDownloads(page);
  await chartsAreSaved(page);
  await tablesAreCopiedAsMarkdown(page);
  assert.equal(await page.getAttribute("html", "data-errors"), "");
  await page.close();
  for (const [width, scheme] of /** @type {const} */ ([[1400, "light"], [1400, "dark"], [390, "light"], [390, "dark"]])) {
    await fits(width, scheme);
  }
} finally {
  await close();
}

/** Its chart of rates. @param {import("playwright-core").Page} page */
function rateChart(page) {
  return page.locator(`${TEST} figure[data-kind="rate"] canvas`);
}

/** A row of the table unfolds the charts of its test. @param {import("playwright-core").Page} page */
async function chartsAreFolded(page) {
  assert.equal(await page.locator("details.fold[open]").count(), 0, "charts are unfolded before anyone asks");
  assert.equal(await page.locator("#tests canvas").count(), 0);
  const first = page.locator("details.fold").first();
  await first.locator("summary").click();
  await first.locator("canvas").first().waitFor();
  await page.locator('.matrix a[href="#test-2"]').click();
  await page.locator(`${TEST} canvas`).first().waitFor();
}

/** One for each device, named. @param {import("playwright-core").Page} page */
async function gaugesStandBelowTheCharts(page) {
  const gauges = page.locator(`${TEST} .charts figure[data-kind="gauge"]`);
  assert.equal(await gauges.count(), 2);
  assert.match((await gauges.first().locator("figcaption").textContent()) ?? "", /^Power over time, \S/);
  assert((await ink(gauges.first().locator("canvas"))) > 300, "the picture is empty");
}

/**
 * What a click on a button saves.
 * @param {import("playwright-core").Page} page
 * @param {import("playwright-core").Locator} button
 */
async function saved(page, button) {
  const [download] = await Promise.all([page.waitForEvent("download"), button.click()]);
  const stream = await download.createReadStream();
  const parts = [];
  for await (const part of stream) parts.push(part);
  return { name: download.suggestedFilename(), content: Buffer.concat(parts) };
}

/** Of drawings in the markup and of charts on a canvas. @param {import("playwright-core").Page} page */
async function chartsAreSaved(page) {
  const figures = ['figure[data-name="rates"]', 'figure[data-name="topology"]', `${TEST} figure[data-kind="rate"]`, `${TEST} figure[data-kind="percentiles"]`];
  for (const figure of figures) {
    const svg = await saved(page, page.locator(`${figure} .tools button`, { hasText: "SVG" }));
    const text = svg.content.toString();
    assert.match(svg.name, /\.svg$/);
    const shapes = text.match(/<(path|rect)\b/g) ?? [];
    assert(text.startsWith("<svg") && shapes.length > 5, `${figure}: ${text.length} bytes, ${shapes.length} shapes`);
    assert(text.includes("</text>"), `${figure}: no text`);
    assert(!text.includes("var(--"), `${figure}: a colour of the page`);
    if (pictures) await import("node:fs").then((fs) => fs.writeFileSync(`${pictures}/${svg.name}`, svg.content));
    const png = await saved(page, page.locator(`${figure} .tools button`, { hasText: "PNG" }));
    assert.equal(png.content.subarray(1, 4).toString(), "PNG");
    assert(png.content.length > 5000, `${figure}: a PNG of ${png.content.length} bytes`);
    if (pictures) await import("node:fs").then((fs) => fs.writeFileSync(`${pictures}/${png.name}`, png.content));
  }
  // Curves are drawn after that as before.
  assert((await ink(rateChart(page))) > 500);
}

/** @param {import("playwright-core").Page} page */
async function tablesAreCopiedAsMarkdown(page) {
  await page.evaluate(() => {
    const clipboard = { writeText: (/** @type {string} */ text) => Promise.resolve(Object.assign(window, { copied: text })) };
    Object.defineProperty(navigator, "clipboard", { value: clipboard, configurable: true });
  });
  await page.locator(".scroll:has(.matrix) + .copy-table").click();
  const lines = (await page.evaluate(() => /** @type {{ copied?: string }} */ (/** @type {unknown} */ (window)).copied ?? "")).trim().split("\n");
  const devices = await page.locator(".matrix thead th").count();
  const rows = await page.locator(".matrix tbody tr").count();
  assert.equal(lines.length, rows + 2);
  for (const line of lines) assert.equal(line.split("|").length, devices + 3, line);
  assert.match(lines[1] ?? "", /^\| --- \| ---: /);
  assert.match(lines.find((line) => line.startsWith("| 64 B |")) ?? "", /\| \d\.\d\d Mpps, \d/);
}

/** @param {import("playwright-core").Page} page */
async function everyChartHasInk(page) {
  await reachAll(page);
  const tests = await page.locator("section[data-test]").count();
  const canvases = page.locator("figure canvas");
  const count = await canvases.count();
  const same = await page.locator("[data-carried-all]").count();
  assert(same >= 2, "the tests in which every device carried everything have all charts");
  assert(count >= tests * 4 - same * 2, `${count} charts for ${tests} tests`);
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
  const charts = page.locator(`${TEST} .charts > figure canvas`);
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
  const details = page.locator("details.run[open]");
  await details.waitFor();
  assert.equal(await details.count(), 1);
  const [download] = await Promise.all([page.waitForEvent("download"), details.locator("button[data-download]").click()]);
  const stream = await download.createReadStream();
  let text = "";
  for await (const chunk of stream) text += chunk;
  const record = JSON.parse(text);
  assert.equal(record.schema, "linerate/run/1");
  assert.equal(download.suggestedFilename(), `${record.id}.json`);
}

/**
 * No text of a drawing is cut or covers another, and a drawing has one form on each screen.
 * @param {import("playwright-core").Page} page
 */
async function drawingsAreWhole(page) {
  const drawings = page.locator("figure.drawing > svg:visible");
  assert.equal(await drawings.count(), 2, "not one chart and one topology");
  for (const drawing of await drawings.all()) {
    const wrong = await drawing.evaluate((svg) => {
      const frame = svg.getBoundingClientRect();
      const texts = [...svg.querySelectorAll("text")].map((text) => ({ text: text.textContent ?? "", box: text.getBoundingClientRect() }));
      const cut = texts.filter(({ box }) => box.left < frame.left - 1 || box.right > frame.right + 1 || box.bottom > frame.bottom + 1);
      // Letters do not fill the height of their line.
      const meet = (/** @type {DOMRect} */ a, /** @type {DOMRect} */ b) =>
        a.left < b.right && b.left < a.right && a.top + 3 < b.bottom - 3 && b.top + 3 < a.bottom - 3;
      const pairs = texts.flatMap((one, at) => texts.slice(at + 1).filter((other) => meet(one.box, other.box)).map((other) => `${one.text} covers ${other.text}`));
      return [...cut.map(({ text }) => `${text} is cut`), ...pairs];
    });
    assert.deepEqual(wrong, []);
  }
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
  await drawingsAreWhole(page);
  await everyChartHasInk(page);
  if (pictures) {
    await page.screenshot({ path: `${pictures}/${width}-${scheme}.png` });
    await page.screenshot({ path: `${pictures}/${width}-${scheme}-full.png`, fullPage: true });
  }
  await page.close();
}
