/** When a request is tried again, and when no longer. */

import type { CallTime } from "./call_time.js";
import { APIConnectionError, APITimeoutError } from "./errors.js";

// Statuses that another try may change without anything else having changed.
const RETRIED_STATUSES = new Set([429, 503]);

/**
 * How often a request is tried. The n-th wait is `firstDelayMs` doubled n times, at most
 * `maxDelayMs`, less a random part of up to a half, so that many clients do not come back at the
 * same moment.
 */
export interface RetryPolicy {
  maxRetries: number;
  firstDelayMs: number;
  maxDelayMs: number;
}

export const DEFAULT_RETRY: RetryPolicy = { maxRetries: 4, firstDelayMs: 500, maxDelayMs: 8000 };

/** An answer; `content` is null while the body of a stream is still to come. */
export interface Answer {
  status: number;
  headers: Headers;
  content: Uint8Array | null;
  body: ReadableStream<Uint8Array> | null;
}

type Outcome = Answer | APIConnectionError;

/**
 * Send until there is an answer that may not be retried, or the policy or the time says to give up.
 *
 * Throws APIConnectionError if the last try had no answer; an answer that is a refusal is returned.
 */
export async function exchange(
  policy: RetryPolicy,
  time: CallTime,
  send: () => Promise<Outcome>,
): Promise<Answer> {
  for (let numRetries = 0; ; numRetries += 1) {
    const outcome = await send();
    if (!(outcome instanceof APIConnectionError) && !RETRIED_STATUSES.has(outcome.status)) {
      return outcome;
    }
    const delayMs = delayOf(policy, outcome, numRetries);
    if (numRetries >= policy.maxRetries || delayMs >= time.leftMs) {
      return giveUp(outcome, { numTries: numRetries + 1, policy, timeoutMs: time.timeoutMs });
    }
    await time.sleep(delayMs);
  }
}

/** Milliseconds until the next try: never less than the service asked for. */
export function delayOf(
  policy: RetryPolicy,
  outcome: Outcome,
  numRetries: number,
  draw: () => number = Math.random,
): number {
  const longest = Math.min(policy.firstDelayMs * 2 ** numRetries, policy.maxDelayMs);
  const delayMs = longest * (1 - draw() / 2);
  const askedMs = outcome instanceof APIConnectionError ? null : retryAfterMs(outcome.headers);
  return askedMs === null ? delayMs : Math.max(askedMs + delayMs / 4, delayMs);
}

/** Milliseconds that `Retry-After` asks for, as seconds or as a date; null without a usable one. */
export function retryAfterMs(headers: Headers, now: number = Date.now()): number | null {
  const value = (headers.get("retry-after") ?? "").trim();
  if (/^\d+$/.test(value)) {
    return Number(value) * 1000;
  }
  const date = Date.parse(value);
  return Number.isNaN(date) ? null : Math.max(0, date - now);
}

/** Throws unless a policy and a total time make sense. */
export function checkPolicy(policy: RetryPolicy, timeoutMs: number): void {
  checkTimeout(timeoutMs);
  const { maxRetries, firstDelayMs, maxDelayMs } = policy;
  if (!(Number.isInteger(maxRetries) && maxRetries >= 0 && firstDelayMs >= 0 && maxDelayMs >= 0)) {
    throw new RangeError(
      `maxRetries is ${maxRetries}, firstDelayMs ${firstDelayMs} and maxDelayMs ${maxDelayMs}; ` +
        "retries must be a whole number, and none of them less than 0",
    );
  }
}

// Timers of JavaScript take 31 bits and fire at once for more.
const MAX_TIMEOUT_MS = 2 ** 31 - 1;

/** Throws unless a timer can be set for so long. */
export function checkTimeout(timeoutMs: number): void {
  if (!(timeoutMs > 0 && timeoutMs <= MAX_TIMEOUT_MS)) {
    throw new RangeError(
      `timeoutMs is ${timeoutMs}; it must be more than 0 and at most ${MAX_TIMEOUT_MS}`,
    );
  }
}

interface Tries {
  numTries: number;
  policy: RetryPolicy;
  timeoutMs: number;
}

function giveUp(outcome: Outcome, { numTries, policy, timeoutMs }: Tries): Answer {
  if (!(outcome instanceof APIConnectionError)) {
    return outcome;
  }
  const tries = numTries === 1 ? "1 try" : `${numTries} tries`;
  const kind = outcome instanceof APITimeoutError ? APITimeoutError : APIConnectionError;
  throw new kind(
    `${outcome.message} (${tries}, at most ${policy.maxRetries + 1} within ${timeoutMs} ms); ` +
      "see whether the service runs, or raise timeoutMs",
    { cause: outcome.cause },
  );
}
