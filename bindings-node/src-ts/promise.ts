/** The promise that every method returns. */

import { type ResponseInfo, responseOf } from "./response";

/** What an iterable result iterates over; nothing if it is not iterable. */
type Iterated<T> = T extends AsyncIterable<infer I> | Iterable<infer I> ? I : never;

/** A promise of a result that can also give what came with it. */
export class ApiPromise<T> extends Promise<T> {
  /** `then` and the like give plain promises. */
  static override get [Symbol.species](): PromiseConstructor {
    return Promise;
  }

  /** The same promise as one of these. */
  static of<T>(promise: PromiseLike<T>): ApiPromise<T> {
    return new ApiPromise((resolve, reject) => promise.then(resolve, reject));
  }

  /**
   * Over what the result iterates over: `for await (const model of client.models.list())`, or the events of a stream.
   * Rejects with a TypeError where the result is not iterable.
   */
  async *[Symbol.asyncIterator](): AsyncGenerator<Iterated<T>, void, undefined> {
    yield* (await this) as AsyncIterable<Iterated<T>> | Iterable<Iterated<T>>;
  }

  /** The result together with status, headers, request id and attempts. */
  async withResponse(): Promise<{ data: T; response: ResponseInfo; request_id: string | undefined }> {
    const data = await this;
    const response = responseOf(data as object);
    return { data, response, request_id: response.requestId };
  }
}
