// Opens a report page of runs that are no ramps in a real headless browser, and reads their panels
// as a reader would. Pictures go to a directory if one is named.
//
//     node panels.mjs CHROMIUM PAGE.html [PICTURES]

import assert from "node:assert/strict";
import { browse, ink, reachAll, settle } from "./browse.mjs";

const [chromium, file, pictures] = process.argv.slice(2);
assert(chromium && file, "usage: panels.mjs CHROMIUM PAGE.html [PICTURES]");

const { open, close } = await browse(chromium, file);
try {
  const page = await open({ width: 1400, height: 900 }, "light");
  await everyPictureHasInk(page);
  await pointsTellTheirFigures(page);
  await theChosenGoalIsDrawn(page);
  await everyStrategyTells(page);
  await disturbedTrialsTellTheirNoise(page);
  await draggingZoomsAndADoubleClickShowsAll(page);
  await unitsChangeWhatPointsSay(page);
  await closedPanelsDrawWhenOpened(page);
  await hiddenDevicesHideTheirPanels(page);
  assert.equal(await page.getAttribute("html", "data-errors"), "");
  await page.close();
  for (const [width, scheme] of /** @type {const} */ ([[1400, "light"], [1400, "dark"], [420, "light"], [420, "dark"]])) {
    await fits(width, scheme);
  }
} finally {
  await close();
}

/** The first panel of a search. @param {import("playwright-core").Page} page */
function search(page) {
  return page.locator("details.panel[open]").filter({ has: page.locator('figure[data-kind="search"]') }).first();
}

/** @param {import("playwright-core").Page} page */
async function everyPictureHasInk(page) {
  await reachAll(page);
  const panels = await page.locator("details.panel[open]").count();
  assert(panels > 0, "no panel is open");
  for (const panel of await page.locator("details.panel[open]").all()) {
    const canvases = await panel.locator(".pictures canvas").all();
    assert(canvases.length > 0, "a panel has no picture");
    for (const canvas of canvases) assert((await ink(canvas)) > 500, "a picture is empty");
    assert((await panel.locator("table.figures tbody td").count()) > 0, "a panel has no figures");
  }
}

/** By mouse and by keyboard. @param {import("playwright-core").Page} page */
async function pointsTellTheirFigures(page) {
  const figure = search(page).locator('figure[data-kind="search"]');
  const tooltip = figure.locator(".tooltip");
  assert(await tooltip.isHidden());
  await figure.scrollIntoViewIfNeeded();
  await figure.focus();
  await page.keyboard.press("End");
  const last = await tooltip.innerText();
  assert.match(last, /^\d+(\.\d+)? [kM]?pps.*\nlost [\d.]+% in [\d.]+ s, from \d+\.\d s on\nndr: .+\npdr: .+/);
  await page.keyboard.press("ArrowLeft");
  assert.notEqual(await tooltip.innerText(), last);
  await page.keyboard.press("Escape");
  assert(await tooltip.isHidden());

  // A click gives the picture the focus.
  await figure.locator(".u-over").click({ position: { x: 3, y: 3 } });
  await page.mouse.move(5, 5);
  await settle(page);
  await page.keyboard.press("Home");
  assert(await tooltip.isVisible(), "a picture that was clicked does not listen to keys");
  await page.keyboard.press("Escape");

  const loss = search(page).locator('figure[data-kind="search-loss"]');
  const box = await loss.locator(".u-over").boundingBox();
  assert(box);
  // Somewhere on the line of no loss there is a trial.
  let text = "";
  for (let x = 5; x < box.width && text === ""; x += 10) {
    await page.mouse.move(box.x + x, box.y + box.height - 12);
    await settle(page);
    if (await loss.locator(".tooltip").isVisible()) text = await loss.locator(".tooltip").innerText();
  }
  assert.match(text, /lost 0% in/);
  await page.mouse.move(5, 5);
  await settle(page);
  assert(await loss.locator(".tooltip").isHidden());
}

/** The first point of each picture. @param {import("playwright-core").Page} page */
async function everyStrategyTells(page) {
  for (const [kind, text] of /** @type {const} */ ([
    ["latency", /^50% within [\d.]+ µs\nat unloaded, longest [\d.]+ [mµ]s/],
    ["soak-loss", /^0\.1% lost at 5\.00 s\n0→1: 0\.1% of 1,000 frames/],
    ["soak-latency", /^median [\d.]+ µs\n0→1 at 0\.00 s/],
    ["stalls", /^100\.00 pps: forwards\n0 of 3 trials stalled/],
    ["waterfall", /^memory: 12\.5 ns per frame\n80\.00 Mpps/],
    ["built", /^79\.74 Mpps at 64 bytes\nmemory, 1 core/],
    ["rfc2544-rate", /^[\d.]+ Mpps at 64 bytes\n\d+% of the theoretical 3\.72 Mpps/],
    ["rfc2544-loss", /^0% lost at 20% load\n64 bytes, 744\.05 kpps offered/],
  ])) {
    const figure = page.locator(`details.panel[open] figure[data-kind="${kind}"]`).first();
    await figure.focus();
    await page.keyboard.press("Home");
    assert.match(await figure.locator(".tooltip").innerText(), text);
    await page.keyboard.press("Escape");
  }
}

/** @param {import("playwright-core").Page} page */
async function disturbedTrialsTellTheirNoise(page) {
  const panel = page.locator("details.panel[open]").filter({ hasText: "host interference affected too many trials" }).first();
  const figure = panel.locator('figure[data-kind="search"]');
  await figure.scrollIntoViewIfNeeded();
  await settle(page);
  assert.match(await figure.locator(".key").innerText(), /unclear: lost more, but the machine may be why/);
  assert.match(await figure.locator(".key").innerText(), /ringed: disturbed/);
  await figure.focus();
  await page.keyboard.press("End");
  assert.match(
    await figure.locator(".tooltip").innerText(),
    /ndr: unclear: .+\npdr: unclear: .+\nthe machine may have cost up to 80% of the frames\ndisturbed: the hypervisor/,
  );
  await page.keyboard.press("Escape");
}

/** @param {import("playwright-core").Page} page */
async function theChosenGoalIsDrawn(page) {
  const canvas = search(page).locator('figure[data-kind="search"] canvas');
  const picture = () => canvas.evaluate((one) => /** @type {HTMLCanvasElement} */ (one).toDataURL());
  const ndr = await picture();
  await search(page).locator('input[value="pdr"]').check({ force: true });
  await settle(page);
  assert.notEqual(await picture(), ndr, "another goal draws the same");
  assert.match(await search(page).locator('figure[data-kind="search"] figcaption').innerText(), /interval of pdr/);
  await search(page).locator('input[value="ndr"]').check({ force: true });
  await settle(page);
  assert.equal(await picture(), ndr, "the first goal is not drawn as before");
}

/** @param {import("playwright-core").Page} page */
async function draggingZoomsAndADoubleClickShowsAll(page) {
  const figure = search(page).locator('figure[data-kind="search"]');
  const picture = () =>
    figure.locator("canvas").evaluate((one) => /** @type {HTMLCanvasElement} */ (one).toDataURL());
  await figure.scrollIntoViewIfNeeded();
  const whole = await picture();
  const box = await figure.locator(".u-over").boundingBox();
  assert(box);
  await page.mouse.move(box.x + 0.2 * box.width, box.y + 0.2 * box.height);
  await page.mouse.down();
  await page.mouse.move(box.x + 0.6 * box.width, box.y + 0.7 * box.height, { steps: 5 });
  await page.mouse.up();
  await page.mouse.move(5, 5);
  await settle(page);
  assert.notEqual(await picture(), whole, "the picture did not zoom");
  await page.mouse.dblclick(box.x + 0.5 * box.width, box.y + 0.5 * box.height);
  await page.mouse.move(5, 5);
  await settle(page);
  assert.equal(await picture(), whole, "a double-click does not show all again");
}

/** @param {import("playwright-core").Page} page */
async function unitsChangeWhatPointsSay(page) {
  for (const [unit, text] of /** @type {const} */ ([["percent", /^[\d.]+%/], ["l1", /^[\d.]+ [MG]bps/], ["pps", /^[\d.]+ [kM]pps/]])) {
    await page.locator(`input[name="unit"][value="${unit}"]`).check({ force: true });
    await settle(page);
    await search(page).locator('figure[data-kind="search"]').focus();
    await page.keyboard.press("End");
    assert.match(await search(page).locator(".tooltip:visible").innerText(), text);
  }
  await page.keyboard.press("Escape");
}

/** Repeats are closed until someone looks. @param {import("playwright-core").Page} page */
async function closedPanelsDrawWhenOpened(page) {
  const closed = page.locator("details.panel:not([open])");
  if ((await closed.count()) === 0) return;
  const panel = page.locator(`details.panel[data-runs="${await closed.first().getAttribute("data-runs")}"]`);
  assert.equal(await panel.locator("canvas").count(), 0);
  await panel.locator("summary").click();
  await panel.locator("canvas").first().waitFor();
  assert((await ink(panel.locator("canvas").first())) > 500, "an opened panel is empty");
}

/** @param {import("playwright-core").Page} page */
async function hiddenDevicesHideTheirPanels(page) {
  const panels = page.locator('details.panel[data-device="0"]');
  const box = page.locator('input[name="device"][value="0"]');
  await box.uncheck();
  assert(await panels.first().isHidden());
  await box.check();
  assert(await panels.first().isVisible());
}

/**
 * The page is no wider than the window.
 * @param {number} width
 * @param {"light" | "dark"} scheme
 */
async function fits(width, scheme) {
  const page = await open({ width, height: 900 }, scheme);
  const content = await page.evaluate(() => document.documentElement.scrollWidth);
  assert(content <= width, `the page is ${content} pixels wide in a window of ${width}`);
  await everyPictureHasInk(page);
  await page.evaluate(() => document.querySelectorAll("details.run").forEach((run) => run.setAttribute("open", "")));
  await page.locator("details.run .ways").first().waitFor();
  await settle(page);
  const wide = await page.evaluate(() => document.documentElement.scrollWidth);
  assert(wide <= width, `the page with open records is ${wide} pixels wide in a window of ${width}`);
  if (pictures) await page.screenshot({ path: `${pictures}/panels-${width}-${scheme}.png`, fullPage: true });
  await page.close();
}
