/** A stream that is opened and read at once; its events, with the answer so far, go to a loop or to listeners. */

import { setImmediate } from "node:timers";

import { asyncDispose } from "./feed";
import { CancelledError } from "./generated/errors";
import { Listeners, type ListenersOf } from "./listeners";
import type { Stream } from "./stream";

/** As it is now: tests replace timers. */
const afterThisTurn = setImmediate;

/**
 * Listeners that every reader has, in addition to those of its events.
 *
 * @example
 * ```js
 * import { Client } from "gatewright";
 *
 * const stream = new Client().responses.stream({ model: "model-sol", input: "Reply with exactly: one two" });
 * stream.on("connect", () => console.log("the response has begun")).on("end", () => console.log("the end"));
 * await stream.done();
 * ```
 */
export type ReaderListeners = {
  /** The response has begun. */
  connect: () => void;
  /** The call or its stream failed. If no listener, loop or promise receives it, it is an unhandled rejection. */
  error: (error: Error) => void;
  /** The call was cancelled, or the stream closed before its end. Unhandled like `error`, except after `close()`. */
  abort: (error: CancelledError) => void;
  /** Nothing follows, however it ended. */
  end: () => void;
};

/**
 * What `emitted` resolves to: the argument of the listener, or all of them if there are several.
 *
 * @example
 * ```js
 * import { Client } from "gatewright";
 *
 * const messages = [{ role: "user", content: "Reply with exactly: one two" }];
 * const stream = new Client().messages.stream({ model: "model-breeze", max_tokens: 64, messages });
 * const [text, snapshot] = await stream.emitted("text");
 * console.log(snapshot.endsWith(text));
 * ```
 */
export type Emitted<L> = L extends (...given: infer Given) => void
  ? Given extends [infer Only]
    ? Only
    : Given extends []
      ? undefined
      : Given
  : never;

/** Makes the error that a loop throws after the events before it. */
export type Failure = () => Promise<Error>;

/** An item of a stream. */
type ItemOf<S> = S extends Stream<infer I> ? I : never;

/**
 * Events of one answer, in order, once: `for await (const event of events)`, or to listeners: `events.on(name, listener)`.
 * Leaving the loop closes the connection, as do `close()`, `await using` and the `signal` of the call.
 *
 * A loop calls the listeners, too, each before it gets the event. Without a loop in the same turn of the event loop, the
 * stream is read for the listeners.
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
export abstract class Reader<S extends Stream<unknown>, E, L extends ListenersOf<L>>
  implements AsyncIterable<E>
{
  /** The stream, once its headers have arrived. */
  protected readonly opened: Promise<S>;
  readonly #closing: AbortController;
  readonly #listeners = new Listeners();
  /** What reads the stream. */
  #reading: "loop" | "listeners" | undefined;
  #isScheduled = false;
  #hasEnded = false;
  /** Whether a promise reports the errors of the stream. */
  #isAwaited = false;
  readonly #end: Promise<void>;
  #settle: (error?: Error) => void = () => {};

  /** Created by the client. `closing`: what ends the call. */
  constructor(opened: PromiseLike<S>, closing = new AbortController()) {
    this.opened = Promise.resolve(opened);
    this.#closing = closing;
    this.#end = new Promise((resolve, reject) => {
      this.#settle = (error) => (error === undefined ? resolve() : reject(error));
    });
    // The reader gets the error.
    this.opened.catch(() => {});
    this.#end.catch(() => {});
  }

  /**
   * Adds the events of an item of the stream; of `undefined`, those at its end. Returns what ends the stream after them, if
   * the answer cannot become what was requested. Errors: `UnexpectedMember`.
   */
  protected abstract take(
    item: ItemOf<S> | undefined,
    events: E[],
  ): Promise<Failure | undefined> | Failure | undefined;
  /** Calls the listeners of an event. */
  protected abstract tell(event: E): void;
  /** The whole answer, and what calls the listeners to it. */
  protected abstract whole(stream: S): Promise<() => void>;

  /** Calls the listeners of a name. `given`: makes the arguments, if there is a listener. */
  protected emit<N extends keyof L & string>(name: N, given: () => Parameters<L[N]>): void {
    this.#listeners.emit(name, given);
  }

  /** The events. Errors: those of the call and of its stream; TypeError for another loop. */
  [Symbol.asyncIterator](): AsyncGenerator<E, void, undefined> {
    return this.#read("loop");
  }

  async *#read(reading: "loop" | "listeners"): AsyncGenerator<E, void, undefined> {
    if (this.#reading === "listeners") {
      throw new TypeError(
        "the stream is read by its listeners, or was: begin the loop in the same turn as on()",
      );
    }
    // Another loop only gets the error of the stream.
    let isDue = this.#reading === undefined;
    this.#reading = reading;
    try {
      const stream = await this.opened;
      if (isDue) this.#listeners.emit("connect", () => []);
      // A stream that was closed before it is read has no events; reading it would be a mistake of the caller.
      for await (const item of this.#isClosed && isDue ? [] : stream) {
        const events: E[] = [];
        let failure: Failure | undefined;
        try {
          const taken = this.take(item as ItemOf<S>, events);
          failure = taken instanceof Promise ? await taken : taken;
        } catch (error) {
          throw stream.readingError(error, item);
        }
        for (const event of events) {
          this.tell(event);
          yield event;
        }
        if (failure !== undefined) throw await failure();
      }
      const events: E[] = [];
      const failure = await this.take(undefined, events);
      for (const event of events) {
        this.tell(event);
        yield event;
      }
      if (failure !== undefined) throw await failure();
      await this.#complete();
      isDue = false;
    } catch (error) {
      const isFirst = isDue;
      isDue = false;
      if (isFirst) this.#fail(error as Error);
      throw error;
    } finally {
      if (isDue) {
        // The loop was left, which closed the stream.
        this.#closing.abort();
        await this.#complete().catch((error) => this.#fail(error));
      }
    }
  }

  get #isClosed(): boolean {
    return this.#closing.signal.aborted;
  }

  /** Calls the listeners to the whole answer. Errors: those of the answer; `CancelledError` if the stream was closed. */
  async #complete(): Promise<void> {
    if (this.#isClosed || !this.#listeners.isEmpty) (await this.whole(await this.opened))();
    this.#emitEnd();
    this.#settle();
  }

  /** Once, even if a listener throws. */
  #emitEnd(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#listeners.emit("end", () => []);
  }

  #fail(error: Error): void {
    let isHeard = false;
    try {
      isHeard = this.#listeners.emit(error instanceof CancelledError ? "abort" : "error", () => [error]);
    } finally {
      try {
        this.#emitEnd();
      } finally {
        // As by a promise that nobody awaits: an error must not be lost. A caller that closed the stream knows.
        const isKnown = isHeard || this.#isAwaited || (this.#isClosed && error instanceof CancelledError);
        if (!isKnown && this.#reading === "listeners") void Promise.reject(error);
        this.#settle(error);
      }
    }
  }

  /** Reads the stream for the listeners. */
  #start(): void {
    if (this.#reading !== undefined) return;
    (async () => {
      for await (const _ of this.#read("listeners"));
      // Promises of the end report the error.
    })().catch(() => {});
  }

  /**
   * Calls a function at each event of this name, and reads the stream, unless a loop does.
   *
   * @example
   * ```js
   * import { Client } from "gatewright";
   *
   * const messages = [{ role: "user", content: "Reply with exactly: one two" }];
   * const stream = new Client().messages.stream({ model: "model-breeze", max_tokens: 64, messages });
   * stream.on("text", (delta, snapshot) => console.log(delta, snapshot));
   * console.log(await stream.finalText());
   * ```
   */
  on<N extends keyof L & string>(name: N, listener: L[N]): this {
    return this.#add(name, listener, false);
  }

  /**
   * Like `on`, but calls the function once.
   *
   * @example
   * ```js
   * import { Client } from "gatewright";
   *
   * const messages = [{ role: "user", content: "Reply with exactly: one two" }];
   * const stream = new Client().chat.completions.stream({ model: "model-sol", messages });
   * await stream.once("content", (delta) => console.log("first:", delta)).done();
   * ```
   */
  once<N extends keyof L & string>(name: N, listener: L[N]): this {
    return this.#add(name, listener, true);
  }

  #add<N extends keyof L & string>(name: N, listener: L[N], isOnce: boolean): this {
    this.#listeners.add(name, listener, isOnce);
    if (!this.#isScheduled) {
      this.#isScheduled = true;
      afterThisTurn(() => this.#start());
    }
    return this;
  }

  /** Removes a function that `on` or `once` added: the first one, if it was added several times. */
  off<N extends keyof L & string>(name: N, listener: L[N]): this {
    this.#listeners.remove(name, listener);
    return this;
  }

  /**
   * Waits for the next event of this name; returns the argument of its listeners, or all of them if there are several.
   *
   * Errors: those of the stream; TypeError if it ends without such an event.
   *
   * @example
   * ```js
   * import { Client } from "gatewright";
   *
   * const stream = new Client().responses.stream({ model: "model-sol", input: "Reply with exactly: one two" });
   * console.log((await stream.emitted("response.completed")).response.output_text);
   * ```
   */
  emitted<N extends keyof L & string>(name: N): Promise<Emitted<L[N]>> {
    this.#isAwaited = true;
    return new Promise((resolve, reject) => {
      const listener = (...given: unknown[]) =>
        resolve((given.length > 1 ? given : given[0]) as Emitted<L[N]>);
      this.once(name, listener as unknown as L[N]);
      this.#end.then(() => reject(new TypeError(`the stream ended without the event ${name}`)), reject);
    });
  }

  /** Waits for the end, and reads the stream, unless a loop does. Errors: those of the call and of its stream. */
  done(): Promise<void> {
    this.#isAwaited = true;
    this.#start();
    return this.#end;
  }

  /** The stream, for its whole answer: after its end, if it is read for listeners, so that they are called first. */
  protected async forWhole(): Promise<S> {
    this.#isAwaited = true;
    const stream = await this.opened;
    if (!this.#listeners.isEmpty) this.#start();
    if (this.#reading === "listeners") await this.#end;
    return stream;
  }

  /**
   * Closes the connection, even before the response has begun, and discards unread events. What waits for the stream gets a
   * `CancelledError`.
   */
  close(): void {
    this.#closing.abort();
    this.opened.then(
      (stream) => stream.close(),
      () => {},
    );
  }

  async [asyncDispose](): Promise<void> {
    this.close();
  }
}
