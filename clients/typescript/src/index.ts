/**
 * Client of apply-service: lazy edits in, merged files with a verdict out.
 *
 * - client.ts      `ApplyClient`
 * - edit.ts        what a caller asks for and gets; wire.ts the shapes of the HTTP interface
 * - errors.ts      what can go wrong; answers.ts makes results and errors of HTTP answers
 * - exchange.ts    when a request is tried again; call_time.ts one call's time and signal
 * - sse.ts         server-sent events, and events.ts what they mean
 * - many.ts        many edits, so many at once
 */

export { ApplyClient, type ClientOptions } from "./client.js";
export type { CallOptions } from "./call_time.js";
export {
  isSure,
  type ApplyResult,
  type Content,
  type Edit,
  type FileEdit,
  type FileResult,
  type FilesEdit,
  type FilesResult,
  type Merged,
} from "./edit.js";
export * from "./errors.js";
export type { StreamEvent } from "./events.js";
export type { RetryPolicy } from "./exchange.js";
export type { EditOutcome, ManyOptions } from "./many.js";
export type { ServiceStatus } from "./status.js";
export type * from "./wire.js";
