/// <reference lib="esnext.disposable" preserve="true" />

/** Reading what arrives bit by bit: batches come from a source, values leave one at a time. */

import type { CallSite } from "./failure";

// Node 20 before 20.5 has no such symbol; `await using` compiled for it uses this same one.
const asyncDispose: typeof Symbol.asyncDispose =
  Symbol.asyncDispose ?? (Symbol.for("Symbol.asyncDispose") as typeof Symbol.asyncDispose);

/** What a source hands over: documents, or its failure, or, at its end, neither. */
export interface Batch {
  readonly documents?: readonly string[] | undefined;
  readonly error?: unknown;
}

/** Where documents come from. */
export interface Source {
  /** Waits for at least one document, then gives all that are ready. Never rejects. */
  nextBatch(): Promise<Batch>;
  /** Gives up what has not arrived; a `nextBatch` that waits ends. */
  close(): void;
  /** As `close`, but the `nextBatch` that waits, or the next one, tells of it by an error. */
  cancel(reason: unknown): void;
}

/** Which call a feed belongs to, for its errors. */
export interface Origin {
  readonly operation: string;
  readonly site: CallSite;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Values in order, once: `for await (const value of feed)`. Leaving the loop closes the connection at once, as do
 * `close()`, `await using` and the `signal` the call was given.
 */
export abstract class Feed<T> implements AsyncIterableIterator<T> {
  readonly #source: Source;
  readonly #origin: Origin;
  #onAbort: (() => void) | undefined;
  /** Documents that have arrived and were not asked for yet, from `#position` on. */
  #ready: readonly string[] = [];
  #position = 0;
  /** The hop under way, if there is one; it never rejects. */
  #hop: Promise<void> | undefined;
  /** To be thrown once the documents before it are handed over. */
  #failure: unknown;
  #failed = false;
  #done = false;
  #aborted = false;
  /** Whether anything was asked of the source. */
  #begun = false;
  /** What hands the documents on in place of `next`. */
  #claimed: string | undefined;

  /** Made by the client. */
  constructor(source: Source, origin: Origin) {
    this.#source = source;
    this.#origin = origin;
    if (origin.signal !== undefined) this.#listen(origin.signal);
  }

  /** A document as the reader gets it. */
  protected abstract decode(document: string): T;

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** The next value; `done` after the last one. Calls may overlap: each gets its own value, in order. */
  async next(): Promise<IteratorResult<T, undefined>> {
    if (this.#claimed !== undefined) throw new TypeError(`the stream is read by ${this.#claimed}`);
    do {
      const document = this.#ready[this.#position];
      if (document !== undefined) {
        this.#position += 1;
        return { done: false, value: this.decode(document) };
      }
    } while (await this.#more());
    return { done: true, value: undefined };
  }

  /** Ends the feed and closes the connection; called by `for await` when its loop is left. */
  return(): Promise<IteratorResult<T, undefined>> {
    this.close();
    return Promise.resolve({ done: true, value: undefined });
  }

  /** Ends the feed and closes the connection at once. What was not handed over yet is dropped. */
  close(): void {
    this.#ready = [];
    this.#position = 0;
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
   * The documents themselves, for a way of handing them on: all that are ready, once there is one; `undefined` after
   * the last. Errors: as `next`, which is of no use from then on.
   */
  protected claim(way: string): () => Promise<readonly string[] | undefined> {
    if (this.#claimed !== undefined) throw new TypeError(`${way}: the stream is read by ${this.#claimed}`);
    this.#claimed = way;
    return () => this.#take();
  }

  /** As `claim`, where whoever reads goes to the source itself: nothing may have been read before. */
  protected claimWhole(way: string): void {
    if (this.#begun) throw new TypeError(`${way}: events of the stream have been read; call it before`);
    this.claim(way);
  }

  async #take(): Promise<readonly string[] | undefined> {
    do {
      if (this.#position < this.#ready.length) {
        const documents = this.#ready.slice(this.#position);
        this.#ready = [];
        this.#position = 0;
        return documents;
      }
    } while (await this.#more());
    return undefined;
  }

  /** Waits until something has changed; whether it is worth looking again. Throws the failure, once. */
  async #more(): Promise<boolean> {
    if (this.#failed) {
      const error = this.#failure;
      this.#failed = false;
      this.#failure = undefined;
      throw error;
    }
    if (this.#done) return false;
    this.#hop ??= this.#fetch();
    await this.#hop;
    return true;
  }

  async #fetch(): Promise<void> {
    this.#begun = true;
    const { documents, error } = await this.#source.nextBatch();
    this.#hop = undefined;
    // Closed meanwhile, or aborted: what arrived last is not wanted any more.
    if (this.#done) return;
    if (documents !== undefined) {
      if (this.#aborted) return;
      this.#ready = documents;
      this.#position = 0;
      return;
    }
    if (error !== undefined) {
      this.#failure = error;
      this.#failed = true;
    }
    // The source is not closed: it may have more to say of what it has read.
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
    this.#ready = [];
    this.#position = 0;
    this.#source.cancel(reason);
  }
}
