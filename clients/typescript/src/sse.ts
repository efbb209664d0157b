/** Server-sent events out of bytes that come in pieces. */

import { InvalidResponseError } from "./errors.js";

export const MAX_EVENT_CHARACTERS = 64 << 20;

/** One event as the HTML standard has it; without a name it is a `message`. */
export interface ServerSentEvent {
  name: string;
  content: string;
}

/** Takes pieces cut anywhere; gives each event once its empty line has come. */
export class SseParser {
  readonly #lines: LineSplitter;
  readonly #maxCharacters: number;
  #name = "";
  #content: string[] = [];
  #numCharacters = 0;

  constructor(maxEventCharacters: number = MAX_EVENT_CHARACTERS) {
    this.#maxCharacters = maxEventCharacters;
    this.#lines = new LineSplitter(maxEventCharacters);
  }

  /** The events that a piece completes. Throws InvalidResponseError for one without an end. */
  feed(piece: Uint8Array): ServerSentEvent[] {
    const events: ServerSentEvent[] = [];
    for (const line of this.#lines.feed(piece)) {
      if (line !== "") {
        this.#takeField(line);
      } else if (this.#content.length > 0) {
        events.push(this.#takeEvent());
      } else {
        this.#name = "";
      }
    }
    return events;
  }

  #takeField(line: string): void {
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "event") {
      this.#name = value;
    } else if (field === "data") {
      this.#content.push(value);
      this.#numCharacters += value.length;
      checkSize(this.#numCharacters, this.#maxCharacters);
    }
  }

  #takeEvent(): ServerSentEvent {
    const event = { name: this.#name || "message", content: this.#content.join("\n") };
    this.#name = "";
    this.#content = [];
    this.#numCharacters = 0;
    return event;
  }
}

/** Lines that end with LF, CR or CRLF, out of UTF-8 cut anywhere; a first mark is dropped. */
class LineSplitter {
  readonly #decoder = new TextDecoder("utf-8", { fatal: true });
  readonly #maxCharacters: number;
  #begun: string[] = [];
  #numBegun = 0;
  #isAfterReturn = false;

  constructor(maxCharacters: number) {
    this.#maxCharacters = maxCharacters;
  }

  /** The lines that a piece completes, without their ends. */
  feed(piece: Uint8Array): string[] {
    let text = this.#decode(piece);
    if (this.#isAfterReturn && text !== "") {
      text = text.replace(/^\n/, "");
      this.#isAfterReturn = false;
    }
    this.#isAfterReturn ||= text.endsWith("\r");
    const parts = text.split(/\r\n|\r|\n/);
    const rest = parts.pop() ?? "";
    const lines = parts.map((part, position) => (position === 0 ? this.#complete(part) : part));
    this.#begin(rest);
    return lines;
  }

  #complete(end: string): string {
    const line = this.#begun.join("") + end;
    this.#begun = [];
    this.#numBegun = 0;
    return line;
  }

  #begin(text: string): void {
    this.#begun.push(text);
    this.#numBegun += text.length;
    checkSize(this.#numBegun, this.#maxCharacters);
  }

  #decode(piece: Uint8Array): string {
    try {
      return this.#decoder.decode(piece, { stream: true });
    } catch (cause) {
      throw new InvalidResponseError("the stream is not UTF-8; the answer is none of this API", {
        cause,
      });
    }
  }
}

function checkSize(numCharacters: number, limit: number): void {
  if (numCharacters > limit) {
    throw new InvalidResponseError(
      `an event has ${numCharacters} characters and goes on, the limit is ${limit}; ` +
        "the answer is none of this API",
    );
  }
}
