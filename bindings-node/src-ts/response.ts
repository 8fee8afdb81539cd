/** What came with a result: status, headers, request id. */

import type { NativeResponse } from "./native";

/** The HTTP side of an answer. */
export class ResponseInfo {
  readonly status: number;
  /** The gateway's id of the request. */
  readonly requestId: string | undefined;
  /** Attempts made, the successful one included. */
  readonly attempts: number;
  /** From the start of the call to the answer, all attempts together; for a stream, to its head. */
  readonly elapsedMs: number;
  #headers: Headers | string;

  /** Made by the client. */
  constructor(response: NativeResponse) {
    this.status = response.status;
    this.requestId = response.requestId;
    this.attempts = response.attempts;
    this.elapsedMs = response.elapsedMs;
    this.#headers = response.headers;
  }

  /** Headers of the answer. */
  get headers(): Headers {
    if (typeof this.#headers === "string") {
      this.#headers = new Headers(JSON.parse(this.#headers) as [string, string][]);
    }
    return this.#headers;
  }
}

// Beside the results, not on them: they stay plain objects that clone, compare and print as what arrived.
const responses = new WeakMap<object, ResponseInfo>();

/** Notes what a result came with. */
export function remember<T>(result: T, response: ResponseInfo): T {
  if (typeof result === "object" && result !== null) responses.set(result, response);
  return result;
}

/**
 * Status, headers, request id and attempts of a result this package returned: the object itself, not a copy
 * or a part of it.
 */
export function responseOf(result: object): ResponseInfo {
  const response = responses.get(result);
  if (response === undefined) throw new TypeError("responseOf: not a result of a gatewright client");
  return response;
}
