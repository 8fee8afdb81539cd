/** The promise that every method returns. */

import { type ResponseInfo, responseOf } from "./response";

/** The items of an iterable result; nothing if it is not iterable. */
type Iterated<T> = T extends AsyncIterable<infer I> | Iterable<infer I> ? I : never;

/**
 * A promise of a result, which can also return the response metadata.
 *
 * @example
 * ```js
 * import { Client } from "gatewright";
 *
 * const client = new Client();
 * const { data, response } = await client.models.list().withResponse();
 * console.log(data.data.length, response.status, response.requestId);
 * for await (const model of client.models.list()) console.log(model.id);
 * ```
 */
export class ApiPromise<T> extends Promise<T> {
  /** `then` and similar methods return plain promises. */
  static override get [Symbol.species](): PromiseConstructor {
    return Promise;
  }

  /** Converts a promise to this class. */
  static of<T>(promise: PromiseLike<T>): ApiPromise<T> {
    return new ApiPromise((resolve, reject) => promise.then(resolve, reject));
  }

  /**
   * Iterates over the items of the result: `for await (const model of client.models.list())`, or the events of a
   * stream. Rejects with a TypeError if the result is not iterable.
   */
  async *[Symbol.asyncIterator](): AsyncGenerator<Iterated<T>, void, undefined> {
    yield* (await this) as AsyncIterable<Iterated<T>> | Iterable<Iterated<T>>;
  }

  /** The result together with status, headers, request id and attempts. */
  async withResponse(): Promise<{ data: T; response: ResponseInfo; request_id: string | undefined }> {
    const data = await this;
    // Strings and `undefined` have no identity to attach metadata to, but the promise has.
    const response = responseOf(typeof data === "object" && data !== null ? data : this);
    return { data, response, request_id: response.requestId };
  }
}
