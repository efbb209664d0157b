/** One call's time: what is left of it, and the one signal that ends everything it does. */

import { APIConnectionError, APITimeoutError } from "./errors.js";

/** What may be said about one call. */
export interface CallOptions {
  /** Ends the call at once; it then throws the signal's `reason`, as `fetch` does. */
  signal?: AbortSignal | undefined;
  /** Milliseconds for all tries and waits together; left out, what the client is set to. */
  timeoutMs?: number | undefined;
}

/** Starts when it is made. `close` must be called, or a timer and a listener stay. */
export class CallTime {
  readonly #controller = new AbortController();
  readonly #deadline: number;
  readonly #timer: ReturnType<typeof setTimeout>;
  readonly #callerSignal: AbortSignal | undefined;
  readonly #onCallerAbort = (): void => this.#controller.abort();

  constructor(
    readonly timeoutMs: number,
    callerSignal: AbortSignal | undefined,
  ) {
    callerSignal?.throwIfAborted();
    this.#deadline = performance.now() + timeoutMs;
    this.#timer = setTimeout(() => this.#controller.abort(), timeoutMs);
    this.#callerSignal = callerSignal;
    callerSignal?.addEventListener("abort", this.#onCallerAbort);
  }

  /** Aborted when the time is over or the caller wants no more. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get leftMs(): number {
    return this.#deadline - performance.now();
  }

  /** Wait; less if the call ends meanwhile, which it throws. */
  async sleep(ms: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const wake = (): void => {
        clearTimeout(timer);
        this.signal.removeEventListener("abort", wake);
        resolve();
      };
      const timer = setTimeout(wake, ms);
      this.signal.addEventListener("abort", wake);
    });
    this.#callerSignal?.throwIfAborted();
  }

  /** What a failure of the connection means; throws the caller's own reason if it is that. */
  failureOf(cause: unknown, what: string): APIConnectionError {
    this.#callerSignal?.throwIfAborted();
    if (this.signal.aborted) {
      return new APITimeoutError(`${what}: no answer within ${this.timeoutMs} ms`, { cause });
    }
    return new APIConnectionError(`${what}: ${reasonOf(cause)}`, { cause });
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#callerSignal?.removeEventListener("abort", this.#onCallerAbort);
  }
}

/** What `fetch` says, with what it was caused by: `fetch failed` alone helps nobody. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) {
    return String(error);
  }
  const { cause } = error;
  if (!(cause instanceof Error)) {
    return error.message;
  }
  const code = (cause as { code?: unknown }).code;
  return `${error.message}: ${cause.message || (typeof code === "string" ? code : cause.name)}`;
}
