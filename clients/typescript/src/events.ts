/** What a stream tells while an edit is written. */

import { decodeJson, hasMembers, problemFrom, resultFrom } from "./answers.js";
import type { ApplyResult, Content } from "./edit.js";
import { APIConnectionError, errorOf } from "./errors.js";
import { SseParser, type ServerSentEvent } from "./sse.js";
import type { RegionEndEvent, RegionEvent, TokenEvent, WireEvents } from "./wire.js";

/**
 * One event of a stream; `type` is its name. Exactly one `result` comes, as the last.
 *
 * The `error` that can come in its place is thrown, as the error that `apply` would have thrown.
 */
export type StreamEvent<C extends Content = Content> =
  | ({ type: "region" } & RegionEvent)
  | ({ type: "token" } & TokenEvent)
  | ({ type: "region_done" } & RegionEndEvent)
  | ({ type: "region_restart" } & RegionEndEvent)
  | { type: "result"; result: ApplyResult<C> };

type MemberTypes<T> = { [Name in keyof T]: T[Name] extends string ? "string" : "number" };
type ProgressName = Exclude<keyof WireEvents, "result" | "error">;

const MEMBERS: { [Name in ProgressName]: MemberTypes<WireEvents[Name]> } = {
  region: { region: "number", start_line: "number", end_line: "number" },
  token: { text: "string", region: "number" },
  region_done: { region: "number" },
  region_restart: { region: "number" },
};

/** Turns the bytes of a stream into events. Does no I/O. */
export class EventReader<C extends Content> {
  readonly #original: C;
  readonly #requestId: string | null;
  readonly #parser = new SseParser();
  #isDone = false;

  constructor(original: C, requestId: string | null) {
    this.#original = original;
    this.#requestId = requestId;
  }

  /** Whether the result has come. */
  get isDone(): boolean {
    return this.#isDone;
  }

  /**
   * What a piece completes; nothing behind the result. Events of other names are skipped.
   *
   * Throws APIStatusError for an `error` event, InvalidResponseError for garbage.
   */
  *feed(piece: Uint8Array): Generator<StreamEvent<C>, void, undefined> {
    for (const event of this.#parser.feed(piece)) {
      const item = this.#itemOf(event);
      if (item !== null) {
        yield item;
      }
      if (this.#isDone) {
        return;
      }
    }
  }

  /** The stream has ended. Throws APIConnectionError if that was before its result. */
  end(): void {
    if (!this.#isDone) {
      throw new APIConnectionError("the stream ended before its result; send the edit again", {
        requestId: this.#requestId,
      });
    }
  }

  #itemOf({ name, content }: ServerSentEvent): StreamEvent<C> | null {
    if (name === "result") {
      this.#isDone = true;
      return { type: "result", result: resultFrom(content, this.#original, this.#requestId) };
    }
    if (name === "error") {
      throw errorOf(problemFrom(content, this.#requestId), this.#requestId);
    }
    return isProgress(name) ? this.#progress(name, content) : null;
  }

  #progress<Name extends ProgressName>(name: Name, content: string): StreamEvent<C> {
    const isExpected = (value: unknown): value is WireEvents[Name] =>
      hasMembers(value, MEMBERS[name]);
    const members = decodeJson(content, isExpected, this.#requestId);
    return { ...members, type: name } as unknown as StreamEvent<C>;
  }
}

function isProgress(name: string): name is ProgressName {
  return Object.hasOwn(MEMBERS, name);
}
