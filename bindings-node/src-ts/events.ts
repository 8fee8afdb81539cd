/** Events that are JSON documents, and the ways to hand them on: twice, or as bytes. */

import { CallSite, cancelled, failureOf } from "./failure";
import { type Batch, Feed, type Origin, type Source } from "./feed";
import type { ResponseInfo } from "./response";
import { Tee } from "./tee";

/** Longest line that `Events.fromReadableStream` reads, in UTF-16 code units: that of the largest event the client takes. */
const MAX_LINE_LENGTH = 256 * 1024 * 1024;

/** Events of one answer, in order, once: `for await (const event of events)`. */
export class Events<T> extends Feed<T> {
  readonly #origin: Origin;
  readonly #response: ResponseInfo | undefined;
  readonly #complete: ((event: unknown) => void) | undefined;
  #tee: Tee | undefined;

  /** Made by the client. `complete`: adds to an event what is not on the wire. */
  constructor(
    source: Source,
    origin: Origin,
    response?: ResponseInfo | undefined,
    complete?: ((event: unknown) => void) | undefined,
  ) {
    super(source, origin);
    this.#origin = origin;
    this.#response = response;
    this.#complete = complete;
  }

  protected override decode(document: string): T {
    try {
      const event: unknown = JSON.parse(document);
      this.#complete?.(event);
      return event as T;
    } catch (cause) {
      this.close();
      const { operation, site } = this.#origin;
      throw failureOf(
        {
          kind: "decode",
          message: `${operation}: an event of the stream is not JSON`,
          operation,
          status: this.#response?.status,
          requestId: this.#response?.requestId,
          body: document,
          cause,
        },
        site,
      );
    }
  }

  /**
   * Two readers, each of which gets every event. What the slower one has not read is held in memory: read both at about
   * the same pace, or close the one that is not needed. One that is 256 MiB behind is given up with a RangeError. The
   * connection is closed when both are; an error reaches both.
   */
  tee(): [Events<T>, Events<T>] {
    const take = this.claim("tee()");
    const tee = new Tee(take, () => this.close());
    this.#tee = tee;
    // The signal ends this feed, and through it both branches.
    const origin = { ...this.#origin, signal: undefined };
    const branch = () => new Events<T>(tee.branch(), origin, this.#response, this.#complete);
    return [branch(), branch()];
  }

  /** Reads on to the end for the branches, if there are any. Throws what they got. */
  protected async drain(): Promise<void> {
    if (this.#tee === undefined) return;
    let end: Batch | undefined;
    do end = await this.#tee.pull();
    while (end === undefined);
    if (end.error !== undefined) throw end.error;
  }

  /**
   * The events as bytes, one line of JSON each, as other SDKs write them too: to pass them on in an HTTP response.
   * Nothing is read before it is asked for; cancelling closes the connection, and an error is the stream's own.
   * `Events.fromReadableStream` reads them again.
   */
  toReadableStream(): ReadableStream<Uint8Array> {
    const take = this.claim("toReadableStream()");
    const encoder = new TextEncoder();
    return new ReadableStream<Uint8Array>(
      {
        pull: async (controller) => {
          const documents = await take();
          if (documents === undefined) controller.close();
          else controller.enqueue(encoder.encode(documents.map(line).join("")));
        },
        cancel: () => this.close(),
      },
      { highWaterMark: 0 },
    );
  }

  /**
   * Reads what `toReadableStream` wrote. `T` is taken on trust. Closing it, or aborting `signal`, cancels `readable`.
   *
   * Errors: those of `readable`, `DecodeError` for a line that is not JSON, `CancelledError`.
   */
  static fromReadableStream<T>(
    readable: ReadableStream<Uint8Array>,
    options: { readonly signal?: AbortSignal | undefined } = {},
  ): Events<T> {
    const site = new CallSite(Events.fromReadableStream);
    const origin: Origin = { operation: "fromReadableStream", site, signal: options.signal };
    return new Events<T>(new Lines(readable, origin), origin);
  }
}

/** A document as a line; one written over several lines is written anew. */
function line(document: string): string {
  return `${/[\r\n]/.test(document) ? JSON.stringify(JSON.parse(document)) : document}\n`;
}

/** Lines of a byte stream that are not empty. */
class Lines implements Source {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #decoder = new TextDecoder();
  /** The line that has begun. */
  #rest = "";
  #closed = false;
  /** To be told once, where a signal has ended it. */
  #failure: Error | undefined;
  readonly #origin: Origin;

  constructor(readable: ReadableStream<Uint8Array>, origin: Origin) {
    this.#reader = readable.getReader();
    this.#origin = origin;
  }

  async nextBatch(): Promise<Batch> {
    try {
      for (;;) {
        if (this.#failure !== undefined) return { error: this.#failure };
        const { done, value } = await this.#reader.read();
        const text = done ? this.#decoder.decode() : this.#decoder.decode(value, { stream: true });
        // Only what is new is searched: a long line may come in many packets.
        const end = done ? text.length : text.lastIndexOf("\n");
        const lines = end === -1 ? [] : (this.#rest + text.slice(0, end)).split("\n");
        this.#rest = end === -1 ? this.#rest + text : text.slice(end + 1);
        if (this.#rest.length > MAX_LINE_LENGTH) {
          throw new RangeError(`fromReadableStream: a line is longer than ${MAX_LINE_LENGTH} characters`);
        }
        const documents = lines.filter((text) => text.trim() !== "");
        if (documents.length > 0) return { documents };
        if (done && this.#failure === undefined) return {};
      }
    } catch (error) {
      this.close();
      return { error };
    }
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    // Its own failure is what the reader gets by `nextBatch`, or what nobody waits for any more.
    this.#reader.cancel().catch(() => {});
  }

  cancel(reason: unknown): void {
    this.#failure = cancelled(this.#origin, reason);
    this.close();
  }
}
