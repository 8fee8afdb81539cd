/// <reference lib="esnext.disposable" preserve="true" />

/** Reads incremental data: batches come from a source, values are returned one at a time. */

import type { CallSite } from "./failure";
import { Listed, NOTHING, type Ready } from "./ready";

// Node 20 before 20.5 has no such symbol; `await using` compiled for it uses this same one.
const asyncDispose: typeof Symbol.asyncDispose =
  Symbol.asyncDispose ?? (Symbol.for("Symbol.asyncDispose") as typeof Symbol.asyncDispose);

/** What a source returns: documents, or what they hold; a failure; or, at its end, nothing. */
export interface Batch {
  readonly documents?: readonly string[] | undefined;
  readonly values?: Ready | undefined;
  readonly error?: unknown;
}

/** Where documents come from. */
export interface Source {
  /**
   * Waits for at least one document, then returns all that are ready. Never rejects. `asDocuments`: whether they are
   * passed on as they are, rather than parsed.
   */
  nextBatch(asDocuments: boolean): Promise<Batch>;
  /** Discards everything that has not arrived; a waiting `nextBatch` ends. */
  close(): void;
  /** Like `close`, but the waiting or next `nextBatch` returns an error. */
  cancel(reason: unknown): void;
}

/** Which call a feed belongs to, for its errors. */
export interface Origin {
  readonly operation: string;
  /** The method as the caller writes it; defaults to `operation`. */
  readonly method?: string;
  readonly site: CallSite;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Values in order, once: `for await (const value of feed)`. Leaving the loop closes the connection at once, as do
 * `close()`, `await using` and the `signal` of the call.
 *
 * @example
 * ```js
 * import { Client } from "gatewright";
 *
 * const messages = [{ role: "user", content: "Reply with exactly: one two" }];
 * const stream = await new Client().chat.completions.create({ model: "model-sol", messages, stream: true });
 * const text = stream.text();
 * for await (const piece of text) {
 *   console.log(piece);
 *   break; // closes the connection, as text.close() would
 * }
 * ```
 */
export abstract class Feed<T> implements AsyncIterableIterator<T> {
  readonly #source: Source;
  readonly #origin: Origin;
  #onAbort: (() => void) | undefined;
  /** Documents that have arrived but are not read yet; or what they hold. */
  #ready: Ready = NOTHING;
  #isParsed = false;
  /** The pending fetch from the source, if any; it never rejects. */
  #hop: Promise<void> | undefined;
  /** The error to throw after the documents before it. */
  #failure: unknown;
  #failed = false;
  #done = false;
  #aborted = false;
  /** Whether reading from the source has started. */
  #begun = false;
  /** The method that passes the documents on in place of `next`. */
  #claimed: string | undefined;

  /** Created by the client. */
  constructor(source: Source, origin: Origin) {
    this.#source = source;
    this.#origin = origin;
    if (origin.signal !== undefined) this.#listen(origin.signal);
  }

  /** A document in the form for the reader. */
  protected abstract decode(document: string): T;

  /** What a document holds in the form for the reader. */
  protected adopt(value: unknown): T {
    return value as T;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** The next value; `done` after the last one. Calls may overlap: each gets its own value, in order. */
  next(): Promise<IteratorResult<T, undefined>> {
    // Most events arrive with others, and need no waiting.
    if (this.#isParsed && this.#ready.left > 0 && this.#claimed === undefined) {
      return Promise.resolve({ done: false, value: this.#read() });
    }
    return this.#later();
  }

  async #later(): Promise<IteratorResult<T, undefined>> {
    if (this.#claimed !== undefined) throw new TypeError(`the stream is read by ${this.#claimed}`);
    for (;;) {
      if (this.#ready.left > 0) return { done: false, value: this.#read() };
      const change = this.#change();
      if (change === undefined) return { done: true, value: undefined };
      await change;
    }
  }

  #read(): T {
    const one = this.#ready.take();
    return this.#isParsed ? this.adopt(one) : this.decode(one as string);
  }

  /** Ends the feed and closes the connection; called by `for await` when its loop is left. */
  return(): Promise<IteratorResult<T, undefined>> {
    this.close();
    return Promise.resolve({ done: true, value: undefined });
  }

  /** Ends the feed and closes the connection at once. Discards unread documents. */
  close(): void {
    this.#ready = NOTHING;
    this.#failed = false;
    this.#failure = undefined;
    this.#finish();
    this.#source.close();
  }

  [asyncDispose](): Promise<void> {
    this.close();
    return Promise.resolve();
  }

  /**
   * The documents themselves, for methods that pass them on: all that are ready, once there is one; `undefined` after
   * the last. Errors: as `next`, which cannot be used from then on.
   */
  protected claim(way: string): () => Promise<readonly string[] | undefined> {
    if (this.#claimed !== undefined) throw new TypeError(`${way}: the stream is read by ${this.#claimed}`);
    this.#claimed = way;
    return () => this.#take();
  }

  /** Like `claim`, for readers that use the source directly: nothing may have been read before. */
  protected claimWhole(way: string): void {
    if (this.#begun) throw new TypeError(`${way}: events of the stream have been read; call it before`);
    this.claim(way);
  }

  async #take(): Promise<readonly string[] | undefined> {
    for (;;) {
      if (this.#ready.left > 0) return this.#ready.documents();
      const change = this.#change();
      if (change === undefined) return undefined;
      await change;
    }
  }

  /** Resolves when there is something to look at; `undefined` if there will not be. Throws the failure, once. */
  #change(): Promise<void> | undefined {
    if (this.#failed) {
      const error = this.#failure;
      this.#failed = false;
      this.#failure = undefined;
      throw error;
    }
    if (this.#done) return undefined;
    if (this.#hop === undefined) {
      this.#begun = true;
      this.#hop = this.#source.nextBatch(this.#claimed !== undefined).then((batch) => this.#accept(batch));
    }
    return this.#hop;
  }

  #accept({ documents, values, error }: Batch): void {
    this.#hop = undefined;
    // Closed or aborted meanwhile: the last batch is no longer wanted.
    if (this.#done) return;
    const ready = values ?? (documents && new Listed(documents));
    if (ready !== undefined) {
      if (this.#aborted) return;
      this.#ready = ready;
      this.#isParsed = values !== undefined;
      return;
    }
    if (error !== undefined) {
      this.#failure = error;
      this.#failed = true;
    }
    // The source stays open: it may still return the document of what it has read.
    this.#finish();
  }

  #finish(): void {
    this.#done = true;
    if (this.#onAbort !== undefined) this.#origin.signal?.removeEventListener("abort", this.#onAbort);
    this.#onAbort = undefined;
  }

  #listen(signal: AbortSignal): void {
    // A signal may outlive many streams: it must not keep those that were dropped half-read.
    const weak = new WeakRef(this);
    this.#onAbort = () => {
      const feed = weak.deref();
      if (feed !== undefined) feed.#abort(signal.reason);
    };
    if (signal.aborted) this.#abort(signal.reason);
    else signal.addEventListener("abort", this.#onAbort, { once: true });
  }

  #abort(reason: unknown): void {
    if (this.#done) return;
    this.#aborted = true;
    this.#ready = NOTHING;
    this.#source.cancel(reason);
  }
}
