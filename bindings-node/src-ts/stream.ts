/** An answer that arrives in events: as typed events, as frames, as text, or as the document they add up to. */

import { Events } from "./events";
import { CallSite, failure } from "./failure";
import { type Batch, Feed, type Origin, type Source } from "./feed";
import type { Operation } from "./generated/operations";
import type { NativeBatch, NativeStream } from "./native";
import { ApiPromise } from "./promise";
import { completer, type ResponseInfo, resultOf } from "./response";

/** A frame of an event stream as it came. */
export interface RawEvent {
  /** Name of the event; null where it has none. */
  readonly event: string | null;
  /** Data, several lines joined by LF; null where the frame has none. */
  readonly data: string | null;
  /** The last id the stream has given; null before the first. */
  readonly id: string | null;
  /** Reconnection time it asks for, in milliseconds. */
  readonly retryMs: number | null;
  /** Comments of the frame, without their colon and the space after it. */
  readonly comments: readonly string[];
}

/**
 * The events of one answer, in order, once: `for await (const event of stream)`.
 *
 * Leaving the loop early closes the connection at once, as do `close()`, `await using` and the `signal` the call was
 * given. A stream that ends before it is complete throws: nothing is lost in silence. `error.partial` then holds what
 * the events so far add up to.
 *
 * A stream is read in one way: as events, `rawEvents()`, `text()`, `tee()` or `toReadableStream()`.
 */
export class Stream<T> extends Events<T> {
  /** Status, headers and request id the stream began with. */
  readonly response: ResponseInfo;
  readonly #native: NativeStream;
  readonly #operation: Operation;
  readonly #origin: Origin;
  readonly #source: NativeSource;

  /** Made by the client. */
  constructor(native: NativeStream, response: ResponseInfo, operation: Operation, origin: Origin) {
    const source = new NativeSource(native, origin.site, () => native.nextBatch());
    super(source, origin, response, completer(operation));
    this.response = response;
    this.#native = native;
    this.#operation = operation;
    this.#origin = origin;
    this.#source = source;
  }

  /** The frames as they came, `[DONE]`, pings, comments and error events included. Call it before reading. */
  rawEvents(): Feed<RawEvent> {
    return this.#level("rawEvents()", RawEvents, () => this.#native.nextFrames());
  }

  /** The text alone, as it arrives: that of the first choice, output or candidate. Call it before reading. */
  text(): Feed<string> {
    return this.#level("text()", Text, () => this.#native.nextText());
  }

  #level<F>(
    way: string,
    feed: new (source: Source, origin: Origin) => F,
    next: () => Promise<NativeBatch>,
  ): F {
    this.claimWhole(way);
    return new feed(new NativeSource(this.#native, this.#origin.site, next), this.#origin);
  }

  /** Reads on to the end, and gives the document that all events add up to, those read before included. */
  protected finish<F>(): ApiPromise<F> {
    const site = new CallSite(this.finish);
    return new ApiPromise<F>((resolve, reject) => {
      this.drain()
        .then(() => this.#native.finish())
        .then((answer) => {
          if (answer.error !== undefined) throw failure(answer.error, site, this.#source.reason);
          return resultOf<F>(this.#operation, answer, site);
        })
        .then(resolve, reject);
    });
  }
}

/** `Stream`, or a class of it whose events add up to a known document. */
export type StreamClass = new (...made: ConstructorParameters<typeof Stream>) => Stream<unknown>;

class RawEvents extends Feed<RawEvent> {
  protected override decode(document: string): RawEvent {
    return JSON.parse(document) as RawEvent;
  }
}

class Text extends Feed<string> {
  protected override decode(document: string): string {
    return document;
  }
}

/** A native stream, read at one level. */
class NativeSource implements Source {
  readonly #native: NativeStream;
  readonly #site: CallSite;
  readonly #next: () => Promise<NativeBatch>;
  /** Why the signal was aborted, once it was. */
  reason: unknown;

  constructor(native: NativeStream, site: CallSite, next: () => Promise<NativeBatch>) {
    this.#native = native;
    this.#site = site;
    this.#next = next;
  }

  async nextBatch(): Promise<Batch> {
    const { documents, error } = await this.#next();
    return error === undefined ? { documents } : { error: failure(error, this.#site, this.reason) };
  }

  close(): void {
    this.#native.close();
  }

  cancel(reason: unknown): void {
    this.reason = reason;
    this.#native.cancel();
  }
}
