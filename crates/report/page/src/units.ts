// Units and their text. Rates are kept in packets a second until they are shown.

import type { RunRecord } from "./data";

export type Unit = "pps" | "l1" | "l2" | "percent";

/** What a frame takes on the line beyond its size: preamble, start delimiter and gap. */
export const L1_OVERHEAD_BYTES = 20;

/** `pps` frames of the record's mean size in `unit`. */
export function fromPps(pps: number, record: Pick<RunRecord, "line_rate_bps" | "profile">, unit: Unit): number {
  const size = record.profile.mean_frame_size;
  const l1 = pps * (size + L1_OVERHEAD_BYTES) * 8;
  switch (unit) {
    case "pps":
      return pps;
    case "l1":
      return l1;
    case "l2":
      return pps * size * 8;
    case "percent":
      return (l1 / record.line_rate_bps) * 100;
  }
}

/** A rate for reading, like `1.10 Mpps` or `97.0%`. */
export function rateText(value: number, unit: Unit): string {
  return unit === "percent" ? `${value.toFixed(1)}%` : scaled(value, 2) + (unit === "pps" ? "pps" : "bps");
}

/** A rate for an axis: no more digits than it needs. */
export function rateTick(value: number, unit: Unit): string {
  if (unit === "percent") return `${trimmed(value, 3)}%`;
  return value === 0 ? "0" : scaled(value, undefined).trimEnd();
}

/** Two rates that differ little, like `1.0850–1.0904 Mpps`. */
export function intervalText(lower: number, upper: number | null, unit: Unit): string {
  const name = unit === "percent" ? "%" : unit === "pps" ? "pps" : "bps";
  const [factor, prefix] = unit === "percent" ? [1, ""] : prefixOf(upper ?? lower);
  const digits = (value: number) => (value === 0 ? "0" : (value / factor).toPrecision(5));
  const text = upper === null ? `≥ ${digits(lower)}` : `${digits(lower)}–${digits(upper)}`;
  return unit === "percent" ? `${text}%` : `${text} ${prefix}${name}`;
}

/** A rate to five digits, like `1.0851 Mpps`: those of trials differ little. */
export function preciseText(value: number, unit: Unit): string {
  const [factor, prefix] = unit === "percent" ? [1, ""] : prefixOf(value);
  const digits = (value / factor).toPrecision(5);
  return unit === "percent" ? `${digits}%` : `${digits} ${prefix}${unit === "pps" ? "pps" : "bps"}`;
}

/** What an axis of `unit` is called. */
export function unitName(unit: Unit): string {
  return { pps: "packets/s", l1: "bit/s at L1", l2: "bit/s at L2", percent: "% of line rate" }[unit];
}

/** A duration for reading, like `9.2 µs`. */
export function durationText(ns: number): string {
  const [factor, name] = ns >= 1e9 ? [1e9, "s"] : ns >= 1e6 ? [1e6, "ms"] : ns >= 1e3 ? [1e3, "µs"] : [1, "ns"];
  return `${Number((ns / factor).toPrecision(3))} ${name}`;
}

/** A share for reading: `0%`, `0.012%`, `31%`. */
export function shareText(share: number): string {
  return `${trimmed(share * 100, 2)}%`;
}

/** The decimal prefix that `value` is best written with, and what it stands for. */
function prefixOf(value: number): [factor: number, prefix: string] {
  const size = Math.abs(value);
  return size >= 1e12 ? [1e12, "T"] : size >= 1e9 ? [1e9, "G"] : size >= 1e6 ? [1e6, "M"] : size >= 1e3 ? [1e3, "k"] : [1, ""];
}

/** With a decimal prefix; `digits` after the point, or as few as needed. */
function scaled(value: number, digits: number | undefined): string {
  const [factor, prefix] = prefixOf(value);
  const number = value / factor;
  return `${digits === undefined ? trimmed(number, 4) : number.toFixed(factor === 1 ? 0 : digits)} ${prefix}`;
}

/** At most `digits` significant ones, without trailing zeros or an exponent. */
function trimmed(value: number, digits: number): string {
  return String(Number(value.toPrecision(digits)));
}
