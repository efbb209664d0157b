/** One edit as a caller describes it, and its body on the wire. */

import { encodeBase64 } from "./base64.js";
import type { ApplyBody, Status, WireResult } from "./wire.js";

/** A file: text, or bytes in any text encoding, which come back in the same encoding. */
export type Content = string | Uint8Array;

/** The kind of file that comes back for one that was sent. */
export type Merged<C extends Content> = C extends string ? string : Uint8Array;

/** A file as it is now, a lazy update of it, and whatever else `POST /v1/apply` takes. */
export interface Edit<C extends Content = Content>
  extends Omit<ApplyBody, "original" | "stream" | "response"> {
  original: C;
}

/**
 * A merged file with its verdict; `merged` is text or bytes as the original was sent.
 *
 * `applied` and `unchanged` may be used, `needs_review` asks which of its `choices` is meant,
 * `rejected` comes only with `checks: "off"`. `edits` is null, since the client asks for text and diff.
 */
export interface ApplyResult<C extends Content = Content> extends Omit<WireResult, "merged"> {
  merged: Merged<C>;
}

/** Whether the checks found nothing that a person should look at. */
export function isSure(result: { status: Status }): boolean {
  return result.status === "applied" || result.status === "unchanged";
}

/** The body that asks for an edit. Throws TypeError for an original that is no file. */
export function bodyOf(edit: Edit, stream: boolean): ApplyBody {
  const { original } = edit;
  if (typeof original !== "string" && !ArrayBuffer.isView(original)) {
    throw new TypeError(`original is ${String(original)}; it must be a string or a Uint8Array`);
  }
  const content = typeof original === "string" ? original : { base64: encodeBase64(original) };
  return { ...edit, original: content, stream, response: "both" };
}
