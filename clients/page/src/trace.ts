/** How an answer was decoded, and what a step of it looks like. */

import type { WireResult } from "apply-client";

export type Origin = "forced" | "drafted" | "written";

/** A token of the answer, and who put it there. */
export interface TracedToken {
  text: string;
  origin: Origin;
}

/** One forward pass for one region; `at_s` counts from the first one. */
export interface TracedStep {
  at_s: number;
  drafter: string | null;
  tokens: TracedToken[];
  rejected: string[];
}

export interface TracedRegion {
  region: number;
  steps: TracedStep[];
}

/** The answer of `/v1/apply`, which has a trace if one was asked for. */
export type TracedAnswer = WireResult & { trace?: TracedRegion[] | null };

/** One step of the replay: a region's step, in the order of time over all regions. */
export interface Frame {
  region: number;
  step: TracedStep;
}

/** How many tokens came from where. */
export interface TokenCounts {
  forced: number;
  drafted: number;
  written: number;
  rejected: number;
}

/** All steps of all regions as they followed each other. */
export function framesOf(trace: readonly TracedRegion[]): Frame[] {
  const frames = trace.flatMap(({ region, steps }) => steps.map((step) => ({ region, step })));
  return frames.sort((one, other) => one.step.at_s - other.step.at_s);
}

/** The tokens up to and with a number of frames. */
export function countTokens(frames: readonly Frame[]): TokenCounts {
  const counts: TokenCounts = { forced: 0, drafted: 0, written: 0, rejected: 0 };
  for (const { step } of frames) {
    for (const token of step.tokens) {
      counts[token.origin] += 1;
    }
    counts.rejected += step.rejected.length;
  }
  return counts;
}

/** One frame in words. */
export function describeFrame(frames: readonly Frame[], index: number): string {
  const frame = frames[index];
  if (frame === undefined) {
    return "Before the first step";
  }
  const { step } = frame;
  const counts = countTokens([frame]);
  const parts = [`${step.tokens.length} ${step.tokens.length === 1 ? "token" : "tokens"}`];
  if (counts.forced > 0) {
    parts.push(`${counts.forced} forced`);
  }
  if (step.drafter !== null) {
    parts.push(`${counts.drafted} accepted of a draft from ${step.drafter}`);
  }
  if (counts.rejected > 0) {
    parts.push(`${counts.rejected} rejected`);
  }
  if (counts.written > 0) {
    parts.push(`${counts.written} written by the model`);
  }
  return `Step ${index + 1} of ${frames.length} at ${(step.at_s * 1000).toFixed(1)} ms: ${parts.join(", ")}`;
}
