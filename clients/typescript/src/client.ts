/** `ApplyClient`: one service, asked by `fetch`. */

import { resolveAddress } from "./address.js";
import { checkStatus, filesResultOf, modelsOf, requestIdOf, resultOf } from "./answers.js";
import { CallTime, type CallOptions } from "./call_time.js";
import type { ApplyResult, Content, Edit, FilesEdit, FilesResult } from "./edit.js";
import { EventReader, type StreamEvent } from "./events.js";
import {
  checkPolicy,
  checkTimeout,
  DEFAULT_RETRY,
  exchange,
  type Answer,
  type RetryPolicy,
} from "./exchange.js";
import {
  applyEach,
  checkConcurrency,
  DEFAULT_CONCURRENCY,
  type EditOutcome,
  type ManyOptions,
} from "./many.js";
import {
  applyRequest,
  filesRequest,
  healthRequest,
  modelsRequest,
  streamRequest,
  type ApiRequest,
} from "./requests.js";
import { statusOf, type ServiceStatus } from "./status.js";
import { readPieces, Transport, type Fetch } from "./transport.js";
import type { Choice, ModelCard } from "./wire.js";

const DEFAULT_TIMEOUT_MS = 120_000;
const SINGLE_TRY: RetryPolicy = { ...DEFAULT_RETRY, maxRetries: 0 };

type RetryOptions = { [Name in keyof RetryPolicy]?: RetryPolicy[Name] | undefined };

/** How a client is set; the retries are explained at `RetryPolicy`. */
export interface ClientOptions extends RetryOptions {
  /** Address of the service; left out, `APPLY_SERVICE_URL`, else http://127.0.0.1:8722. */
  baseUrl?: string | undefined;
  /** Left out, `APPLY_API_KEY`, else none is sent. */
  apiKey?: string | undefined;
  /** Milliseconds for a whole call, with all tries and waits; 120,000 if left out. */
  timeoutMs?: number | undefined;
  /** Sends the requests; left out, the one of the platform. */
  fetch?: Fetch | undefined;
}

/** Sends edits and gives typed results. It holds nothing that would have to be closed. */
export class ApplyClient {
  readonly #transport: Transport;
  readonly #policy: RetryPolicy;
  readonly #timeoutMs: number;

  /** Throws AddressError, RangeError. */
  constructor(options: ClientOptions = {}) {
    const { baseUrl, apiKey, timeoutMs = DEFAULT_TIMEOUT_MS } = options;
    this.#policy = {
      maxRetries: options.maxRetries ?? DEFAULT_RETRY.maxRetries,
      firstDelayMs: options.firstDelayMs ?? DEFAULT_RETRY.firstDelayMs,
      maxDelayMs: options.maxDelayMs ?? DEFAULT_RETRY.maxDelayMs,
    };
    this.#timeoutMs = timeoutMs;
    checkPolicy(this.#policy, timeoutMs);
    // Called as a method of anything but the global object, a browser's `fetch` refuses.
    const send = options.fetch ?? ((...request: Parameters<Fetch>) => globalThis.fetch(...request));
    this.#transport = new Transport(resolveAddress(baseUrl, apiKey), send);
  }

  /**
   * Merge an update into a file; text in gives text out, bytes give bytes.
   *
   * Throws EditRejectedError with findings for a result that failed its checks, and the other
   * kinds of ApplyClientError.
   */
  async apply<C extends Content>(edit: Edit<C>, call: CallOptions = {}): Promise<ApplyResult<C>> {
    return resultOf(await this.#ask(applyRequest(edit), call), edit.original);
  }

  /**
   * Apply an edit in doubt as one of its choices, or the id of one, says.
   *
   * Throws UnknownChoiceError with fresh choices if it is none of this edit.
   */
  async resolve<C extends Content>(
    edit: Edit<C>,
    choice: Pick<Choice, "id"> | string,
    call: CallOptions = {},
  ): Promise<ApplyResult<C>> {
    const resolve = typeof choice === "string" ? choice : choice.id;
    return this.apply({ ...edit, resolve }, call);
  }

  /**
   * Apply edits of several files in one request; one that fails has a problem of its own.
   *
   * Throws APIStatusError for a request that is refused as a whole.
   */
  async applyFiles(edit: FilesEdit, call: CallOptions = {}): Promise<FilesResult> {
    return filesResultOf(await this.#ask(filesRequest(edit), call));
  }

  /**
   * Events while the edit is written and, last, its result; leaving early withdraws it.
   *
   * Tries again only until the stream begins. Throws what `apply` throws, while it is read too.
   */
  async *applyStream<C extends Content>(
    edit: Edit<C>,
    call: CallOptions = {},
  ): AsyncGenerator<StreamEvent<C>, void, undefined> {
    const request = streamRequest(edit);
    const time = this.#start(call);
    try {
      const answer = await exchange(this.#policy, time, () => this.#transport.open(request, time));
      checkStatus(answer);
      const reader = new EventReader(edit.original, requestIdOf(answer));
      if (answer.body !== null) {
        for await (const piece of readPieces(answer.body, request, time)) {
          yield* reader.feed(piece);
          if (reader.isDone) {
            return;
          }
        }
      }
      reader.end();
    } finally {
      time.close();
    }
  }

  /**
   * Apply independent edits, so many at once; outcomes come as they are ready.
   *
   * `edits` is read only as far as is needed. An edit that fails is an outcome with an error;
   * `timeoutMs` is for each edit, `signal` for all of them. Throws RangeError.
   */
  applyMany<C extends Content>(
    edits: Iterable<Edit<C>> | AsyncIterable<Edit<C>>,
    { maxConcurrency = DEFAULT_CONCURRENCY, signal, ...call }: ManyOptions = {},
  ): AsyncGenerator<EditOutcome<C>, void, undefined> {
    checkConcurrency(maxConcurrency);
    const applyOne = (edit: Edit<C>, leaving: AbortSignal): Promise<ApplyResult<C>> =>
      this.apply(edit, { ...call, signal: leaving });
    return applyEach(edits, applyOne, { maxConcurrency, signal });
  }

  /** The models that are served, once they are loaded; none if they do not load. */
  async models(call: CallOptions = {}): Promise<ModelCard[]> {
    return modelsOf(await this.#ask(modelsRequest(), call));
  }

  /** Whether the service answers and takes edits, asked once. Throws APIConnectionError. */
  async status(call: CallOptions = {}): Promise<ServiceStatus> {
    const live = await this.#ask(healthRequest("live"), call, SINGLE_TRY);
    const ready = await this.#ask(healthRequest("ready"), call, SINGLE_TRY);
    return statusOf(live, ready);
  }

  async #ask(request: ApiRequest, call: CallOptions, policy = this.#policy): Promise<Answer> {
    const time = this.#start(call);
    try {
      return await exchange(policy, time, () => this.#transport.sendAndRead(request, time));
    } finally {
      time.close();
    }
  }

  #start({ timeoutMs = this.#timeoutMs, signal }: CallOptions): CallTime {
    checkTimeout(timeoutMs);
    return new CallTime(timeoutMs, signal);
  }
}
