/** Whether a service answers and takes edits. */

import { checkStatus, problemOf } from "./answers.js";
import type { Answer } from "./exchange.js";

/** `isReady` is false if the model cannot be loaded or the service drains; `reason` says so. */
export interface ServiceStatus {
  isReady: boolean;
  reason: string | null;
}

/** What two answers about health say. Throws APIStatusError if they are refusals. */
export function statusOf(live: Answer, ready: Answer): ServiceStatus {
  checkStatus(live);
  if (ready.status === 503) {
    return { isReady: false, reason: problemOf(ready).detail };
  }
  checkStatus(ready);
  return { isReady: true, reason: null };
}
