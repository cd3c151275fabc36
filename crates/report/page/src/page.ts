// The report page's script. The tables are in the markup already; this draws the charts from the
// embedded records and binds the controls. When all is drawn, <html> gets `data-ready="true"`;
// errors are collected in its `data-errors`, which stays empty otherwise.

import { BenchSection } from "./bench-section";
import { bindCopying, bindTables } from "./copying";
import { embedded, type Page } from "./data";
import { bindDrawings } from "./exporting";
import { bindFlameGraphs } from "./flame-graphs";
import { reachAll } from "./nearby";
import { bindRecords, openTarget } from "./records";
import { bindControls, sameView, type Settings } from "./settings";
import { Panel } from "./panel";
import { makeSortable } from "./sorting";
import { TestSection } from "./test-section";

const root = document.documentElement;

function collect(message: string): void {
  root.dataset["errors"] = `${root.dataset["errors"] ?? ""}${message}\n`;
}

window.addEventListener("error", (event) => collect(event.message));
window.addEventListener("unhandledrejection", (event) => collect(String(event.reason)));

function start(): void {
  const page = embedded();
  const controls = document.querySelector<HTMLFormElement>("#controls");
  if (!controls) throw new Error("the page has no controls");
  let sections: (TestSection | Panel | BenchSection)[] = [];
  let settings: Settings = bindControls(controls, (now, before) => {
    settings = now;
    sections.forEach((section) => (sameView(now, before) ? section.show(now) : section.draw(now)));
  });
  const tests = [...document.querySelectorAll<HTMLElement>("section[data-test]:has(.charts)")];
  const panels = [...document.querySelectorAll<HTMLDetailsElement>("details[data-runs]")];
  sections = [
    ...tests.map((element) => new TestSection(element, page, settings)),
    ...panels.map((element) => new Panel(element, page, settings)),
    ...benches(page, settings),
  ];

  const redraw = () => sections.forEach((section) => section.draw(settings));
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  // Paper is white: print with the light colours.
  window.addEventListener("beforeprint", () => {
    root.classList.add("printing");
    document.querySelectorAll<HTMLDetailsElement>("details.fold").forEach((fold) => (fold.open = true));
    reachAll();
    redraw();
  });
  window.addEventListener("afterprint", () => {
    root.classList.remove("printing");
    redraw();
  });

  document.querySelectorAll<HTMLTableElement>("table.sortable").forEach(makeSortable);
  bindCopying();
  bindTables(document);
  bindDrawings();
  bindFlameGraphs();
  bindRecords(page);
  window.addEventListener("hashchange", openTarget);
  openTarget();
  requestAnimationFrame(() =>
    requestAnimationFrame(() => {
      root.dataset["ready"] = "true";
      performance.mark("linerate-ready");
    }),
  );
}

function benches(page: Page, settings: Settings): BenchSection[] {
  return [...document.querySelectorAll<HTMLElement>("section[data-bench]")].flatMap((element) => {
    const bench = page.benches[Number(element.dataset["bench"])];
    return bench ? [new BenchSection(element, bench, settings)] : [];
  });
}

start();
