/** A stream that can be read without awaiting its opening; its events include the answer so far. */

import { asyncDispose } from "./feed";
import type { Stream } from "./stream";

/**
 * Events of one answer, in order, once: `for await (const event of events)`. Leaving the loop closes the
 * connection, and so do `close()`, `await using` and the `signal` of the call.
 *
 * @example
 * ```js
 * import { Client } from "gatewright";
 *
 * const stream = new Client().responses.stream({ model: "model-sol", input: "Reply with exactly: one two" });
 * for await (const { type } of stream) {
 *   console.log(type);
 *   break; // closes the connection, as stream.close() would
 * }
 * ```
 */
export abstract class Reader<S extends Stream<unknown>, E> implements AsyncIterable<E> {
  /** The stream, once its headers have arrived. */
  protected readonly opened: Promise<S>;

  /** Created by the client. */
  constructor(opened: PromiseLike<S>) {
    this.opened = Promise.resolve(opened);
    // The reader gets the error.
    this.opened.catch(() => {});
  }

  /** The events. Errors: those of the call and of its stream; TypeError for another loop. */
  abstract [Symbol.asyncIterator](): AsyncGenerator<E, void, undefined>;

  /** Reads to the end, and discards the events. */
  async done(): Promise<void> {
    for await (const _ of this);
  }

  /** Closes the connection, and discards unread events. */
  close(): void {
    this.opened.then(
      (stream) => stream.close(),
      () => {},
    );
  }

  async [asyncDispose](): Promise<void> {
    this.close();
  }
}
