// The page of a run that goes on, in a headless browser: its charts move, no frame takes long, memory stays.
// node live.mjs CHROMIUM ADDRESS DIRECTORY SECONDS

import assert from "node:assert/strict";
import { join } from "node:path";
import { chromium } from "playwright-core";

const [executablePath = "", address = "", directory = "", seconds = "8"] = process.argv.slice(2);
/** The longest that the page's script may keep the browser from drawing. */
const LONGEST_MS = 50;
/** From this length on a run measures that. */
const MEASURED_S = 60;

const browser = await chromium.launch({
  executablePath,
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking", "--disable-sync", "--js-flags=--expose-gc"],
});
const page = await browser.newPage({ viewport: { width: 1280, height: 1100 } });
/** @type {string[]} */
const errors = [];
page.on("pageerror", (error) => errors.push(`script error: ${error}`));
page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
page.on("request", (request) => request.url().startsWith(address) || request.url() === "data:," || errors.push(`the page requested ${request.url()}`));
await page.goto(address);
await page.waitForSelector('html[data-ready="true"]', { state: "attached", timeout: 20_000 });
await page.waitForSelector("#charts canvas");

assert.match((await page.textContent("#state")) ?? "", /^ramp: /);
assert.equal(await page.locator("#last tr").count(), 2);
const kinds = await page.locator("#charts figure").evaluateAll((all) => all.map((it) => /** @type {HTMLElement} */ (it).dataset["kind"]));
assert.deepEqual(kinds.slice(0, 3), ["rate", "loss", "latency"]);

const picture = () => page.locator("#charts canvas").first().evaluate((it) => /** @type {HTMLCanvasElement} */ (it).toDataURL());
const heap = () =>
  page.evaluate(() => {
    /** @type {any} */ (globalThis).gc();
    return /** @type {any} */ (performance).memory.usedJSHeapSize;
  });
const canvases = await page.locator("canvas").count();
await page.evaluate(() => {
  /** @type {any} */ (globalThis).long = [];
  const watch = new PerformanceObserver((list) => list.getEntries().forEach((it) => /** @type {any} */ (globalThis).long.push(it.duration)));
  watch.observe({ type: "longtask" });
});
await page.waitForTimeout(2000);
const [before, heapBefore] = [await picture(), await heap()];
await page.evaluate(() => (/** @type {any} */ (globalThis).long.length = 0));
await page.waitForTimeout(Number(seconds) * 1000);
/** @type {number[]} */
const long = await page.evaluate(() => /** @type {any} */ (globalThis).long.slice());
const [after, heapAfter] = [await picture(), await heap()];
console.log(`frames over 50 ms: ${long.length} (longest ${Math.max(0, ...long)} ms); heap ${heapBefore} to ${heapAfter} bytes`);
await page.screenshot({ path: join(directory, "live.png") });

assert.notEqual(before, after, "the charts do not move");
assert.equal(await page.locator("canvas").count(), canvases, "charts are added instead of moved");
assert(heapAfter < heapBefore + 8e6, `memory grows from ${heapBefore} to ${heapAfter} bytes`);
// Only a long run is a measurement, on a machine that does nothing else; a busy one makes any page late.
if (Number(seconds) >= MEASURED_S) {
  assert.deepEqual(long.filter((duration) => duration > LONGEST_MS), [], `frames take ${long} ms`);
}

await page.selectOption("#unit", "percent");
assert.match((await page.textContent("#last td")) ?? "", /%$/);
await page.setViewportSize({ width: 390, height: 844 });
await page.waitForTimeout(300);
assert(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "a phone must scroll sideways");
await page.screenshot({ path: join(directory, "live-phone.png") });
assert.deepEqual(errors, []);
await browser.close();
