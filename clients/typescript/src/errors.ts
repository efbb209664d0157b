/**
 * What can go wrong between a caller and the service.
 *
 * ApplyClientError ← AddressError, APIConnectionError, APIStatusError, InvalidResponseError
 * APIConnectionError ← APITimeoutError
 * APIStatusError ← BadRequestError, AuthenticationError, NotFoundError, TooLargeError,
 *     UnknownChoiceError, UnprocessableEditError, RateLimitError, ServerError
 * UnprocessableEditError ← EditRejectedError
 */

import type { Choice, Finding, Problem } from "./wire.js";

export interface ErrorDetails {
  requestId?: string | null;
  cause?: unknown;
}

/** Base of everything that the client throws itself; `requestId` is the service's, if known. */
export class ApplyClientError extends Error {
  override readonly name: string = "ApplyClientError";
  readonly requestId: string | null;

  constructor(message: string, { requestId = null, cause }: ErrorDetails = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.requestId = requestId;
  }
}

/** The address or the API key cannot be used. */
export class AddressError extends ApplyClientError {
  override readonly name: string = "AddressError";
}

/** The service could not be reached, or its answer broke off. */
export class APIConnectionError extends ApplyClientError {
  override readonly name: string = "APIConnectionError";
}

/** There was no answer within the time that was allowed. */
export class APITimeoutError extends APIConnectionError {
  override readonly name: string = "APITimeoutError";
}

/** The answer is none of this API: another server, or one that is too old or too new. */
export class InvalidResponseError extends ApplyClientError {
  override readonly name: string = "InvalidResponseError";
}

/** The service refused; `problem` says why, with value, limit and remedy where there are any. */
export class APIStatusError extends ApplyClientError {
  override readonly name: string = "APIStatusError";
  readonly problem: Problem;

  constructor(problem: Problem, { requestId = null, cause }: ErrorDetails = {}) {
    super(problem.remedy ? `${problem.detail}; ${problem.remedy}` : problem.detail, {
      requestId: requestId ?? problem.request_id ?? problem.id ?? null,
      cause,
    });
    this.problem = problem;
  }

  /** The HTTP status. */
  get status(): number {
    return this.problem.status;
  }

  /** The name of the problem, such as `file-too-large`. */
  get code(): string {
    return this.problem.code;
  }

  /** What the update may mean, the likeliest first; empty where nothing can be chosen. */
  get choices(): readonly Choice[] {
    return this.problem.choices ?? [];
  }
}

/** 400 and other refusals of the request itself. */
export class BadRequestError extends APIStatusError {
  override readonly name: string = "BadRequestError";
}

/** 401 or 403: the API key is missing, wrong, or not allowed to do this. */
export class AuthenticationError extends APIStatusError {
  override readonly name: string = "AuthenticationError";
}

/** 404: no such address, or the model is not served. */
export class NotFoundError extends APIStatusError {
  override readonly name: string = "NotFoundError";
}

/** 413: the file, the prompt or the body is over its limit. */
export class TooLargeError extends APIStatusError {
  override readonly name: string = "TooLargeError";
}

/** 409: no choice of this edit has the id; perhaps the file has changed. See `choices`. */
export class UnknownChoiceError extends APIStatusError {
  override readonly name: string = "UnknownChoiceError";
}

/** 422: the update cannot be applied to this file. */
export class UnprocessableEditError extends APIStatusError {
  override readonly name: string = "UnprocessableEditError";
}

/**
 * 422: there was a result, but it failed its checks and is not returned.
 *
 * `findings` say what is wrong, each with a hint for whoever wrote the update.
 */
export class EditRejectedError extends UnprocessableEditError {
  override readonly name: string = "EditRejectedError";

  /** What the checks found. */
  get findings(): readonly Finding[] {
    return this.problem.findings ?? [];
  }
}

/** 429: the queue or a limit of the API key is full; every retry that was allowed is spent. */
export class RateLimitError extends APIStatusError {
  override readonly name: string = "RateLimitError";
}

/** 5xx: the service failed, is starting or stopping, or passed the deadline. */
export class ServerError extends APIStatusError {
  override readonly name: string = "ServerError";
}

const KIND_BY_STATUS = new Map<number, typeof APIStatusError>([
  [401, AuthenticationError],
  [403, AuthenticationError],
  [404, NotFoundError],
  [409, UnknownChoiceError],
  [413, TooLargeError],
  [422, UnprocessableEditError],
  [429, RateLimitError],
]);

/** The error that a problem is. */
export function errorOf(problem: Problem, requestId: string | null): APIStatusError {
  if (problem.status === 422 && problem.findings != null) {
    return new EditRejectedError(problem, { requestId });
  }
  const usual = problem.status >= 500 ? ServerError : BadRequestError;
  const kind = KIND_BY_STATUS.get(problem.status) ?? usual;
  return new kind(problem, { requestId });
}
