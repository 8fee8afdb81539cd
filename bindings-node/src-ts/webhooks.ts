/**
 * Verifies and parses webhooks of a gateway. Needs no client.
 *
 * Signatures are Standard Webhooks: `webhook-id`, `webhook-timestamp` and `webhook-signature` over the bytes of the
 * body. A notification may arrive twice, with the same `webhook-id`.
 */

import { engine } from "./engine";
import { CallSite, failure } from "./failure";
import type { VideoTask } from "./generated/types";

/** A body as it arrived. A string stands for its UTF-8 bytes. */
export type WebhookBody = Uint8Array | ArrayBuffer | string;

/** Headers of a request: those of `fetch`, those of `node:http`, or pairs. */
export type WebhookHeaders =
  | Headers
  | Readonly<Record<string, string | readonly string[] | undefined>>
  | Iterable<readonly [string, string]>;

/**
 * Checks that a webhook was signed with one of the secrets within five minutes of now, and returns its task: completed
 * or failed.
 *
 * Errors: `WebhookSignatureError`, whose `code` is the reason (`missing_header`, `duplicate_header`,
 * `invalid_header`, `timestamp_too_old`, `timestamp_too_new`, `no_matching_signature`) and whose `param`
 * names the header; `DecodeError` if the body is longer than 1 MiB or not a task; `ConfigurationError` if
 * there is no secret or a malformed one; TypeError if the body is already parsed.
 *
 * Source: sections 2.7 and 6 of the specification.
 *
 * @param body The bytes as they arrived, not parsed and serialized again: `express.raw()`'s body, `await
 * request.text()`.
 * @param headers All headers of the request; names are case-insensitive.
 * @param secrets `whsec_…`, or several during a rotation. Default: `GATEWRIGHT_WEBHOOK_SECRET`, where spaces
 * separate several secrets.
 *
 * @example
 * ```js
 * import { WebhookSignatureError, webhooks } from "gatewright";
 *
 * try {
 *   webhooks.unwrap("{}", { "webhook-id": "msg_1" }, "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3");
 * } catch (error) {
 *   if (!(error instanceof WebhookSignatureError)) throw error;
 *   console.log(error.code, error.param);
 * }
 * ```
 */
export function unwrap(
  body: WebhookBody,
  headers: WebhookHeaders,
  secrets?: string | readonly string[],
): VideoTask {
  const bytes = bytesOf(body);
  // Workers and Bun have copies of the environment, so the core does not see variables that a program sets there.
  const environment = process.env.GATEWRIGHT_WEBHOOK_SECRET ?? "";
  const given = secrets === undefined ? environment : [secrets].flat();
  return read(engine.verifyWebhook(bytes, pairsOf(headers), given), bytes, new CallSite(unwrap));
}

/**
 * Parses a webhook of a gateway that does not sign its webhooks. Anyone may have sent it: look up the task
 * before you act on it.
 *
 * Errors: `DecodeError` if the body is longer than 1 MiB or not a task; TypeError if it is already parsed.
 *
 * @example
 * ```js
 * import { webhooks } from "gatewright";
 *
 * const body = '{"id": "video_1", "object": "video.generation", "status": "completed", "model": "video_model_4"}';
 * console.log(webhooks.parseUnsigned(body).status);
 * ```
 */
export function parseUnsigned(body: WebhookBody): VideoTask {
  const bytes = bytesOf(body);
  return read(engine.checkWebhook(bytes), bytes, new CallSite(parseUnsigned));
}

function read(error: string | null, bytes: Uint8Array, site: CallSite): VideoTask {
  if (error !== null) throw failure(error, site);
  return JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString()) as VideoTask;
}

function bytesOf(body: unknown): Uint8Array {
  if (typeof body === "string") return Buffer.from(body);
  if (body instanceof Uint8Array) return body;
  if (body instanceof ArrayBuffer) return new Uint8Array(body);
  throw new TypeError(
    `body must be the webhook as it arrived, as bytes or text, not ${body === null ? "null" : typeof body}: its ` +
      "signature covers those bytes, and parsing and serializing them again changes them. Pass await request.text(), or " +
      "the body of express.raw({ type: 'application/json' })",
  );
}

/** The relevant headers, as a flat list. A list of values counts as several headers. */
function pairsOf(headers: WebhookHeaders): string[] {
  if (typeof headers !== "object" || headers === null) {
    throw new TypeError("headers must be those of the request: Headers, an object or pairs");
  }
  const given = Symbol.iterator in headers ? headers : Object.entries(headers);
  const pairs: string[] = [];
  for (const [name, values] of given as Iterable<readonly [string, string | readonly string[] | undefined]>) {
    if (values === undefined || !engine.isWebhookHeader(name)) continue;
    for (const value of [values].flat()) pairs.push(name, String(value));
  }
  return pairs;
}
