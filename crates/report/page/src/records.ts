// The records at the end of the page: what is known of each is read when it is opened, so that hundreds
// of them cost nothing before.

import { bindTables } from "./copying";
import type { Page } from "./data";
import { save } from "./exporting";

export function bindRecords(page: Page): void {
  for (const element of document.querySelectorAll<HTMLDetailsElement>("details.run")) {
    element.addEventListener("toggle", () => fill(element));
  }
  document.addEventListener("click", ({ target }) => {
    const button = target instanceof Element ? target.closest<HTMLElement>("button[data-download]") : null;
    const run = page.runs.find((run) => run.anchor === button?.dataset["download"]);
    if (run) save(`${run.record.id}.json`, new Blob([JSON.stringify(run.record)], { type: "application/json" }));
  });
}

/** Makes the markup that a record holds as text part of the page. */
function fill(element: HTMLElement): void {
  const text = element.querySelector("script");
  if (!text) return;
  text.remove();
  element.insertAdjacentHTML("beforeend", text.textContent ?? "");
  bindTables(element);
}

/** Opens the run or the test that the address names. */
export function openTarget(): void {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  const fold = target?.querySelector<HTMLDetailsElement>(":scope > details.fold");
  if (fold) fold.open = true;
  if (target instanceof HTMLDetailsElement) {
    fill(target);
    target.open = true;
    target.scrollIntoView();
  }
}
