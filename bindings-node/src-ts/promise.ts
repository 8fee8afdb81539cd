/** The promise that every method returns. */

import { type ResponseInfo, responseOf } from "./response";

/** A promise of a result that can also give what came with it. */
export class ApiPromise<T> extends Promise<T> {
  /** `then` and the like give plain promises. */
  static override get [Symbol.species](): PromiseConstructor {
    return Promise;
  }

  /** The result together with status, headers, request id and attempts. */
  async withResponse(): Promise<{ data: T; response: ResponseInfo }> {
    const data = await this;
    return { data, response: responseOf(data as object) };
  }
}
