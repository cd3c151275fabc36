// Buttons that copy what stands beside them: texts as they are, tables as Markdown.

import { markdown } from "./markdown";

/** Puts a button before the text of each `.copied` in the page. */
export function bindCopying(): void {
  for (const place of document.querySelectorAll<HTMLElement>(".copied")) {
    const text = place.querySelector("pre");
    if (text) place.prepend(button("Copy", () => text.textContent ?? "", text));
  }
}

/** Puts a button below each table within `part` that has none yet. */
export function bindTables(part: ParentNode): void {
  for (const table of part.querySelectorAll<HTMLTableElement>("table:not(.card table)")) {
    const place = table.closest(".scroll") ?? table;
    if (place.nextElementSibling?.classList.contains("copy-table")) continue;
    const copy = button("Copy as Markdown", () => markdown(table), table);
    copy.classList.add("copy-table");
    place.after(copy);
  }
}

function button(name: string, text: () => string, source: HTMLElement): HTMLButtonElement {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = name;
  button.addEventListener("click", () => {
    void copy(text(), source).then((done) => {
      button.textContent = done ? "Copied" : "Selected: press Ctrl-C";
      setTimeout(() => (button.textContent = name), 2000);
    });
  });
  return button;
}

/** A page from a file may not be allowed to use the clipboard: then what is to be copied is selected. */
async function copy(text: string, source: HTMLElement): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    getSelection()?.selectAllChildren(source);
    return false;
  }
}
