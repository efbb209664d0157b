/** Requests sent by `fetch`, and what its errors mean. */

import { AFFINITY_HEADER, affinityOf } from "./affinity.js";
import type { Address } from "./address.js";
import type { CallTime } from "./call_time.js";
import type { APIConnectionError } from "./errors.js";
import type { Answer } from "./exchange.js";
import type { ApiRequest } from "./requests.js";

export type Fetch = typeof globalThis.fetch;

/** Sends requests to one service. */
export class Transport {
  readonly #address: Address;
  readonly #fetch: Fetch;

  constructor(address: Address, fetch: Fetch) {
    this.#address = address;
    this.#fetch = fetch;
  }

  /** The whole answer. */
  async sendAndRead(request: ApiRequest, time: CallTime): Promise<Answer | APIConnectionError> {
    try {
      return await this.#readWhole(await this.#send(request, time));
    } catch (error) {
      return time.failureOf(error, whatOf(request));
    }
  }

  /** The head of a 200, whose body is still to be read, or any other answer whole. */
  async open(request: ApiRequest, time: CallTime): Promise<Answer | APIConnectionError> {
    try {
      const response = await this.#send(request, time);
      const { status, headers, body } = response;
      return status === 200
        ? { status, headers, content: null, body }
        : await this.#readWhole(response);
    } catch (error) {
      return time.failureOf(error, whatOf(request));
    }
  }

  async #readWhole(response: Response): Promise<Answer> {
    const content = new Uint8Array(await response.arrayBuffer());
    return { status: response.status, headers: response.headers, content, body: null };
  }

  async #send(request: ApiRequest, time: CallTime): Promise<Response> {
    const { url, apiKey } = this.#address;
    const headers = { ...request.headers };
    if (apiKey !== null) {
      headers["Authorization"] = `Bearer ${apiKey}`;
    }
    const affinity = request.subject && (await affinityOf(request.subject, apiKey));
    if (affinity) {
      headers[AFFINITY_HEADER] = affinity;
    }
    const fetch = this.#fetch;
    return fetch(url + request.path, {
      method: request.method,
      headers,
      body: request.content ?? null,
      redirect: "manual",
      signal: time.signal,
    });
  }
}

/** The pieces of a body that is open. Throws APIConnectionError; leaving early closes it. */
export async function* readPieces(
  body: ReadableStream<Uint8Array>,
  request: ApiRequest,
  time: CallTime,
): AsyncGenerator<Uint8Array, void, undefined> {
  const reader = body.getReader();
  let isAtEnd = false;
  try {
    while (!isAtEnd) {
      const { done, value } = await readOne(reader, request, time);
      isAtEnd = done;
      if (value !== undefined) {
        yield value;
      }
    }
  } finally {
    if (!isAtEnd) {
      // A body that has failed already refuses to be closed as well, with the same error.
      await reader.cancel().catch(() => undefined);
    }
  }
}

async function readOne(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  request: ApiRequest,
  time: CallTime,
): Promise<{ done: boolean; value?: Uint8Array | undefined }> {
  try {
    return await reader.read();
  } catch (error) {
    throw time.failureOf(error, whatOf(request));
  }
}

function whatOf(request: ApiRequest): string {
  return `${request.method} ${request.path}`;
}
