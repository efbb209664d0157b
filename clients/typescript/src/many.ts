/** Many independent edits: what comes of each. */

import type { CallOptions } from "./call_time.js";
import type { ApplyResult, Content, Edit } from "./edit.js";
import { ApplyClientError } from "./errors.js";

export const DEFAULT_CONCURRENCY = 8;
const MAX_CONCURRENCY = 256;

/** What came of one edit: a result or an error; `position` counts the edits from 0. */
export type EditOutcome<C extends Content = Content> = { position: number; edit: Edit<C> } & (
  | { result: ApplyResult<C>; error: null }
  | { result: null; error: ApplyClientError }
);

export interface ManyOptions extends CallOptions {
  /** How many edits are on their way at once, from 1 to 256; 8 if left out. */
  maxConcurrency?: number | undefined;
}

type Edits<C extends Content> = Iterable<Edit<C>> | AsyncIterable<Edit<C>>;
type ApplyOne<C extends Content> = (edit: Edit<C>, signal: AbortSignal) => Promise<ApplyResult<C>>;

/** What the loop over many edits waits for. */
type News<C extends Content> =
  | { kind: "edit"; edit: Edit<C> }
  | { kind: "end" }
  | { kind: "outcome"; outcome: EditOutcome<C> }
  | { kind: "failure"; error: unknown };

/**
 * Outcomes in the order in which they are ready; `edits` is read only as far as is needed.
 *
 * Leaving early, `signal` and an error of `edits` itself give up what is on its way.
 */
export async function* applyEach<C extends Content>(
  edits: Edits<C>,
  applyOne: ApplyOne<C>,
  { maxConcurrency, signal }: { maxConcurrency: number; signal: AbortSignal | undefined },
): AsyncGenerator<EditOutcome<C>, void, undefined> {
  signal?.throwIfAborted();
  const run = new Run(edits, applyOne);
  const abort = (): void => run.put({ kind: "failure", error: signal?.reason });
  signal?.addEventListener("abort", abort);
  try {
    for (;;) {
      run.readUpTo(maxConcurrency);
      if (run.isOver) {
        return;
      }
      const news = await run.take();
      if (news.kind === "failure") {
        throw news.error;
      }
      if (news.kind === "outcome") {
        yield news.outcome;
      }
    }
  } finally {
    signal?.removeEventListener("abort", abort);
    await run.close();
  }
}

/** The edits that are on their way, and what has been heard of them. Nothing in it rejects. */
class Run<C extends Content> {
  readonly #source: AsyncIterator<Edit<C>> | Iterator<Edit<C>>;
  readonly #applyOne: ApplyOne<C>;
  readonly #leaving = new AbortController();
  readonly #running = new Set<Promise<void>>();
  readonly #news: News<C>[] = [];
  #wake: (() => void) | null = null;
  #numStarted = 0;
  #isReading = false;
  #isAtEnd = false;

  constructor(edits: Edits<C>, applyOne: ApplyOne<C>) {
    this.#source =
      Symbol.asyncIterator in edits ? edits[Symbol.asyncIterator]() : edits[Symbol.iterator]();
    this.#applyOne = applyOne;
  }

  /** Whether every edit has had its outcome taken. */
  get isOver(): boolean {
    return this.#isAtEnd && this.#running.size === 0 && this.#news.length === 0;
  }

  put(news: News<C>): void {
    this.#news.push(news);
    this.#wake?.();
  }

  /** The next news; an edit among them is on its way from then on. */
  async take(): Promise<News<C>> {
    for (;;) {
      const news = this.#news.shift();
      if (news === undefined) {
        await new Promise<void>((resolve) => (this.#wake = resolve));
        continue;
      }
      if (news.kind === "edit") {
        this.#isReading = false;
        this.#start(news.edit);
      }
      return news;
    }
  }

  /** Ask for another edit, unless so many are on their way or one is not taken yet. */
  readUpTo(maxConcurrency: number): void {
    if (!this.#isReading && !this.#isAtEnd && this.#running.size < maxConcurrency) {
      this.#isReading = true;
      void this.#read();
    }
  }

  /** Give up what is on its way. */
  async close(): Promise<void> {
    this.#leaving.abort();
    await Promise.all(this.#running);
    if (this.#isAtEnd) {
      return;
    }
    this.#isAtEnd = true;
    if (this.#isReading) {
      // Behind a read that may never end nobody should wait, and nobody is left to hear of errors.
      void Promise.resolve(this.#source.return?.()).catch(() => undefined);
    } else {
      await this.#source.return?.();
    }
  }

  async #read(): Promise<void> {
    try {
      const { done, value } = await this.#source.next();
      this.#isAtEnd ||= done === true;
      this.put(done === true ? { kind: "end" } : { kind: "edit", edit: value });
    } catch (error) {
      this.#isAtEnd = true;
      this.put({ kind: "failure", error });
    }
  }

  #start(edit: Edit<C>): void {
    const position = this.#numStarted;
    this.#numStarted += 1;
    const task = this.#apply(position, edit).then((news) => {
      this.#running.delete(task);
      this.put(news);
    });
    this.#running.add(task);
  }

  async #apply(position: number, edit: Edit<C>): Promise<News<C>> {
    try {
      const result = await this.#applyOne(edit, this.#leaving.signal);
      return { kind: "outcome", outcome: { position, edit, result, error: null } };
    } catch (error) {
      return error instanceof ApplyClientError
        ? { kind: "outcome", outcome: { position, edit, result: null, error } }
        : { kind: "failure", error };
    }
  }
}

/** Throws RangeError if so many edits at once make no sense. */
export function checkConcurrency(maxConcurrency: number): void {
  const isWhole = Number.isInteger(maxConcurrency);
  if (!isWhole || maxConcurrency < 1 || maxConcurrency > MAX_CONCURRENCY) {
    throw new RangeError(
      `maxConcurrency is ${maxConcurrency}; it must be a whole number from 1 to ${MAX_CONCURRENCY}`,
    );
  }
}
