/** Client, report validator and program of the Gatewright gateway. */

export {
  type CheckEvidence,
  type CheckId,
  type CheckOptions,
  type CheckProgress,
  type CheckRecord,
  type CheckReport,
  CheckResult,
  check,
} from "./check";
export { Client, type ClientOptions } from "./client";
export { type ErrorDetails, GatewrightError } from "./error";
// The generated parts are re-exported whole: what the specification gains must appear here by itself.
export * from "./generated/errors";
export type * from "./generated/resources";
export type * from "./generated/types";
export { ApiPromise } from "./promise";
export * as report from "./report";
export type { RequestOptions } from "./resource";
export { ResponseInfo, responseOf } from "./response";
export { Stream } from "./stream";
export type { WaitOptions } from "./videos";
