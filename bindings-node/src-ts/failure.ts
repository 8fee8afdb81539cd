/** Creates error objects from the core's failures, with the stack of the code that made the call. */

import type { ErrorDetails, GatewrightError } from "./error";
import { type ErrorKind, errorClasses } from "./generated/errors";
import { headersOf } from "./headers";

/** A failure as the core writes it. */
export interface EngineFailure extends Omit<ErrorDetails, "cause" | "headers"> {
  readonly headers?: [string, string][];
  /** Messages of the causes, nearest first. */
  readonly causes: readonly string[];
}

/** Where a call was made. Recorded at the start of the call: at its end, the caller is no longer on the stack. */
export class CallSite {
  declare readonly stack: string;

  /** `innermost`: our own method or class, which is omitted from the stack with everything that it calls. */
  constructor(innermost: ((...args: never[]) => unknown) | (new (...args: never[]) => unknown)) {
    Error.captureStackTrace(this, innermost);
  }
}

/** The error for a failure the core wrote as JSON. `reason`: why the caller aborted, if it did. */
export function failure(json: string, site: CallSite, reason?: unknown): GatewrightError {
  return failureFrom(JSON.parse(json) as EngineFailure, site, reason);
}

/** Like `failure`, from parsed JSON. */
export function failureFrom(description: EngineFailure, site: CallSite, reason?: unknown): GatewrightError {
  const { causes, headers: pairs, ...details } = description;
  const headers = pairs === undefined ? undefined : headersOf(pairs);
  const chain = causes.reduceRight<Error | undefined>((cause, message) => causeOf(message, cause), undefined);
  return placed(new (classOf(details.kind))({ ...details, headers, cause: reason ?? chain }), site);
}

/** An error that represents one of the core: it has a message but no stack in JavaScript. */
function causeOf(message: string, cause: Error | undefined): Error {
  const error = new Error(message, cause === undefined ? undefined : { cause });
  error.stack = `Error: ${message}`;
  return error;
}

/** The error for a problem detected in JavaScript. */
export function failureOf(details: ErrorDetails, site: CallSite): GatewrightError {
  return placed(new (classOf(details.kind))(details), site);
}

/** The error of a call or stream that ended because its signal was aborted. `reason`: the signal's. */
export function cancelled(
  origin: { operation: string; method?: string; site: CallSite },
  reason: unknown,
): GatewrightError {
  const { operation, method = operation, site } = origin;
  return failureOf(
    { kind: "cancelled", message: `${method}: aborted by its signal`, operation, cause: reason },
    site,
  );
}

/** The error of a stream that the caller closed. */
export function closed(origin: { operation: string; method?: string; site: CallSite }): GatewrightError {
  const { operation, method = operation, site } = origin;
  const message = `${method}: the stream was closed before its end`;
  return failureOf({ kind: "cancelled", message, operation }, site);
}

function classOf(kind: ErrorKind): new (details: ErrorDetails) => GatewrightError {
  return errorClasses[kind];
}

/** An error with the stack of a call. */
export function placed<T extends Error>(error: T, site: CallSite): T {
  const frames = site.stack.indexOf("\n");
  error.stack = `${error.name}: ${error.message}${frames === -1 ? "" : site.stack.slice(frames)}`;
  return error;
}
