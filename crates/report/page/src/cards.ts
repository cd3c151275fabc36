// The live legend beside the charts: a card for each run with its values at the cursor, and boxes
// to show and hide it and its directions.

import { type Channel, channelKey } from "./channel";
import { indexAt } from "./charts";
import type { Run } from "./data";
import type { Settings } from "./settings";
import { dress } from "./theme";
import { durationText, fromPps, rateText, shareText } from "./units";

export interface Cards {
  /** Shows values at `x`, or at each channel's limit. */
  update(x: number | null): void;
}

/** Names of the rows; the values come from `figures`. */
const ROWS = ["forwarded", "offered", "loss", "latency p50", "latency p99", "DUT core"];
/** Names of the rows that do not depend on the cursor; the values come from `findings`. */
function fixedRows(run: Run): string[] {
  const limited = run.record.directions.some(({ evidence }) => evidence?.limit);
  return [limited ? "limit between" : "forwarded between", "loss began at"];
}

/**
 * Draws a card for each run into `parent`. `hidden` holds the keys of channels that were hidden
 * here; the boxes change it and call `changed`.
 */
export function drawCards(
  parent: HTMLElement,
  runs: Run[],
  channels: Channel[],
  settings: Settings,
  devices: string[],
  hidden: Set<string>,
  changed: () => void,
): Cards {
  const updates = runs.map((run) => {
    const own = channels.filter((channel) => channel.run === run).sort((a, b) => a.direction - b.direction);
    const { card, values, place } = drawCard(run, own, devices[run.device] ?? run.record.name, settings, hidden, changed);
    parent.append(card);
    return (x: number | null) => {
      place.textContent = x === null ? limitText(run, own) : placeText(x, settings);
      own.forEach((channel, column) => {
        figures(channel, x, settings).forEach((text, row) => {
          const value = values[row]?.[column];
          if (value) value.textContent = text;
        });
      });
    };
  });
  const update = (x: number | null) => updates.forEach((one) => one(x));
  update(null);
  return { update };
}

/** What the values of a card are at, where no cursor is. */
function limitText(run: Run, own: Channel[]): string {
  const threshold = run.record.strategy.loss_threshold;
  const loss = threshold > 0 ? `≤ ${shareText(threshold).replace("%", " %")} loss` : "without loss";
  if (own.some(({ limit }) => limit !== null)) return `at max rate ${loss}`;
  return threshold > 0 ? `no sample at ${loss}` : `no sample ${loss}`;
}

function placeText(x: number, settings: Settings): string {
  return settings.against === "time" ? `at ${x.toFixed(1)} s` : `at ${rateText(x, settings.unit)} offered`;
}

/** The values of a channel in the order of {@link ROWS}. */
function figures(channel: Channel, x: number | null, settings: Settings): string[] {
  const place = x ?? channel.limit;
  const index = place === null ? null : indexAt(channel, place);
  if (index === null) return ROWS.map(() => "–");
  const { points } = channel;
  const text = (value: number | null | undefined, write: (value: number) => string) =>
    value === null || value === undefined ? "–" : write(value);
  const rate = (value: number) => rateText(value, settings.unit);
  return [
    text(points.forwarded[index], rate),
    text(points.offered[index], rate),
    text(points.loss[index], shareText),
    text(points.p50[index], durationText),
    text(points.p99[index], durationText),
    text(points.busy[index], shareText),
  ];
}

/** What the run proves of a channel, in the order of {@link fixedRows}. */
function findings(channel: Channel, settings: Settings): string[] {
  const { record } = channel.run;
  const evidence = record.directions[channel.direction]?.evidence;
  const rate = (pps: number) => rateText(fromPps(pps, record, settings.unit), settings.unit);
  const bounds = evidence?.limit ?? evidence?.forwarded;
  const upper = bounds?.upper_pps;
  const between =
    bounds === undefined
      ? "–"
      : upper === null || upper === undefined
        ? `≥ ${rate(bounds.lower_pps)}`
        : `${rate(bounds.lower_pps)} – ${rate(upper)}`;
  const began = evidence?.loss_began;
  return [between, began ? `${rate(began.pps)} (${shareText(began.loss_ratio)})` : "–"];
}

function drawCard(
  run: Run,
  channels: Channel[],
  device: string,
  settings: Settings,
  hidden: Set<string>,
  changed: () => void,
) {
  const card = document.createElement("section");
  card.className = "card";
  dress(card, run.device);
  const title = document.createElement("a");
  title.href = `#${run.anchor}`;
  title.textContent = device;
  const place = document.createElement("span");
  place.className = "place";
  const head = document.createElement("header");
  head.append(title, place);

  const table = document.createElement("table");
  const names = table.createTHead().insertRow();
  names.append(document.createElement("td"));
  for (const channel of channels) {
    const cell = document.createElement("th");
    cell.scope = "col";
    cell.append(channelBox(run, channel, hidden, changed));
    names.append(cell);
  }
  const body = table.createTBody();
  const values = ROWS.map((name) => {
    const row = body.insertRow();
    const heading = document.createElement("th");
    heading.scope = "row";
    heading.textContent = name;
    row.append(heading);
    return channels.map(() => row.insertCell());
  });
  fixedRows(run).forEach((name, at) => {
    const row = body.insertRow();
    const heading = document.createElement("th");
    heading.scope = "row";
    heading.textContent = name;
    row.append(heading);
    for (const channel of channels) row.insertCell().textContent = findings(channel, settings)[at] ?? "–";
  });
  card.append(head, table);
  return { card, values, place };
}

/** A box that shows or hides one direction of one run. */
function channelBox(run: Run, channel: Channel, hidden: Set<string>, changed: () => void): HTMLLabelElement {
  const key = channelKey(run, channel.direction);
  const box = document.createElement("input");
  box.type = "checkbox";
  box.checked = !hidden.has(key);
  box.dataset["channel"] = key;
  box.addEventListener("change", () => {
    if (box.checked) hidden.delete(key);
    else hidden.add(key);
    changed();
  });
  const swatch = document.createElement("i");
  swatch.className = channel.direction > 0 ? "swatch wide" : "swatch";
  const label = document.createElement("label");
  label.append(box, swatch, directionText(channel));
  return label;
}

function directionText(channel: Channel): string {
  const name = channel.run.record.directions[channel.direction]?.name ?? "";
  return name.replace("->", "→");
}
