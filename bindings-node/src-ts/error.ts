/**
 * The root of all error classes. The others are generated from `spec/errors.json`; `failure.ts` makes them
 * from what the native core reports.
 */

import type { CheckResult } from "./check";
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
  /** Headers of the answer, if there was one. */
  readonly headers?: Headers | undefined;
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
  /** From the start of the call to the failure, in milliseconds. */
  readonly elapsedMs?: number | undefined;
  /**
   * Of a stream that failed: the document that its events add up to, as far as they came. Its form is that of the
   * whole answer, with members missing.
   */
  readonly partial?: unknown;
  /** Of a stream that failed: how many events, and bytes of the body, had arrived. */
  readonly received?: { readonly events: number; readonly bytes: number } | undefined;
  /** The answer's body, or the event that told of the error: parsed if it was JSON, else its text. */
  readonly body?: unknown;
  /** Every rule a request breaks, where it was checked before it was sent. */
  readonly violations?: readonly RequestViolation[] | undefined;
  /** Of a `check` that its signal ended: what was done, with the cells that were not reached marked `aborted:`. */
  readonly result?: CheckResult | undefined;
  /** What led to it: a chain of errors, or the reason given to an `AbortController`. */
  readonly cause?: unknown;
}

/** Base of every error this package throws, misuse of an argument (`TypeError`) aside. */
export class GatewrightError extends Error {
  /** The kind of failure; one class for each. */
  declare readonly kind: ErrorKind;
  declare readonly operation: string | undefined;
  declare readonly status: number | undefined;
  declare readonly headers: Headers | undefined;
  declare readonly requestId: string | undefined;
  declare readonly code: string | undefined;
  declare readonly param: string | undefined;
  declare readonly type: string | undefined;
  declare readonly retryAfterMs: number | undefined;
  declare readonly attempts: number | undefined;
  declare readonly elapsedMs: number | undefined;
  declare readonly partial: unknown;
  declare readonly received: { readonly events: number; readonly bytes: number } | undefined;
  declare readonly body: unknown;
  declare readonly violations: readonly RequestViolation[] | undefined;
  /** Of a `check` that its signal ended: what was done, with the cells that were not reached marked `aborted:`. */
  declare readonly result: CheckResult | undefined;

  /** `requestId`, as other SDKs call it. */
  get requestID(): string | undefined {
    return this.requestId;
  }

  constructor({ message, cause, ...details }: ErrorDetails) {
    super(message, cause === undefined ? undefined : { cause });
    Object.defineProperty(this, "name", { value: new.target.name, configurable: true, writable: true });
    // Only what is known becomes a member: a printed error shows no row of undefined.
    for (const [name, value] of Object.entries(details)) {
      if (value !== undefined)
        Object.defineProperty(this, name, { value, enumerable: true, configurable: true });
    }
  }
}
