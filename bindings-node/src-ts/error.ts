/**
 * The root of all error classes. The others are generated from `spec/errors.json`; `failure.ts` makes them
 * from what the native core reports.
 */

import type { ErrorKind } from "./generated/errors";

/** Everything an error tells beside its message. Members that do not apply are `undefined`. */
export interface ErrorDetails {
  readonly kind: ErrorKind;
  readonly message: string;
  /** `operationId` of the call, as in the specification. */
  readonly operation?: string | undefined;
  /** HTTP status of the answer, if there was one. */
  readonly status?: number | undefined;
  readonly requestId?: string | undefined;
  /** `code` of the error body. */
  readonly code?: string | undefined;
  /** `param` of the error body: the request member it is about. */
  readonly param?: string | undefined;
  /** `type` of the error body. */
  readonly type?: string | undefined;
  /** How long the gateway asks to wait before the next attempt, in milliseconds. */
  readonly retryAfterMs?: number | undefined;
  /** The answer's body: parsed if it was JSON, else its text. */
  readonly body?: unknown;
  /** What led to it: a chain of errors, or the reason given to an `AbortController`. */
  readonly cause?: unknown;
}

/** Base of every error this package throws, misuse of an argument (`TypeError`) aside. */
export class GatewrightError extends Error {
  /** The kind of failure; one class for each. */
  declare readonly kind: ErrorKind;
  readonly operation: string | undefined;
  readonly status: number | undefined;
  readonly requestId: string | undefined;
  readonly code: string | undefined;
  readonly param: string | undefined;
  readonly type: string | undefined;
  readonly retryAfterMs: number | undefined;
  readonly body: unknown;

  constructor(details: ErrorDetails) {
    super(details.message, details.cause === undefined ? undefined : { cause: details.cause });
    Object.defineProperty(this, "name", { value: new.target.name, configurable: true, writable: true });
    this.kind = details.kind;
    this.operation = details.operation;
    this.status = details.status;
    this.requestId = details.requestId;
    this.code = details.code;
    this.param = details.param;
    this.type = details.type;
    this.retryAfterMs = details.retryAfterMs;
    this.body = details.body;
  }
}
