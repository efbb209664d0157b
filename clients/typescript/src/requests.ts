/** Requests as values: what is sent where, before anything is sent. */

import { subjectOf, type Subject } from "./affinity.js";
import { bodyOf, filesBodyOf, type Edit, type FilesEdit } from "./edit.js";

const JSON_TYPE = "application/json";
const EVENT_STREAM = "text/event-stream";

/** One HTTP request; `path` follows the address of the service, `subject` is its file. */
export interface ApiRequest {
  method: "GET" | "POST";
  path: string;
  headers: Record<string, string>;
  content?: string;
  subject?: Subject | undefined;
}

/** Ask for the whole answer to an edit. */
export function applyRequest(edit: Edit): ApiRequest {
  return editRequest(edit, false);
}

/** Ask for the answer to edits of several files. */
export function filesRequest(edit: FilesEdit): ApiRequest {
  const body = filesBodyOf(edit);
  const [first] = edit.files;
  return postRequest(body, JSON_TYPE, first && subjectOf(first.path, first.original));
}

/** Ask for the events of an edit. */
export function streamRequest(edit: Edit): ApiRequest {
  return editRequest(edit, true);
}

/** Ask which models are served. */
export function modelsRequest(): ApiRequest {
  return { method: "GET", path: "/v1/models", headers: { Accept: JSON_TYPE } };
}

/** Ask whether the service answers, or takes edits. */
export function healthRequest(name: "live" | "ready"): ApiRequest {
  return { method: "GET", path: `/health/${name}`, headers: { Accept: JSON_TYPE } };
}

function editRequest(edit: Edit, stream: boolean): ApiRequest {
  // The body is made first: it says what is wrong with an original.
  const body = bodyOf(edit, stream);
  return postRequest(body, stream ? EVENT_STREAM : JSON_TYPE, subjectOf(edit.path, edit.original));
}

function postRequest(body: object, accepted: string, subject?: Subject): ApiRequest {
  return {
    method: "POST",
    path: "/v1/apply",
    headers: { "Content-Type": JSON_TYPE, Accept: `${accepted}, */*;q=0.5` },
    content: JSON.stringify(body),
    subject,
  };
}
