/// <reference lib="esnext.disposable" preserve="true" />

/** Reads incremental data: batches come from a source, values are returned one at a time. */

import type { CallSite } from "./failure";
import { Listed, NOTHING, type Ready } from "./ready";

// Node 20 before 20.5 has no such symbol; `await using` compiled for it uses this same one.
export const asyncDispose: typeof Symbol.asyncDispose =
  Symbol.asyncDispose ?? (Symbol.for("Symbol.asyncDispose") as typeof Symbol.asyncDispose);

/** What to do instead of reading a stream again. */
const READ_ONCE = "it can be read once, so keep what you need, or split it with tee() before you read it";

/** The result of reading a source: documents, or their contents; a failure; or, at its end, nothing. */
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
 * Values in order, once: `for await (const value of feed)`. Leaving the loop closes the connection at once,
 * and so do `close()`, `await using` and the `signal` of the call.
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
  /** Documents that have arrived but are not read yet, or their contents. */
  #ready: Ready = NOTHING;
  #isParsed = false;
  /** Further batches, if more was read than a loop has taken. */
  #behind: Ready[] = [];
  /** The pending fetch from the source, if any; it never rejects. */
  #hop: Promise<void> | undefined;
  /** The error to throw after the documents before it. */
  #failure: unknown;
  #failed = false;
  #done = false;
  #aborted = false;
  /** Whether reading from the source has started. */
  #started = false;
  /** The method that passes the documents on in place of `next`. */
  #claimed: string | undefined;
  /** Whether a loop has started. */
  #looped = false;
  /** How many calls of `next` wait. */
  #waiting = 0;

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

  /**
   * Begins a loop; `for await` calls it. A feed has one.
   *
   * Errors: TypeError if there was a loop before, or the feed has ended: it would look complete without its values.
   */
  [Symbol.asyncIterator](): AsyncIterableIterator<T, undefined> {
    if (this.#claimed !== undefined) throw new TypeError(`the stream is read by ${this.#claimed}`);
    if (this.#looped) throw new TypeError(`the stream is read by another loop, or was: ${READ_ONCE}`);
    this.#refuseEnded();
    this.#looped = true;
    const loop: AsyncIterableIterator<T, undefined> = {
      next: () => this.next(),
      return: () => this.return(),
      [Symbol.asyncIterator]: () => loop,
    };
    return loop;
  }

  /** Throws if there is nothing left to read, not even a failure. */
  #refuseEnded(way?: string): void {
    if (!this.#done || this.#failed || this.#hasReady()) return;
    const place = way === undefined ? "" : `${way}: `;
    throw new TypeError(`${place}the stream has ended, or was closed: ${READ_ONCE}`);
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
      if (this.#hasReady()) return { done: false, value: this.#read() };
      const change = this.#change();
      if (change === undefined) return { done: true, value: undefined };
      this.#waiting += 1;
      await change;
      this.#waiting -= 1;
    }
  }

  /** Whether something has arrived that is not read yet; then it is in `#ready`. */
  #hasReady(): boolean {
    while (this.#ready.left === 0 && this.#behind.length > 0) this.#ready = this.#behind.shift() as Ready;
    return this.#ready.left > 0;
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

  /**
   * Ends the feed and closes the connection at once. Discards unread documents. A loop in progress ends; one over text that waits
   * meanwhile throws a `CancelledError`, because the text would look complete.
   */
  close(): void {
    const failure = this.#waiting > 0 && !this.#done ? this.closedWhileRead(this.#origin) : undefined;
    this.#discard();
    this.#failed = failure !== undefined;
    this.#failure = failure;
    this.#finish();
    this.#source.close();
  }

  /** The error of a reader that waits when the feed is closed; `undefined` if it gets the end. */
  protected closedWhileRead(_origin: Origin): Error | undefined {
    return undefined;
  }

  #discard(): void {
    this.#ready = NOTHING;
    this.#behind = [];
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
    this.#refuseEnded(way);
    this.#claimed = way;
    return () => this.#take();
  }

  /** Like `claim`, for readers that use the source directly: nothing may have been read before. */
  protected claimWhole(way: string): void {
    if (this.#started) throw new TypeError(`${way}: events of the stream have been read; call it before`);
    this.claim(way);
  }

  async #take(): Promise<readonly string[] | undefined> {
    for (;;) {
      if (this.#hasReady()) return this.#ready.documents();
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
    return this.#fetch();
  }

  #fetch(): Promise<void> {
    if (this.#hop === undefined) {
      this.#started = true;
      this.#hop = this.#source.nextBatch(this.#claimed !== undefined).then((batch) => this.#accept(batch));
    }
    return this.#hop;
  }

  /**
   * Reads to the end if there is a loop, which still gets every value. The source bounds what this keeps.
   *
   * @internal
   */
  async readAhead(): Promise<void> {
    while (this.#looped && !this.#done) await this.#fetch();
  }

  #accept({ documents, values, error }: Batch): void {
    this.#hop = undefined;
    // Closed or aborted meanwhile: the last batch is no longer wanted.
    if (this.#done) return;
    const ready = values ?? (documents && new Listed(documents));
    if (ready !== undefined) {
      if (this.#aborted) return;
      this.#behind.push(ready);
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
    this.ignoreSignal();
  }

  /** Stops listening to the caller's signal: there is nothing left to abort, or another feed listens to it. */
  protected ignoreSignal(): void {
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
    this.#discard();
    this.#source.cancel(reason);
  }
}
