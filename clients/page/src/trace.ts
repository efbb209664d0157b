/** How an answer was decoded, and what a step of it looks like. */

import type { RegionTrace, TracedStep } from "apply-client";

/** One step of the replay: a region's step, in the order of time over all attempts and regions. */
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
export function framesOf(trace: readonly RegionTrace[]): Frame[] {
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
