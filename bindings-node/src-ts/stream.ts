/** A streamed response: as typed events, as frames, as text, or as the document that the events add up to. */

import { setImmediate } from "node:timers";

import { delivered } from "./deliveries";
import { type EngineAnswer, type EngineStream, Level } from "./engine";
import { Events } from "./events";
import { CallSite, failure, failureOf } from "./failure";
import { type Batch, Feed, type Origin, type Source } from "./feed";
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
  /** The last id that the stream has sent; null before the first. */
  readonly id: string | null;
  /** Requested reconnection time, in milliseconds. */
  readonly retryMs: number | null;
  /** Comments of the frame, without the colon and the space after it. */
  readonly comments: readonly string[];
}

/**
 * The events of one response, in order, once: `for await (const event of stream)`.
 *
 * Leaving the loop early closes the connection at once, as do `close()`, `await using` and the `signal` the call was
 * given. A stream that ends before it is complete throws, so data is never lost silently. `error.partial` is then the
 * document that the events so far add up to.
 *
 * Read a stream in only one of these ways: as events, `rawEvents()`, `text()`, `tee()` or `toReadableStream()`.
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
  readonly #source: EngineSource;

  /** Created by the client. */
  constructor(engine: EngineStream, response: ResponseInfo, operation: Operation, origin: Origin) {
    const source = new EngineSource(engine, response, origin, Level.events);
    super(source, origin, response, completer(operation));
    this.response = response;
    this.#engine = engine;
    this.#operation = operation;
    this.#origin = origin;
    this.#source = source;
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
   * Only the text, as it arrives: that of the first choice, output or candidate. Call it before reading.
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

  #level<F>(way: string, feed: new (source: Source, origin: Origin) => F, level: Level): F {
    this.claimWhole(way);
    return new feed(new EngineSource(this.#engine, this.response, this.#origin, level), this.#origin);
  }

  /** Reads to the end, and returns the document that all events add up to, including those read before. */
  protected finish<F>(): ApiPromise<F> {
    const site = new CallSite(this.finish);
    return new ApiPromise<F>((resolve, reject) => {
      this.drain()
        .then(() =>
          delivered(
            (number) => this.#engine.finish(number),
            (answer) => answer,
          ),
        )
        .then((answer) => {
          if (answer.error !== null) throw failure(answer.error, site, this.#source.reason);
          return resultOf<F>(this.#operation, answer);
        })
        .then(resolve, reject);
    });
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
}

/** How long batches may follow each other before timers and other sockets get their turn, in ms. */
const LONGEST_TURN_MS = 10;
/** As it is now: tests replace timers. */
const afterOthers = setImmediate;

/** A stream of the engine, read at one level. */
class EngineSource implements Source {
  readonly #engine: EngineStream;
  readonly #response: ResponseInfo;
  readonly #origin: Origin;
  #level: Level;
  #begun = false;
  /** When the event loop had its last turn between two batches, by `performance.now()`. */
  #turn = performance.now();
  /** What batches of events share. */
  readonly #known: Known = {};
  /** Why the signal was aborted, if it was. */
  reason: unknown;

  constructor(engine: EngineStream, response: ResponseInfo, origin: Origin, level: Level) {
    this.#engine = engine;
    this.#response = response;
    this.#origin = origin;
    this.#level = level;
  }

  async nextBatch(asDocuments: boolean): Promise<Batch> {
    // Batches that are there at once would come one after the other within one turn of the event loop.
    if (performance.now() - this.#turn > LONGEST_TURN_MS) {
      await new Promise<void>((resolve) => afterOthers(resolve));
      this.#turn = performance.now();
    }
    // The engine has read ahead by now: the level stays.
    if (asDocuments && !this.#begun && this.#level === Level.events) this.#level = Level.documents;
    this.#begun = true;
    return delivered(
      (number) => this.#engine.next(number, this.#level),
      (answer) => this.#batch(answer),
    );
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
