/** A streamed response: as typed events, as frames, as text, or as the whole document. */

import { setImmediate } from "node:timers";

import { delivered } from "./deliveries";
import { type EngineAnswer, type EngineStream, Level } from "./engine";
import { Events } from "./events";
import { CallSite, closed, failure, failureOf } from "./failure";
import { type Batch, Feed, type Origin, type Source } from "./feed";
import { operations } from "./generated/operations";
import type { Response } from "./generated/types";
import { readingError } from "./members";
import type { Operation } from "./operation";
import { ApiPromise } from "./promise";
import { Listed } from "./ready";
import type { ResponseInfo } from "./response";
import { completer, resultOf } from "./result";
import { type Known, Rows } from "./rows";

/** A frame of an event stream as it arrived. */
export interface RawEvent {
  /** Name of the event; null if it has none. */
  readonly event: string | null;
  /** Data, with several lines joined by LF; null if the frame has none. */
  readonly data: string | null;
  /** The last id that the stream sent; null before the first. */
  readonly id: string | null;
  /** Requested reconnection time, in milliseconds. */
  readonly retryMs: number | null;
  /** Comments of the frame, without the colon and the space after it. */
  readonly comments: readonly string[];
}

/**
 * The events of one response, in order, once: `for await (const event of stream)`.
 *
 * Leaving the loop early closes the connection at once, and so do `close()`, `await using` and the `signal`
 * of the call. A stream that ends before it is complete throws, so data is never lost silently.
 * `error.partial` is then the document assembled from the events so far.
 *
 * Read a stream once, and in only one of these ways: as events, `rawEvents()`, `text()`, `tee()` or
 * `toReadableStream()`. Another loop throws a TypeError. You can also request the final document during a
 * loop; the loop still gets every event.
 *
 * @example
 * ```js
 * import { Client } from "gatewright";
 *
 * const messages = [{ role: "user", content: "Reply with exactly: one two" }];
 * const stream = await new Client().chat.completions.create({ model: "model-sol", messages, stream: true });
 * for await (const chunk of stream) process.stdout.write(chunk.choices[0]?.delta.content ?? "");
 * const whole = await stream.finalChatCompletion();
 * console.log(whole.choices[0].finish_reason);
 * ```
 */
export class Stream<T> extends Events<T> {
  /** Status, headers and request id of the stream's response. */
  readonly response: ResponseInfo;
  readonly #engine: EngineStream;
  readonly #operation: Operation;
  readonly #origin: Origin;
  /** What is read, at the level that was chosen, and who reads it. */
  #source: EngineSource;
  #reader: Feed<unknown>;
  /** Whether the whole document was requested. */
  #given = false;

  /** Created by the client. */
  constructor(engine: EngineStream, response: ResponseInfo, operation: Operation, origin: Origin) {
    const source = new EngineSource(engine, response, origin, Level.events);
    super(source, origin, response, completer(operation));
    this.response = response;
    this.#engine = engine;
    this.#operation = operation;
    this.#origin = origin;
    this.#source = source;
    this.#reader = this;
  }

  /**
   * The frames as they arrived, including `[DONE]`, pings, comments and error events. Call it before reading.
   *
   * @example
   * ```js
   * import { Client } from "gatewright";
   *
   * const messages = [{ role: "user", content: "Reply with exactly: one two" }];
   * const stream = await new Client().chat.completions.create({ model: "model-sol", messages, stream: true });
   * for await (const { event, data } of stream.rawEvents()) console.log(event, data);
   * ```
   */
  rawEvents(): Feed<RawEvent> {
    return this.#level("rawEvents()", RawEvents, Level.frames);
  }

  /**
   * Only the text, as it arrives, of the first choice, output or candidate. Call it before reading. If the
   * response failed, the text ends with a `StreamError`.
   *
   * @example
   * ```js
   * import { Client } from "gatewright";
   *
   * const messages = [{ role: "user", content: "Reply with exactly: one two" }];
   * const stream = await new Client().chat.completions.create({ model: "model-sol", messages, stream: true });
   * for await (const piece of stream.text()) process.stdout.write(piece);
   * ```
   */
  text(): Feed<string> {
    return this.#level("text()", Text, Level.text);
  }

  override close(): void {
    if (this.#reader !== this) this.#reader.close();
    super.close();
  }

  #level<F extends Feed<unknown>>(
    way: string,
    Reader: new (source: Source, origin: Origin) => F,
    level: Level,
  ): F {
    this.claimWhole(way);
    if (this.#given) throw passed();
    const source = new EngineSource(this.#engine, this.response, this.#origin, level);
    this.#source = source;
    if (level === Level.text && this.#operation.id === operations.create_response.id) {
      source.verdict = () => this.#verdict();
    }
    const reader = new Reader(source, this.#origin);
    this.#reader = reader;
    this.ignoreSignal();
    return reader;
  }

  /** Reads to the end, and returns the document assembled from all events, including those read before. */
  protected finish<F>(): ApiPromise<F> {
    const site = new CallSite(this.finish);
    return new ApiPromise<F>((resolve, reject) => {
      this.drain()
        .then(() => this.#reader.readAhead())
        .then(() => {
          this.#given = true;
          this.#source.pass();
          return this.#whole<F>(site);
        })
        .finally(() => this.ignoreSignal())
        .then(resolve, reject);
    });
  }

  async #whole<F>(site: CallSite): Promise<F> {
    const answer = await delivered(
      (number) => this.#engine.finish(number),
      (answer) => answer,
    );
    if (answer.error !== null) throw failure(answer.error, site, this.#source.reason);
    return resultOf<F>(this.#operation, answer);
  }

  /**
   * What to throw where a helper that reads an event has thrown `error`.
   *
   * @internal
   */
  readingError(error: unknown, event: unknown): unknown {
    const { operation, method = operation, site } = this.#origin;
    const what = "an event of the stream";
    return readingError(error, { what, document: event, operation, method, site, response: this.response });
  }

  /** The error of an answer whose last event says that it failed, which its text does not show. */
  async #verdict(): Promise<unknown> {
    const { operation, method = operation, site } = this.#origin;
    const { status, requestId } = this.response;
    // The stream was closed on purpose: no error is reported.
    const partial = await this.#whole<Partial<Response>>(site).catch(() => undefined);
    if (partial?.status !== "failed") return undefined;
    const { code, message } = (partial.error ?? {}) as { code?: unknown; message?: unknown };
    const reason = typeof message === "string" ? message : "the gateway does not say why";
    return failureOf(
      {
        kind: "stream",
        message: `${method}: the answer failed: ${reason}`,
        operation,
        status,
        requestId,
        code: typeof code === "string" ? code : undefined,
        partial,
      },
      site,
    );
  }
}

/** `Stream`, or a subclass whose events add up to a known document. */
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

  /** Unlike events, text does not show that its end is missing. */
  protected override closedWhileRead(origin: Origin): Error {
    return closed(origin);
  }
}

/** How long batches may follow each other before timers and other sockets get their turn, in ms. */
const MAX_TURN_MS = 10;
/** As it is now: tests replace timers. */
const afterOthers = setImmediate;

/** The error for reading a stream that was read to its end for the whole document. */
function passed(): TypeError {
  return new TypeError(
    "the method of the final document has read the stream to its end: loop first, or split the stream with tee()",
  );
}

/** A stream of the engine, read at one level. */
class EngineSource implements Source {
  readonly #engine: EngineStream;
  readonly #response: ResponseInfo;
  readonly #origin: Origin;
  #level: Level;
  #started = false;
  /** When the event loop had its last turn between two batches, by `performance.now()`. */
  #turn = performance.now();
  /** What batches of events share. */
  readonly #known: Known = {};
  /** Whether the end has been delivered. */
  #ended = false;
  /** Whether what is left goes to the whole document. */
  #passed = false;
  /** Why the signal was aborted, if it was. */
  reason: unknown;
  /** Called at the end: the error to report in its place, if there is one. Never rejects. */
  verdict: (() => Promise<unknown>) | undefined;

  constructor(engine: EngineStream, response: ResponseInfo, origin: Origin, level: Level) {
    this.#engine = engine;
    this.#response = response;
    this.#origin = origin;
    this.#level = level;
  }

  async nextBatch(asDocuments: boolean): Promise<Batch> {
    // Batches that are there at once would come one after the other within one turn of the event loop.
    if (performance.now() - this.#turn > MAX_TURN_MS) {
      await new Promise<void>((resolve) => afterOthers(resolve));
      this.#turn = performance.now();
    }
    // The engine has read ahead by now: the level stays.
    if (asDocuments && !this.#started && this.#level === Level.events) this.#level = Level.documents;
    this.#started = true;
    if (this.#passed) return { error: passed() };
    const batch = await delivered(
      (number) => this.#engine.next(number, this.#level),
      (answer) => this.#batch(answer),
    );
    if (batch.error !== undefined || batch.values !== undefined || batch.documents !== undefined)
      return batch;
    // What came before this end was left to the whole document meanwhile.
    if (this.#passed) return { error: passed() };
    this.#ended = true;
    return { error: await this.verdict?.() };
  }

  /** Leaves what has not been read to the whole document: a reader gets an error in place of an end that looks complete. */
  pass(): void {
    this.#passed = !this.#ended;
  }

  #batch({ error, content }: EngineAnswer): Batch {
    if (error !== null) return { error: failure(error, this.#origin.site, this.reason) };
    if (content === null) return {};
    return this.#level === Level.documents
      ? { documents: content as string[] }
      : this.#parsed(content as string);
  }

  #parsed(json: string): Batch {
    try {
      const values =
        this.#level === Level.events
          ? new Rows(json, this.#known)
          : new Listed(JSON.parse(json) as unknown[]);
      return { values };
    } catch (cause) {
      this.close();
      const { operation, method = operation, site } = this.#origin;
      const { status, requestId } = this.#response;
      const message = `${method}: an event of the stream is not JSON`;
      return {
        error: failureOf({ kind: "decode", message, operation, status, requestId, body: json, cause }, site),
      };
    }
  }

  close(): void {
    this.#engine.close();
  }

  cancel(reason: unknown): void {
    this.reason = reason;
    this.#engine.cancel();
  }
}
