// Tables that a click on a heading sorts: by number where cells have one, else by their words.

/** Makes the headings of `table` buttons. The first click shows the largest figures first. */
export function makeSortable(table: HTMLTableElement): void {
  // Headings of several columns stand above those of one.
  const rows = table.tHead?.rows;
  const headings = [...(rows?.[rows.length - 1]?.cells ?? [])];
  headings.forEach((heading, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    heading.append(button);
    button.addEventListener("click", () => {
      const numbers = isNumeric(table, column);
      const before = heading.getAttribute("aria-sort");
      const first = numbers ? "descending" : "ascending";
      const order = before === null ? first : before === "ascending" ? "descending" : "ascending";
      headings.forEach((other) => other.removeAttribute("aria-sort"));
      heading.setAttribute("aria-sort", order);
      sort(table, column, numbers, order === "ascending" ? 1 : -1);
    });
  });
}

function isNumeric(table: HTMLTableElement, column: number): boolean {
  return [...(table.tBodies[0]?.rows ?? [])].some((row) => row.cells[column]?.dataset["value"] !== undefined);
}

/** A thousand is more than ten, also with its thousands apart. */
function sortableText(text: string): string {
  return text.replace(/(\d),(?=\d{3})/g, "$1");
}

/** Rows without a figure stand at the end, whichever way. */
function sort(table: HTMLTableElement, column: number, numbers: boolean, sign: number): void {
  const body = table.tBodies[0];
  if (!body) return;
  const rows = [...body.rows].map((row) => {
    const cell = row.cells[column];
    const value = cell?.dataset["value"];
    return { row, text: sortableText(cell?.textContent ?? ""), value: value === undefined ? null : Number(value) };
  });
  rows.sort((a, b) => {
    if (!numbers) return sign * a.text.localeCompare(b.text, "en", { numeric: true });
    if (a.value === null || b.value === null) return Number(a.value === null) - Number(b.value === null);
    return sign * (a.value - b.value);
  });
  body.append(...rows.map(({ row }) => row));
}
