// Opens the page of a bench in a real headless browser, and reads it as a reader would. Pictures go to a
// directory if one is named.
//
//     node bench.mjs CHROMIUM PAGE.html [PICTURES]

import assert from "node:assert/strict";
import { browse, ink, reachAll, settle } from "./browse.mjs";

const [chromium, file, pictures] = process.argv.slice(2);
assert(chromium && file, "usage: bench.mjs CHROMIUM PAGE.html [PICTURES]");

/** The colours of the first two devices. */
const BLUE = /** @type {[number, number, number]} */ ([0x00, 0x72, 0xb2]);
const RED = /** @type {[number, number, number]} */ ([0xd5, 0x5e, 0x00]);

const { open, close } = await browse(chromium, file);
try {
  const page = await open({ width: 1400, height: 900 }, "light");
  await everyPictureHasInk(page);
  await pointsTellTheirFigures(page);
  await draggingZooms(page);
  await unitsAndDevicesChangeThePictures(page);
  await headingsSort(page);
  await repeatsAreFaintAndCanBeHidden(page);
  await linksAreNamed(page);
  await roundsStandBesideTheirInterval(page);
  await whatIsFoldedOpens(page);
  await aFlameGraphRunsInItsOwnFrame(page);
  assert.equal(await page.getAttribute("html", "data-errors"), "");
  await page.close();
  for (const [width, scheme] of /** @type {const} */ ([[1400, "light"], [1400, "dark"], [360, "light"], [360, "dark"]])) {
    await fits(width, scheme);
  }
} finally {
  await close();
}

/** @param {import("playwright-core").Page} page */
function bench(page) {
  return page.locator("section.bench");
}

/** The first picture of a kind. @param {import("playwright-core").Page} page @param {string} kind */
function figure(page, kind) {
  return bench(page).locator(`figure[data-kind="${kind}"]`).first();
}

/** @param {import("playwright-core").Locator} figure */
function picture(figure) {
  return figure.locator("canvas").evaluate((one) => /** @type {HTMLCanvasElement} */ (one).toDataURL());
}

/** One of each kind for each way. @param {import("playwright-core").Page} page */
async function everyPictureHasInk(page) {
  await reachAll(page);
  const kinds = await bench(page).locator("figure").evaluateAll((all) => all.map((one) => /** @type {HTMLElement} */ (one).dataset["kind"]));
  assert.deepEqual(kinds, ["scaling", "scaling", "spread", "spread"]);
  for (const canvas of await bench(page).locator("canvas").all()) {
    assert((await ink(canvas)) > 500, "a picture is empty");
    assert((await ink(canvas, RED)) > 20, "a device is missing");
  }
}

/** By keyboard. @param {import("playwright-core").Page} page */
async function pointsTellTheirFigures(page) {
  for (const [kind, text] of /** @type {const} */ ([
    ["scaling", /^1 rule, 64 B\nmedian of 6: 1\.0\d+ Mpps\ninterval of the median 1\.0\d+ Mpps – 1\.0\d+ Mpps/],
    ["spread", /^none \(baseline\)\nmedian of 6: 1\.1\d+ Mpps\n/],
  ])) {
    await figure(page, kind).focus();
    await page.keyboard.press("Home");
    assert.match(await figure(page, kind).locator(".tooltip").innerText(), text);
    await page.keyboard.press("Escape");
  }
}

/** @param {import("playwright-core").Page} page */
async function draggingZooms(page) {
  const one = figure(page, "scaling");
  await one.scrollIntoViewIfNeeded();
  const whole = await picture(one);
  const box = await one.locator(".u-over").boundingBox();
  assert(box);
  await page.mouse.move(box.x + 0.1 * box.width, box.y + 0.1 * box.height);
  await page.mouse.down();
  await page.mouse.move(box.x + 0.6 * box.width, box.y + 0.6 * box.height, { steps: 5 });
  await page.mouse.up();
  await page.mouse.move(5, 5);
  await settle(page);
  assert((await picture(one)) !== whole, "the picture did not zoom");
  // Where no point is near.
  await page.mouse.dblclick(box.x + 0.75 * box.width, box.y + 0.2 * box.height);
  await page.mouse.move(5, 5);
  await settle(page);
  assert((await picture(one)) === whole, "a double-click does not show all again");
}

/** @param {import("playwright-core").Page} page */
async function unitsAndDevicesChangeThePictures(page) {
  const before = await picture(figure(page, "spread"));
  await page.locator('input[name="unit"][value="percent"]').check({ force: true });
  await settle(page);
  assert.match(await figure(page, "spread").locator("figcaption").innerText(), /% of line rate/);
  await page.locator('input[name="unit"][value="pps"]').check({ force: true });
  const device = page.locator('input[name="device"]').first();
  const canvas = figure(page, "spread").locator("canvas");
  assert((await ink(canvas, BLUE)) > 20);
  await device.uncheck();
  await settle(page);
  assert.equal(await ink(canvas, BLUE), 0, "a hidden device is still drawn");
  await device.check();
  await settle(page);
  assert((await picture(figure(page, "spread"))) === before, "a device shown again is not as it was");
}

/** @param {import("playwright-core").Page} page */
async function headingsSort(page) {
  const table = bench(page).locator("table.bench-matrix");
  const names = () => table.locator("tbody th").allInnerTexts();
  assert.match((await names()).join(), /^none[^,]*,1 rule,10 rules,1,000 rules$/);
  const heading = table.locator("thead tr:last-child th").nth(1);
  await heading.locator("button").click();
  await heading.locator("button").click();
  assert.equal(await heading.getAttribute("aria-sort"), "ascending");
  assert.match((await names()).join(), /^1,000 rules,/);
  await table.locator("thead tr:last-child th button").first().click();
  assert.match((await names()).join(), /^1 rule,10 rules,/);
}

/** @param {import("playwright-core").Page} page */
async function repeatsAreFaintAndCanBeHidden(page) {
  const test = page.locator("section[data-test]").first();
  await test.scrollIntoViewIfNeeded();
  await test.locator("canvas").first().waitFor();
  assert.equal(await test.locator(".card").count(), 5, "there is not one card for each device");
  const canvas = test.locator('figure[data-kind="rate"] canvas');
  const [all, strong] = [await ink(canvas), await ink(canvas, RED)];
  await page.locator('input[name="repeats"]').uncheck();
  await settle(page);
  assert((await ink(canvas)) < all, "repeats are still drawn");
  assert((await ink(canvas, RED)) > strong / 2, "the median is not drawn without repeats");
  await test.locator("input[data-channel]").nth(1).uncheck();
  await page.locator('input[name="repeats"]').check();
  await settle(page);
  assert.equal(await ink(canvas, RED), 0, "a device that was hidden here is still drawn");
  await test.locator("input[data-channel]").nth(1).check();
}

/** Of each cell. @param {import("playwright-core").Page} page */
async function linksAreNamed(page) {
  const table = bench(page).locator("table.bandwidths");
  assert(await table.isVisible());
  assert.match(await table.locator("thead").innerText(), /as IMIX\s+line rate at 64 B\s+at its own size\s+with IMIX/);
  const cells = await bench(page).locator("table.bench-matrix tbody td a").count();
  assert.equal(await table.locator("tbody tr").count(), cells);
  assert.match(await table.locator("tbody tr").first().innerText(), /^none\s+64 B, one way\s+1\.1\d Mpps\s+3\.\d+ Gbps\s+100 Mbps\s+100 Mbps\s+2\.5 Gbps$/);
}

/** Each round is a point, and the interval does not hide it. @param {import("playwright-core").Page} page */
async function roundsStandBesideTheirInterval(page) {
  const picture = bench(page).locator("table.judged svg.error-plot").first();
  assert.equal(await picture.locator("circle.round").count(), 6);
  assert.match((await picture.locator("circle.round title").first().textContent()) ?? "", /^round 1: [+−-]\d+\.\d+ %$/);
}

/** @param {import("playwright-core").Page} page */
async function whatIsFoldedOpens(page) {
  const block = bench(page).locator("details.blocks").first();
  assert(await block.locator("pre").first().isHidden());
  await block.locator("summary").click();
  assert.match(await block.locator("pre").first().innerText(), /^x none\n\+ 1 rule\n\+-{20,}/);
  await bench(page).locator("details.repetition > summary").click();
  const copied = bench(page).locator(".copied").first();
  assert.equal((await copied.locator("pre").innerText()).trim(), "sudo linerate bench rules.toml");
  await copied.locator("button").click();
  await page.waitForFunction(() => /Copied|Ctrl-C/.test(document.querySelector(".copied button")?.textContent ?? ""));

  await bench(page).locator(".bench-matrix tbody td a").first().click();
  const record = page.locator("details.run[open]");
  await record.locator(".facts").waitFor();
  assert.equal(await record.locator("button[data-download]").count(), 1);
  const bandwidth = record.locator("section", { has: page.locator("h3", { hasText: "As bandwidth" }) });
  assert.match(await bandwidth.innerText(), /simple IMIX \(7:4:1\)\s+[\d.]+ [MG]bps\s+line rate sustained\s+in one direction\s+with 64-byte frames\s+/);
}

/** Its script runs, and reaches nothing. @param {import("playwright-core").Page} page */
async function aFlameGraphRunsInItsOwnFrame(page) {
  assert.equal(await page.locator("iframe").count(), 0, "a closed flame graph is loaded");
  await page.locator("details.flame-graph summary").click();
  const rectangle = page.frameLocator("iframe").locator("rect");
  await rectangle.waitFor();
  await page.waitForTimeout(100);
  assert.equal(await rectangle.getAttribute("fill"), "rgb(0, 128, 0)", "its script did not run");
  assert.notEqual(await page.title(), "reached", "its script reached the page");
}

/**
 * The page is no wider than the window.
 * @param {number} width
 * @param {"light" | "dark"} scheme
 */
async function fits(width, scheme) {
  const page = await open({ width, height: 900 }, scheme);
  await reachAll(page);
  await page.evaluate(() => document.querySelectorAll(".bench details").forEach((one) => one.setAttribute("open", "")));
  const content = await page.evaluate(() => document.documentElement.scrollWidth);
  assert(content <= width, `the page is ${content} pixels wide in a window of ${width}`);
  for (const canvas of await bench(page).locator("canvas").all()) assert((await ink(canvas)) > 300, "a picture is empty");
  if (pictures) {
    await page.evaluate(() => document.querySelectorAll(".bench details").forEach((one) => one.removeAttribute("open")));
    await page.screenshot({ path: `${pictures}/bench-${width}-${scheme}.png`, fullPage: true });
  }
  await page.close();
}
