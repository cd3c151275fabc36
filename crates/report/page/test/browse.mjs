// What tests of pages share: a headless browser that forbids the network, and looks at canvases.

import assert from "node:assert/strict";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

/**
 * A browser that opens one page, as often as asked.
 * @param {string} executablePath
 * @param {string} file
 */
export async function browse(executablePath, file) {
  const address = pathToFileURL(file).href;
  const browser = await chromium.launch({
    executablePath,
    args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking", "--disable-sync"],
  });

  /**
   * The page when it is drawn, with all requests but the one for its file forbidden.
   * @param {{ width: number, height: number }} viewport
   * @param {"light" | "dark"} colorScheme
   */
  async function open(viewport, colorScheme) {
    const context = await browser.newContext({ viewport, colorScheme });
    const page = await context.newPage();
    page.on("request", (request) => {
      const known = request.url() === address || request.url().startsWith("blob:");
      assert(known, `the page requested ${request.url()}`);
    });
    page.on("pageerror", (error) => assert.fail(`script error: ${error}`));
    page.on("console", (message) => assert.notEqual(message.type(), "error", message.text()));
    await page.goto(address);
    await page.waitForSelector('html[data-ready="true"]', { state: "attached", timeout: 20_000 });
    assert.equal(await page.getAttribute("html", "data-errors"), "");
    return page;
  }

  return { open, close: () => browser.close() };
}

/**
 * How many pixels of a canvas are about the given colour, or drawn at all.
 * @param {import("playwright-core").Locator} canvas
 * @param {[number, number, number]} [colour]
 */
export function ink(canvas, colour) {
  return canvas.evaluate((element, colour) => {
    const canvas = /** @type {HTMLCanvasElement} */ (element);
    const context = canvas.getContext("2d");
    if (!context) return 0;
    const { data } = context.getImageData(0, 0, canvas.width, canvas.height);
    let count = 0;
    for (let at = 0; at < data.length; at += 4) {
      if ((data[at + 3] ?? 0) < 128) continue;
      const near = (/** @type {number} */ part) => Math.abs((data[at + part] ?? 0) - (colour?.[part] ?? 0)) < 24;
      if (!colour || (near(0) && near(1) && near(2))) count++;
    }
    return count;
  }, colour);
}

/** Unfolds all charts and goes through the page once: pictures are drawn when they come near the window. @param {import("playwright-core").Page} page */
export async function reachAll(page) {
  await page.evaluate(() => document.querySelectorAll("details.fold").forEach((fold) => fold.setAttribute("open", "")));
  const places = page.locator("details[open] .pictures.waiting, section.bench > .pictures.waiting, .charts.waiting");
  while ((await places.count()) > 0) {
    await places.first().scrollIntoViewIfNeeded();
    await settle(page);
    await settle(page);
  }
  await page.evaluate(() => scrollTo(0, 0));
  await settle(page);
}

/** Waits until what was asked for is drawn. @param {import("playwright-core").Page} page */
export function settle(page) {
  return page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
}
