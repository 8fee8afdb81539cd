/**
 * The root of all error classes. The others are generated from `spec/errors.json`; `failure.ts` makes them
 * from what the native core reports.
 */

import type { ErrorKind } from "./generated/errors";
import type { RequestViolation } from "./generated/types";

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
  /** How many requests were sent for the call; 0 where it failed before the first. */
  readonly attempts?: number | undefined;
  /** The answer's body, or the event that told of the error: parsed if it was JSON, else its text. */
  readonly body?: unknown;
  /** Every rule a request breaks, where it was checked before it was sent. */
  readonly violations?: readonly RequestViolation[] | undefined;
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
  readonly attempts: number | undefined;
  readonly body: unknown;
  readonly violations: readonly RequestViolation[];

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
    this.attempts = details.attempts;
    this.body = details.body;
    this.violations = details.violations ?? [];
  }
}
