/** From an HTTP answer to a typed result or an error. */

import { tryDecodeBase64 } from "./base64.js";
import type { ApplyResult, Content, FileResult, FilesResult, Merged } from "./edit.js";
import { errorOf, InvalidResponseError } from "./errors.js";
import type { Answer } from "./exchange.js";
import type {
  ModelCard,
  ModelList,
  Problem,
  WireFileAnswer,
  WireFilesResult,
  WireResult,
} from "./wire.js";

const MAX_SHOWN_CHARACTERS = 200;

/** The service's name of a request, as its answer has it. */
export function requestIdOf(answer: Answer): string | null {
  return answer.headers.get("x-request-id");
}

/** Throws the error that an answer is, if it is one. */
export function checkStatus(answer: Answer): void {
  if (answer.status !== 200) {
    throw errorOf(problemOf(answer), requestIdOf(answer));
  }
}

/** The result of an edit of this original. Throws APIStatusError, InvalidResponseError. */
export function resultOf<C extends Content>(answer: Answer, original: C): ApplyResult<C> {
  checkStatus(answer);
  const requestId = requestIdOf(answer);
  return resultFrom(decodeUtf8(contentOf(answer), requestId), original, requestId);
}

/** The result that a piece of JSON is. Throws InvalidResponseError. */
export function resultFrom<C extends Content>(
  text: string,
  original: C,
  requestId: string | null,
): ApplyResult<C> {
  const wire = decodeJson(text, isWireResult, requestId);
  const { merged: sent } = wire;
  const merged = typeof sent === "string" ? sent : tryDecodeBase64(sent?.base64 ?? "?");
  if (merged === null || (typeof merged === "string") !== (typeof original === "string")) {
    throw new InvalidResponseError(
      "the merged file did not come in the form in which the original was sent; see whether the " +
        "address is that of an apply-service of this version",
      { requestId },
    );
  }
  // A service of an older version offers none.
  const choices = (wire as Partial<WireResult>).choices ?? [];
  return { ...wire, choices, merged: merged as Merged<C> };
}

/** What became of several files. Throws APIStatusError, InvalidResponseError. */
export function filesResultOf(answer: Answer): FilesResult {
  checkStatus(answer);
  const requestId = requestIdOf(answer);
  const text = decodeUtf8(contentOf(answer), requestId);
  const wire = decodeJson(text, isWireFilesResult, requestId);
  return { ...wire, files: wire.files.map((file) => fileResultOf(file, requestId)) };
}

function fileResultOf(file: WireFileAnswer, requestId: string | null): FileResult {
  const { result, ...rest } = file;
  if (result == null) {
    return rest;
  }
  const { merged: sent } = result;
  const merged = typeof sent === "string" ? sent : tryDecodeBase64(sent?.base64 ?? "?");
  if (merged === null) {
    throw new InvalidResponseError(`the merged file ${file.path} is neither text nor Base64`, {
      requestId,
    });
  }
  return { ...rest, result: { ...result, merged } };
}

/** The models that are served. Throws APIStatusError, InvalidResponseError. */
export function modelsOf(answer: Answer): ModelCard[] {
  checkStatus(answer);
  const requestId = requestIdOf(answer);
  return decodeJson(decodeUtf8(contentOf(answer), requestId), isModelList, requestId).data;
}

/** The problem of a refusal; what stands between client and service may write another form. */
export function problemOf(answer: Answer): Problem {
  const text = new TextDecoder().decode(contentOf(answer));
  const problem = tryProblem(text);
  if (problem !== null) {
    return { ...problem, status: answer.status };
  }
  const shown = text.trim().slice(0, MAX_SHOWN_CHARACTERS) || "nothing more";
  return {
    type: "about:blank",
    title: "",
    status: answer.status,
    detail: `the service answered ${answer.status}: ${shown}`,
    code: "unknown",
  };
}

/** The problem that the data of an `error` event is. Throws InvalidResponseError. */
export function problemFrom(text: string, requestId: string | null): Problem {
  return decodeJson(text, isProblem, requestId);
}

/** JSON of this API. Throws InvalidResponseError with the beginning of what came. */
export function decodeJson<T>(
  text: string,
  isExpected: (value: unknown) => value is T,
  requestId: string | null,
): T {
  let value: unknown;
  let cause: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    cause = error;
  }
  if (cause === undefined && isExpected(value)) {
    return value;
  }
  const shown = JSON.stringify(text.slice(0, MAX_SHOWN_CHARACTERS));
  throw new InvalidResponseError(
    `the answer is none of this API: ${shown}; see whether the address is that of an ` +
      "apply-service of this version",
    { requestId, cause },
  );
}

/** Whether a value is an object with a member of this type under each of these names. */
export function hasMembers(
  value: unknown,
  types: Readonly<Record<string, "string" | "number" | "boolean" | "object">>,
): value is Record<string, unknown> {
  if (typeof value !== "object" || value === null) {
    return false;
  }
  const members = value as Record<string, unknown>;
  return Object.entries(types).every(([name, type]) => typeof members[name] === type);
}

function isWireResult(value: unknown): value is WireResult {
  return (
    hasMembers(value, { id: "string", status: "string", usage: "object", timing: "object" }) &&
    Array.isArray(value["findings"]) &&
    (typeof value["merged"] === "string" || hasMembers(value["merged"], { base64: "string" }))
  );
}

function isWireFilesResult(value: unknown): value is WireFilesResult {
  return (
    hasMembers(value, { status: "string", atomic: "boolean", usage: "object" }) &&
    Array.isArray(value["files"]) &&
    value["files"].every(isWireFileAnswer)
  );
}

function isWireFileAnswer(value: unknown): value is WireFileAnswer {
  return (
    hasMembers(value, { path: "string", action: "string" }) &&
    (value["result"] == null || isWireResult(value["result"])) &&
    (value["problem"] == null || isProblem(value["problem"]))
  );
}

function isProblem(value: unknown): value is Problem {
  return hasMembers(value, { status: "number", detail: "string", code: "string" });
}

function isModelList(value: unknown): value is ModelList {
  return (
    hasMembers(value, {}) &&
    Array.isArray(value["data"]) &&
    value["data"].every((card) => hasMembers(card, { id: "string", profile: "string" }))
  );
}

function tryProblem(text: string): Problem | null {
  try {
    const value: unknown = JSON.parse(text);
    return isProblem(value) ? value : null;
  } catch {
    return null;
  }
}

function contentOf(answer: Answer): Uint8Array {
  return answer.content ?? new Uint8Array();
}

/** Text without loss: a byte that is no UTF-8 must not become another one in a file. */
function decodeUtf8(content: Uint8Array, requestId: string | null): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(content);
  } catch (cause) {
    throw new InvalidResponseError("the answer is not UTF-8, and so none of this API", {
      requestId,
      cause,
    });
  }
}
