// The records at the end of the page: what is known of each is read when it is opened, so that hundreds
// of them cost nothing before.

import type { Page } from "./data";

export function bindRecords(page: Page): void {
  for (const element of document.querySelectorAll<HTMLDetailsElement>("details.run")) {
    element.addEventListener("toggle", () => fill(element));
  }
  document.addEventListener("click", ({ target }) => {
    const button = target instanceof Element ? target.closest<HTMLElement>("button[data-download]") : null;
    const run = page.runs.find((run) => run.anchor === button?.dataset["download"]);
    if (run) download(`${run.record.id}.json`, JSON.stringify(run.record));
  });
}

/** Makes the markup that a record holds as text part of the page. */
function fill(element: HTMLElement): void {
  const text = element.querySelector("script");
  if (!text) return;
  text.remove();
  element.insertAdjacentHTML("beforeend", text.textContent ?? "");
}

/** Opens the run that the address names. */
export function openTarget(): void {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (target instanceof HTMLDetailsElement) {
    fill(target);
    target.open = true;
    target.scrollIntoView();
  }
}

function download(name: string, content: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([content], { type: "application/json" }));
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}
