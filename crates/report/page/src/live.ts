// The page of a run that goes on: samples enter by polling, the report's charts leave, and move.

import { channelsOf } from "./channel";
import { drawStack, type Moving } from "./charts";
import type { DirectionSample, Run, RunRecord, Sample } from "./data";
import type { Settings } from "./settings";
import { theme } from "./theme";
import { Steering, type Load } from "./steering";
import { durationText, fromPps, rateText, shareText, type Unit } from "./units";

/** What the program answers at `/samples`. */
interface Answer {
  about: { name: string; strategy: string; dut: string; loss_threshold: number; line_rate_bps: number; mean_frame_size: number; planned_s: number };
  run: number;
  running: boolean;
  phase: string;
  /** The number of the next sample. */
  next: number;
  samples: Sample[];
  /** Clocks a packet, by node. */
  nodes: [string, number][];
  /** The load, where it can be changed. */
  steering: Load | null;
}

const EVERY_MS = 500;
/** What the charts show at most, as the program keeps it. */
const SHOWN_S = 600;
const SHOWN = 3000;
const NO_ANSWER = "No answer: the program has ended, or cannot be reached.";

const part = <E extends HTMLElement>(id: string) => document.getElementById(id) as E;

/** More points than these are not drawn: the screen has no room for them, and drawing takes time. */
const DRAWN = 400;

const steering = new Steering(document.querySelector<HTMLMetaElement>('meta[name="token"]')?.content ?? "");
let answer: Answer | null = null;
let samples: Sample[] = [];
let stack: Moving | null = null;

async function poll(): Promise<void> {
  try {
    const response = await fetch(`samples?after=${answer?.next ?? 0}`, { signal: AbortSignal.timeout(5000) });
    take((await response.json()) as Answer);
  } catch {
    // Another program may answer next, which counts anew.
    if (answer) answer.next = 0;
    samples = [];
    part("state").textContent = NO_ANSWER;
  }
  setTimeout(poll, EVERY_MS);
}

function take(now: Answer): void {
  const anew = answer === null || now.run !== answer.run || now.next < answer.next;
  if (anew) samples = [];
  answer = now;
  samples = samples.concat(now.samples).slice(-SHOWN);
  const end = samples[samples.length - 1]?.at_s ?? 0;
  samples = samples.filter((sample) => sample.at_s >= end - SHOWN_S);
  steering.show(now.steering);
  part("name").textContent = now.about.name || "No run yet";
  const state = now.running ? now.phase : now.run > 0 ? "ended" : "waits for a run";
  const after = samples.length > 0 ? `, ${end.toFixed(0)} s` : "";
  const planned = now.about.planned_s > 0 ? ` of ${now.about.planned_s.toFixed(0)} s at most` : "";
  part("state").textContent = [now.about.strategy, state].filter(Boolean).join(": ") + after + (after && planned);
  if (anew || now.samples.length > 0) draw(anew);
  document.documentElement.dataset["ready"] = "true";
}

function draw(anew: boolean): void {
  if (answer === null) return;
  const settings = settingsNow();
  const channels = channelsOf([runOf(answer)], settings, new Set());
  if (anew || stack === null || !stack.update(channels)) {
    stack?.destroy();
    stack = channels.length > 0 ? drawStack(part("charts"), channels, settings, theme(), [answer.about.dut], () => {}) : null;
  }
  showFigures(answer, settings.unit);
}

/** So few samples that they are drawn fast: means of neighbours, of latencies the worst. */
function thinned(all: Sample[], first: number): Sample[] {
  const each = Math.ceil(all.length / DRAWN);
  if (each < 2) return all;
  const groups = new Map<number, Sample[]>();
  all.forEach((sample, at) => {
    // By number, so that groups stay the same while the window moves; the warm-up stays apart.
    const key = Math.floor((first + at) / each) * 2 + (sample.phase === "warm-up" ? 0 : 1);
    const group = groups.get(key);
    if (group) group.push(sample);
    else groups.set(key, [sample]);
  });
  return [...groups.values()].flatMap((group) => {
    const [one] = group;
    if (one === undefined) return [];
    const directions = one.directions.map((_, way) => merged(group.flatMap((sample) => sample.directions[way] ?? [])));
    return [{ ...one, duration_s: group.reduce((sum, sample) => sum + sample.duration_s, 0), directions }];
  });
}

function merged(all: DirectionSample[]): DirectionSample {
  const mean = (value: (it: DirectionSample) => number) => all.reduce((sum, it) => sum + value(it), 0) / all.length;
  const latencies = all.flatMap((it) => it.latency ?? []);
  const worst = (value: (it: { p50_ns: number; p99_ns: number }) => number) => Math.max(...latencies.map(value));
  const offered_pps = mean((it) => it.offered_pps);
  const forwarded_pps = mean((it) => it.forwarded_pps);
  return {
    intended_pps: mean((it) => it.intended_pps),
    offered_pps,
    forwarded_pps,
    loss_ratio: offered_pps > 0 ? Math.max(0, 1 - forwarded_pps / offered_pps) : 0,
    l1_bps: mean((it) => it.l1_bps),
    l2_bps: mean((it) => it.l2_bps),
    ...(latencies.length > 0 ? { latency: { p50_ns: worst((it) => it.p50_ns), p99_ns: worst((it) => it.p99_ns) } } : {}),
  };
}

/** The samples as a record, which charts are drawn from. */
function runOf({ about }: Answer): Run {
  const directions = samples[samples.length - 1]?.directions ?? [];
  const record: RunRecord = {
    id: "live",
    name: about.name,
    line_rate_bps: about.line_rate_bps,
    elapsed_s: 0,
    strategy: { name: about.strategy, parameters: {}, loss_threshold: about.loss_threshold },
    profile: { mean_frame_size: frameSize(about) },
    samples: thinned(samples, answer ? answer.next - samples.length : 0),
    directions: directions.map((_, at) => ({ name: way(at), max_rate_pps: 0, latency_ns: [] })),
  };
  return { anchor: "live", device: 0, test: 0, curves: true, repeat: false, record };
}

/** Of a server, whose clients choose it, that of the frames that came back last. */
function frameSize(about: Answer["about"]): number {
  if (about.mean_frame_size > 0) return about.mean_frame_size;
  const last = samples[samples.length - 1]?.directions.find((it) => it.forwarded_pps > 0);
  return last ? last.l2_bps / 8 / last.forwarded_pps : 0;
}

function way(direction: number): string {
  return direction === 0 ? "0→1" : "1→0";
}

function settingsNow(): Settings {
  const unit = part<HTMLSelectElement>("unit").value as Unit;
  const nothing = new Set<number>();
  return { unit, against: "time", loss: "linear", repeats: false, hiddenDevices: nothing, addedUp: false, hiddenDirections: nothing };
}

/** The last sample and the nodes in tables. */
function showFigures({ about, nodes }: Answer, unit: Unit): void {
  const last = samples[samples.length - 1];
  const record = { line_rate_bps: about.line_rate_bps, profile: { mean_frame_size: frameSize(about) } };
  const rate = (pps: number) => rateText(fromPps(pps, record, unit), unit);
  const time = (ns: number | undefined) => (ns === undefined ? "" : durationText(ns));
  const rows = (last?.directions ?? []).map((it, at) => [
    way(at),
    rate(it.intended_pps),
    rate(it.offered_pps),
    rate(it.forwarded_pps),
    it.offered_pps > 0 ? shareText(it.loss_ratio) : "",
    time(it.latency?.p50_ns),
    time(it.latency?.p99_ns),
  ]);
  fill("last", rows);
  fill("nodes", nodes.map(([node, clocks]) => [node, clocks.toPrecision(3)]));
  part("node-costs").hidden = nodes.length === 0;
  part("disturbed").textContent = last?.disturbed ? `The machine disturbed the last sample: ${last.disturbed}` : "";
}

function fill(id: string, rows: string[][]): void {
  const lines = rows.map((cells) => {
    const row = document.createElement("tr");
    cells.forEach((text, at) => {
      const cell = document.createElement(at === 0 ? "th" : "td");
      cell.textContent = text;
      row.append(cell);
    });
    return row;
  });
  part(id).replaceChildren(...lines);
}

part("unit").addEventListener("change", () => draw(true));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => draw(true));
addEventListener("resize", () => stack?.resize());
void poll();
