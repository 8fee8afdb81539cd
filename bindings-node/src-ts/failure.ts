/** Makes error objects from what the native core reports, with the stack of the code that made the call. */

import type { ErrorDetails, GatewrightError } from "./error";
import { type ErrorKind, errorClasses } from "./generated/errors";

/** A failure as the core writes it. */
export interface NativeFailure extends Omit<ErrorDetails, "cause" | "headers"> {
  readonly headers?: [string, string][];
  /** Messages of what led to it, nearest first. */
  readonly causes: readonly string[];
}

/** Where a call was made. Kept from the start of a call: by its end, the caller is off the stack. */
export class CallSite {
  declare readonly stack: string;

  /** `innermost`: the method or class that is ours, left out together with what it calls. */
  constructor(innermost: ((...args: never[]) => unknown) | (new (...args: never[]) => unknown)) {
    Error.captureStackTrace(this, innermost);
  }
}

/** The error for a failure the native core wrote as JSON. `reason`: why the caller aborted, if it did. */
export function failure(json: string, site: CallSite, reason?: unknown): GatewrightError {
  return failureFrom(JSON.parse(json) as NativeFailure, site, reason);
}

/** As `failure`, from what the JSON says. */
export function failureFrom(description: NativeFailure, site: CallSite, reason?: unknown): GatewrightError {
  const { causes, headers: pairs, ...details } = description;
  const headers = pairs === undefined ? undefined : new Headers(pairs);
  const chain = causes.reduceRight<Error | undefined>((cause, message) => causeOf(message, cause), undefined);
  return placed(new (classOf(details.kind))({ ...details, headers, cause: reason ?? chain }), site);
}

/** An error that stands for one of the core's: it has a message and no place in JavaScript. */
function causeOf(message: string, cause: Error | undefined): Error {
  const error = new Error(message, cause === undefined ? undefined : { cause });
  error.stack = `Error: ${message}`;
  return error;
}

/** The error for something found out on this side. */
export function failureOf(details: ErrorDetails, site: CallSite): GatewrightError {
  return placed(new (classOf(details.kind))(details), site);
}

/** The error of a call or stream that ended because its signal was aborted. `reason`: the signal's. */
export function cancelled(origin: { operation: string; site: CallSite }, reason: unknown): GatewrightError {
  const { operation, site } = origin;
  return failureOf(
    { kind: "cancelled", message: `${operation}: aborted by its signal`, operation, cause: reason },
    site,
  );
}

function classOf(kind: ErrorKind): new (details: ErrorDetails) => GatewrightError {
  return errorClasses[kind];
}

function placed(error: GatewrightError, site: CallSite): GatewrightError {
  const frames = site.stack.indexOf("\n");
  error.stack = `${error.name}: ${error.message}${frames === -1 ? "" : site.stack.slice(frames)}`;
  return error;
}
