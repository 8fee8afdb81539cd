/** Client, report validator and program of the Gatewright gateway. */

export type { Attempt, Middleware, Outcome } from "./callbacks";
export {
  type CheckEvidence,
  type CheckId,
  type CheckProgress,
  type CheckRecord,
  type CheckReport,
  type CheckRequest,
  CheckResult,
  check,
} from "./check";
export { Client } from "./client";
export { type ErrorDetails, GatewrightError } from "./error";
export { Events } from "./events";
export type { Feed } from "./feed";
// The generated modules are re-exported as a whole, so that additions to the specification appear here automatically.
export * from "./generated/errors";
export type {
  CallDefaults,
  CheckOptions,
  ClientOptions,
  RequestOptions,
  SaveOptions,
  WaitOptions,
} from "./generated/options";
export type * from "./generated/resources";
export * from "./generated/streams";
export type * from "./generated/types";
export type { ApiKeyFunction } from "./options";
export { ApiPromise } from "./promise";
export * as report from "./report";
export { ResponseInfo, responseOf } from "./response";
export { type RawEvent, Stream } from "./stream";
export * as webhooks from "./webhooks";
