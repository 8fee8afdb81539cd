/** Response metadata: status, headers, request id. */

import type { EngineResponse } from "./engine";
import { headersOf } from "./headers";

/** The HTTP metadata of a response. */
export class ResponseInfo {
  /** HTTP status. */
  readonly status: number;
  /** The gateway's id of the request. */
  readonly requestId: string | undefined;
  /** Number of attempts, including the successful one. */
  readonly attempts: number;
  /** From the start of the call to the response, including all attempts; for a stream, to its headers. */
  readonly elapsedMs: number;
  #headers: Headers | string;

  /** Created by the client. */
  constructor(response: EngineResponse) {
    this.status = response.status;
    this.requestId = response.requestId ?? undefined;
    this.attempts = response.attempts;
    this.elapsedMs = response.elapsedMs;
    this.#headers = response.headers;
  }

  /** Headers of the response. */
  get headers(): Headers {
    if (typeof this.#headers === "string") {
      this.#headers = headersOf(JSON.parse(this.#headers) as [string, string][]);
    }
    return this.#headers;
  }
}

// Stored beside the results, not on them: the results stay plain objects that clone, compare and print as they arrived.
const responses = new WeakMap<object, ResponseInfo>();

/**
 * Records the metadata of a result: on its promise, if the result is a string or `undefined`, which have no identity.
 */
export function remember<T>(result: T, response: ResponseInfo, promise?: object): T {
  const holder = typeof result === "object" && result !== null ? result : promise;
  if (holder !== undefined) responses.set(holder, response);
  return result;
}

/**
 * Status, headers, request id and attempts of a result that this package returned: pass the object itself, not a copy
 * or part of it.
 *
 * @example
 * ```js
 * import { Client, responseOf } from "gatewright";
 *
 * const models = await new Client().models.list();
 * const { status, requestId, attempts, headers } = responseOf(models);
 * console.log(status, requestId, attempts, headers.get("content-type"));
 * ```
 */
export function responseOf(result: object): ResponseInfo {
  const response = responses.get(result);
  if (response === undefined) throw new TypeError("responseOf: not a result of a gatewright client");
  return response;
}
