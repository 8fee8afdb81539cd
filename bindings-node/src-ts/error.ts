/**
 * The root of all error classes. The others are generated from `spec/errors.json`; `failure.ts` creates them from the
 * core's failures.
 */

import type { CheckResult } from "./check";
import type { ErrorKind } from "./generated/errors";
import type { ChatCompletion, RequestViolation, Response } from "./generated/types";

/** All members of an error besides its message. Members that do not apply are `undefined`. */
export interface ErrorDetails {
  /** The kind of failure. */
  readonly kind: ErrorKind;
  /** What failed, in a sentence. */
  readonly message: string;
  /** `operationId` of the call, as in the specification. */
  readonly operation?: string | undefined;
  /** HTTP status of the response, if there was one. */
  readonly status?: number | undefined;
  /** Headers of the response, if there was one. */
  readonly headers?: Headers | undefined;
  /** The gateway's id of the request. */
  readonly requestId?: string | undefined;
  /** `code` of the error body. */
  readonly code?: string | undefined;
  /** `param` of the error body: the request member that caused the error. */
  readonly param?: string | undefined;
  /** `type` of the error body. */
  readonly type?: string | undefined;
  /** The time that the gateway asks clients to wait before the next attempt, in milliseconds. */
  readonly retryAfterMs?: number | undefined;
  /** Number of requests sent for the call; 0 if it failed before the first. */
  readonly attempts?: number | undefined;
  /** From the start of the call to the failure, in milliseconds. */
  readonly elapsedMs?: number | undefined;
  /**
   * For a failed stream: the document assembled from the events received so far. It has the form of the whole
   * response, with members missing.
   */
  readonly partial?: unknown;
  /** For a failed stream: the number of events and of body bytes that arrived. */
  readonly received?: { readonly events: number; readonly bytes: number } | undefined;
  /** The response body or stream event that reported the error: parsed if it is JSON, else its text. */
  readonly body?: unknown;
  /** The rules that the request breaks, if it was validated before it was sent. */
  readonly violations?: readonly RequestViolation[] | undefined;
  /** For a `check` ended by its signal: the result so far; cells that were not reached are marked `aborted:`. */
  readonly result?: CheckResult | undefined;
  /**
   * For an answer that is not a value of the schema (`StructuredOutputError`), and for a tool loop
   * (`ToolLoopError`): the whole answer, a `ChatCompletion` or a `Response`.
   */
  readonly answer?: unknown;
  /** For a tool loop: the conversation so far, including the last answer. */
  readonly messages?: readonly unknown[] | undefined;
  /** The cause: a chain of errors, or the reason passed to an `AbortController`. */
  readonly cause?: unknown;
}

/** Base class of every error that this package throws, except misuse of an argument (`TypeError`). */
export class GatewrightError extends Error {
  /** The kind of failure; one class for each. */
  declare readonly kind: ErrorKind;
  /** `operationId` of the call, as in the specification. */
  declare readonly operation: string | undefined;
  /** HTTP status of the response, if there was one. */
  declare readonly status: number | undefined;
  /** Headers of the response, if there was one. */
  declare readonly headers: Headers | undefined;
  /** The gateway's id of the request, to quote to its operator. */
  declare readonly requestId: string | undefined;
  /** `code` of the error body. */
  declare readonly code: string | undefined;
  /** `param` of the error body: the request member that caused the error. */
  declare readonly param: string | undefined;
  /** `type` of the error body. */
  declare readonly type: string | undefined;
  /** The time that the gateway asks clients to wait before the next attempt, in milliseconds. */
  declare readonly retryAfterMs: number | undefined;
  /** Number of requests sent for the call; 0 if it failed before the first. */
  declare readonly attempts: number | undefined;
  /** From the start of the call to the failure, in milliseconds. */
  declare readonly elapsedMs: number | undefined;
  /** For a failed stream: the document assembled from the events received so far. */
  declare readonly partial: unknown;
  /** For a failed stream: the number of events and of body bytes that arrived. */
  declare readonly received: { readonly events: number; readonly bytes: number } | undefined;
  /** The response body or stream event that reported the error: parsed if it is JSON, else its text. */
  declare readonly body: unknown;
  /** The rules that the request breaks, if it was validated before it was sent. */
  declare readonly violations: readonly RequestViolation[] | undefined;
  /** For a `check` ended by its signal: the result so far; cells that were not reached are marked `aborted:`. */
  declare readonly result: CheckResult | undefined;
  /**
   * For an answer that is not a value of the schema (`StructuredOutputError`), and for a tool loop
   * (`ToolLoopError`): the whole answer, a `ChatCompletion` or a `Response`.
   */
  declare readonly answer: unknown;
  /** For a tool loop: the conversation so far, including the last answer. */
  declare readonly messages: readonly unknown[] | undefined;

  /** `requestId` under the name in other SDKs. */
  get requestID(): string | undefined {
    return this.requestId;
  }

  /** `answer` as a chat completion. */
  get completion(): ChatCompletion | undefined {
    return this.answer as ChatCompletion | undefined;
  }

  /** `answer` as a response. */
  get response(): Response | undefined {
    return this.answer as Response | undefined;
  }

  constructor({ message, cause, ...details }: ErrorDetails) {
    super(message, cause === undefined ? undefined : { cause });
    Object.defineProperty(this, "name", { value: new.target.name, configurable: true, writable: true });
    // Only known values become members, so that a printed error does not list undefined ones.
    for (const [name, value] of Object.entries(details)) {
      if (value !== undefined)
        Object.defineProperty(this, name, { value, enumerable: true, configurable: true });
    }
  }
}
