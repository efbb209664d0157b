/** One edit as a caller describes it, and its body on the wire. */

import { encodeBase64 } from "./base64.js";
import type {
  ApplyBody,
  FileBody,
  FilesBody,
  Status,
  WireFileAnswer,
  WireFilesResult,
  WireResult,
} from "./wire.js";

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

/** Whether the checks found nothing that a person should look at, in any file. */
export function isSure(result: { status: Status | WireFilesResult["status"] }): boolean {
  return result.status === "applied" || result.status === "unchanged";
}

/** One of several files; text comes back as text, bytes as bytes. */
export interface FileEdit extends Omit<FileBody, "original"> {
  original: Content;
}

/** Edits of several files, and what holds for all of them. */
export interface FilesEdit extends Omit<FilesBody, "files" | "stream" | "response"> {
  files: FileEdit[];
}

/** What became of one of several files. */
export interface FileResult extends Omit<WireFileAnswer, "result"> {
  result?: ApplyResult | null;
}

/** What became of several files, in the order of the request; new files of a patch come last. */
export interface FilesResult extends Omit<WireFilesResult, "files"> {
  files: FileResult[];
}

/** The body that asks for an edit. Throws TypeError for an original that is no file. */
export function bodyOf(edit: Edit, stream: boolean): ApplyBody {
  return { ...edit, original: originalOf(edit.original), stream, response: "both" };
}

/** The body that asks for edits of several files. Throws TypeError as above. */
export function filesBodyOf(edit: FilesEdit): FilesBody {
  const files = edit.files.map((file) => ({ ...file, original: originalOf(file.original) }));
  return { ...edit, files, response: "both" };
}

function originalOf(original: Content): ApplyBody["original"] {
  if (typeof original !== "string" && !ArrayBuffer.isView(original)) {
    throw new TypeError(`original is ${String(original)}; it must be a string or a Uint8Array`);
  }
  return typeof original === "string" ? original : { base64: encodeBase64(original) };
}
