/** Where the time of an edit went. */

import type { Timing } from "apply-client";

import { element } from "./elements";

/** One part of the time, in seconds. */
export interface TimePart {
  name: string;
  label: string;
  seconds: number;
}

/**
 * Queue, prefill, decode and the rest. Regions are computed side by side, so that their sums may
 * be longer than the whole; then there is no rest.
 */
export function timeParts(timing: Timing): TimePart[] {
  const { queue, prefill, decode, total } = timing;
  const parts = [
    { name: "queue", label: "Queue", seconds: queue },
    { name: "prefill", label: "Prefill", seconds: prefill },
    { name: "decode", label: "Decode", seconds: decode },
  ];
  const rest = total - queue - prefill - decode;
  return [...parts, { name: "text", label: "Text work", seconds: Math.max(0, rest) }];
}

/** Milliseconds or seconds, with three digits. */
export function duration(seconds: number): string {
  if (seconds >= 1) {
    return `${seconds.toFixed(2)} s`;
  }
  const ms = seconds * 1000;
  return `${ms.toFixed(ms >= 100 ? 0 : ms >= 10 ? 1 : 2)} ms`;
}

/** The time line: a bar, and the same in words. */
export function timeLineView(timing: Timing): HTMLElement {
  const parts = timeParts(timing);
  const sum = parts.reduce((total, part) => total + part.seconds, 0) || 1;
  const bar = element("div", { class: "time-bar", "aria-hidden": "true" });
  for (const part of parts.filter(({ seconds }) => seconds > 0)) {
    const piece = element("span", { class: `time-${part.name}` });
    piece.style.flexGrow = String(part.seconds / sum);
    bar.append(piece);
  }
  const words = parts.map((part) =>
    element(
      "div",
      {},
      element("dt", { class: `time-${part.name}` }, part.label),
      element("dd", {}, duration(part.seconds)),
    ),
  );
  const total = element(
    "div",
    {},
    element("dt", {}, "Total"),
    element("dd", {}, duration(timing.total)),
  );
  return element(
    "section",
    { class: "time", "aria-labelledby": "time-title" },
    element("h3", { id: "time-title" }, "Time"),
    bar,
    element("dl", { class: "legend" }, ...words, total),
  );
}
