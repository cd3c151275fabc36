// Tables as Markdown: a table of the page enters, text for an issue or a README leaves.

/** The text of `table`; cells over several columns stand in the first of them, headings in all. */
export function markdown(table: HTMLTableElement): string {
  const head = [...(table.tHead?.rows ?? [])].map((row) => cells(row, true));
  const body = [...table.tBodies].flatMap((part) => [...part.rows].map((row) => cells(row, false)));
  const width = Math.max(...[...head, ...body].map((row) => row.length));
  const names = Array.from({ length: width }, (_, column) =>
    [...new Set(head.map((row) => row[column] ?? ""))].filter((name) => name !== "").join(", "),
  );
  const line = (texts: string[]) => `| ${Array.from({ length: width }, (_, at) => texts[at] ?? "").join(" | ")} |`;
  const rule = line(Array.from({ length: width }, (_, at) => (at === 0 ? "---" : "---:")));
  return [line(names), rule, ...body.map(line)].join("\n") + "\n";
}

function cells(row: HTMLTableRowElement, repeated: boolean): string[] {
  return [...row.cells].flatMap((cell) => {
    const text = textOf(cell);
    return Array.from({ length: cell.colSpan }, (_, at) => (at === 0 || repeated ? text : ""));
  });
}

/** The figure, and what stands in smaller letters below it behind a comma. */
function textOf(cell: HTMLElement): string {
  const parts = [...cell.childNodes].reduce<string[]>((parts, node) => {
    const text = (node.textContent ?? "").replace(/\s+/g, " ").trim();
    if (text === "") return parts;
    const apart = node instanceof HTMLElement && node.tagName === "SMALL";
    if (apart || parts.length === 0) return [...parts, text];
    return [...parts.slice(0, -1), `${parts[parts.length - 1]} ${text}`];
  }, []);
  return parts.join(", ").replace(/\|/g, "\\|");
}
