/// <reference lib="esnext.disposable" preserve="true" />

/** An answer that arrives in events. */

import { type CallSite, failure, failureOf } from "./failure";
import type { NativeStream } from "./native";
import type { ResponseInfo } from "./response";

// Node 20 before 20.5 has no such symbol; `await using` compiled for it uses this same one.
const asyncDispose: typeof Symbol.asyncDispose =
  Symbol.asyncDispose ?? (Symbol.for("Symbol.asyncDispose") as typeof Symbol.asyncDispose);

/**
 * The events of one answer, in order, once: `for await (const event of stream)`.
 *
 * Leaving the loop early closes the connection at once, as do `close()`, `await using` and the `signal` the
 * call was given. A stream that ends before it is complete throws: nothing is lost in silence.
 */
export class Stream<T> implements AsyncIterableIterator<T> {
  /** Status, headers and request id the stream began with. */
  readonly response: ResponseInfo;
  readonly #native: NativeStream;
  readonly #operation: string;
  readonly #site: CallSite;
  #signal: AbortSignal | undefined;
  #onAbort: (() => void) | undefined;
  /** Events that have arrived and were not asked for yet, from `#position` on. */
  #ready: string[] = [];
  #position = 0;
  /** The hop under way, if there is one; it never rejects. */
  #hop: Promise<void> | undefined;
  /** To be thrown once the events before it are handed over. */
  #failure: unknown;
  #failed = false;
  #done = false;

  /** Made by the client. */
  constructor(
    native: NativeStream,
    response: ResponseInfo,
    operation: string,
    site: CallSite,
    signal: AbortSignal | undefined,
  ) {
    this.#native = native;
    this.response = response;
    this.#operation = operation;
    this.#site = site;
    if (signal !== undefined) this.#listen(signal);
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** The next event; `done` after the last one. Calls may overlap: each gets its own event, in order. */
  async next(): Promise<IteratorResult<T, undefined>> {
    for (;;) {
      const document = this.#ready[this.#position];
      if (document !== undefined) {
        this.#position += 1;
        return { done: false, value: this.#parse(document) };
      }
      if (this.#failed) {
        const error = this.#failure;
        this.#failed = false;
        this.#failure = undefined;
        throw error;
      }
      if (this.#done) return { done: true, value: undefined };
      this.#hop ??= this.#fetch();
      await this.#hop;
    }
  }

  /** Ends the stream and closes the connection; called by `for await` when its loop is left. */
  return(): Promise<IteratorResult<T, undefined>> {
    this.close();
    return Promise.resolve({ done: true, value: undefined });
  }

  /** Ends the stream and closes the connection at once. Events not handed over yet are dropped. */
  close(): void {
    this.#ready = [];
    this.#position = 0;
    this.#finish();
  }

  [asyncDispose](): Promise<void> {
    this.close();
    return Promise.resolve();
  }

  async #fetch(): Promise<void> {
    const { events, error } = await this.#native.nextBatch();
    this.#hop = undefined;
    // Closed or aborted meanwhile: what arrived last is not wanted any more.
    if (this.#done) return;
    if (events !== undefined) {
      this.#ready = events;
      this.#position = 0;
      return;
    }
    if (error !== undefined) this.#fail(failure(error, this.#site));
    this.#finish();
  }

  #parse(document: string): T {
    try {
      return JSON.parse(document) as T;
    } catch (cause) {
      this.close();
      throw failureOf(
        {
          kind: "decode",
          message: `${this.#operation}: an event of the stream is not JSON`,
          operation: this.#operation,
          status: this.response.status,
          requestId: this.response.requestId,
          body: document,
          cause,
        },
        this.#site,
      );
    }
  }

  #fail(error: unknown): void {
    this.#failure = error;
    this.#failed = true;
  }

  #finish(): void {
    this.#done = true;
    if (this.#onAbort !== undefined) this.#signal?.removeEventListener("abort", this.#onAbort);
    this.#onAbort = undefined;
    this.#signal = undefined;
    this.#native.close();
  }

  #listen(signal: AbortSignal): void {
    // A signal may outlive many streams: it must not keep those that were dropped half-read.
    const weak = new WeakRef(this);
    this.#signal = signal;
    this.#onAbort = () => {
      const stream = weak.deref();
      if (stream !== undefined) stream.#abort(signal.reason);
    };
    if (signal.aborted) this.#abort(signal.reason);
    else signal.addEventListener("abort", this.#onAbort, { once: true });
  }

  #abort(reason: unknown): void {
    if (this.#done) return;
    this.close();
    this.#fail(cancelled(this.#operation, this.#site, reason));
  }
}

/** The error of a call or stream whose signal was aborted. */
export function cancelled(operation: string, site: CallSite, reason: unknown): Error {
  return failureOf(
    { kind: "cancelled", message: `${operation}: aborted by its signal`, operation, cause: reason },
    site,
  );
}
