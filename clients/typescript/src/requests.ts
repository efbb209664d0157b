/** Requests as values: what is sent where, before anything is sent. */

import { bodyOf, filesBodyOf, type Edit, type FilesEdit } from "./edit.js";

const JSON_TYPE = "application/json";
const EVENT_STREAM = "text/event-stream";

/** One HTTP request; `path` follows the address of the service. */
export interface ApiRequest {
  method: "GET" | "POST";
  path: string;
  headers: Record<string, string>;
  content?: string;
}

/** Ask for the whole answer to an edit. */
export function applyRequest(edit: Edit): ApiRequest {
  return editRequest(edit, false);
}

/** Ask for the answer to edits of several files. */
export function filesRequest(edit: FilesEdit): ApiRequest {
  return postRequest(filesBodyOf(edit), JSON_TYPE);
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
  return postRequest(bodyOf(edit, stream), stream ? EVENT_STREAM : JSON_TYPE);
}

function postRequest(body: object, accepted: string): ApiRequest {
  return {
    method: "POST",
    path: "/v1/apply",
    headers: { "Content-Type": JSON_TYPE, Accept: `${accepted}, */*;q=0.5` },
    content: JSON.stringify(body),
  };
}
