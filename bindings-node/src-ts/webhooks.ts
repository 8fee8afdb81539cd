/**
 * Webhooks (specification 6): tells a gateway's notification from a forged one and reads it. Needs no client.
 *
 * Signatures are Standard Webhooks: `webhook-id`, `webhook-timestamp` and `webhook-signature` over the bytes of the body.
 * A notification may arrive twice; `webhook-id` is the same then.
 */

import { CallSite, failure } from "./failure";
import type { VideoTask } from "./generated/types";
import { native } from "./native";

/** A body as it arrived. Text stands for its UTF-8. */
export type WebhookBody = Uint8Array | ArrayBuffer | string;

/** Headers of a request: as `fetch` has them, as `node:http` has them, or pairs. */
export type WebhookHeaders =
  | Headers
  | Readonly<Record<string, string | readonly string[] | undefined>>
  | Iterable<readonly [string, string]>;

/**
 * Checks that a webhook was signed with one of the secrets within five minutes of now, and gives the task it tells of:
 * completed or failed.
 *
 * Errors: `WebhookSignatureError`, whose `code` tells why (`missing_header`, `duplicate_header`, `invalid_header`,
 * `timestamp_too_old`, `timestamp_too_new`, `no_matching_signature`) and whose `param` names the header; `DecodeError`
 * where the body is longer than 1 MiB or no task's record; `ConfigurationError` where there is no secret or a malformed
 * one; TypeError where the body has been parsed already.
 *
 * Source: specification 2.7, 6.
 *
 * @param body What arrived, not parsed and written anew: `express.raw()`'s body, `await request.text()`.
 * @param headers All of the request's; the case of their names does not matter.
 * @param secrets `whsec_…`; several while one takes the place of another. Default: `GATEWRIGHT_WEBHOOK_SECRET`, where
 *   several are separated by spaces.
 */
export function unwrap(
  body: WebhookBody,
  headers: WebhookHeaders,
  secrets?: string | readonly string[],
): VideoTask {
  const bytes = bytesOf(body);
  const given = secrets === undefined ? secretsOfEnvironment() : [secrets].flat();
  return read(native.verifyWebhook(bytes, pairsOf(headers), given), bytes, new CallSite(unwrap));
}

/** As the core reads them; it does not see what a program sets in a worker, or on Bun, whose environments are copies. */
function secretsOfEnvironment(): string[] | undefined {
  const given = process.env.GATEWRIGHT_WEBHOOK_SECRET?.split(/\s+/).filter((secret) => secret !== "") ?? [];
  return given.length > 0 ? given : undefined;
}

/**
 * Reads a webhook of a gateway that does not sign. Anybody can have sent it: look the task up before acting on it.
 *
 * Errors: `DecodeError` where the body is longer than 1 MiB or no task's record; TypeError where it has been parsed
 * already.
 */
export function parseUnsigned(body: WebhookBody): VideoTask {
  const bytes = bytesOf(body);
  return read(native.checkWebhook(bytes), bytes, new CallSite(parseUnsigned));
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
      "signature is over those bytes, and what was parsed and written anew differs. Pass await request.text(), or " +
      "the body of express.raw({ type: 'application/json' })",
  );
}

/** The headers that matter, flat. A list of values is several headers. */
function pairsOf(headers: WebhookHeaders): string[] {
  if (typeof headers !== "object" || headers === null) {
    throw new TypeError("headers must be those of the request: Headers, an object or pairs");
  }
  const given = Symbol.iterator in headers ? headers : Object.entries(headers);
  const pairs: string[] = [];
  for (const [name, values] of given as Iterable<readonly [string, string | readonly string[] | undefined]>) {
    if (values === undefined || !name.toLowerCase().startsWith("webhook-")) continue;
    for (const value of [values].flat()) pairs.push(name, String(value));
  }
  return pairs;
}
