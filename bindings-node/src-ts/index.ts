/** Client, report validator and program of the Gatewright gateway. */

export type { Attempt, Middleware, Outcome } from "./callbacks";
export {
  type CheckEvidence,
  type CheckId,
  type CheckOptions,
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
export type { SaveOptions } from "./files";
// The generated parts are re-exported whole: what the specification gains must appear here by itself.
export * from "./generated/errors";
export type * from "./generated/resources";
export * from "./generated/streams";
export type * from "./generated/types";
export type { ApiKeyFunction, CallDefaults, ClientOptions, RequestOptions } from "./options";
export { ApiPromise } from "./promise";
export * as report from "./report";
export { ResponseInfo, responseOf } from "./response";
export { type RawEvent, Stream } from "./stream";
export type { WaitOptions } from "./videos";
export * as webhooks from "./webhooks";
