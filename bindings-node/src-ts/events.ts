/** Events that are JSON documents, and ways to forward them: to two readers, or as bytes. */

import { CallSite, failureOf } from "./failure";
import { type Batch, Feed, type Origin, type Source } from "./feed";
import { Lines } from "./lines";
import type { ResponseInfo } from "./response";
import { Tee } from "./tee";

/** Events of one response, in order, once: `for await (const event of events)`. */
export class Events<T> extends Feed<T> {
  readonly #origin: Origin;
  readonly #response: ResponseInfo | undefined;
  readonly #complete: ((event: unknown) => void) | undefined;
  #tee: Tee | undefined;

  /** Created by the client. `complete`: adds members to an event that are not in the response. */
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

  protected override adopt(event: unknown): T {
    this.#complete?.(event);
    return event as T;
  }

  protected override decode(document: string): T {
    try {
      return this.adopt(JSON.parse(document));
    } catch (cause) {
      this.close();
      const { operation, method = operation, site } = this.#origin;
      throw failureOf(
        {
          kind: "decode",
          message: `${method}: an event of the stream is not JSON`,
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
   * Two readers, each of which gets every event. Events that the slower reader has not read are buffered in
   * memory, so read both at about the same pace, or close one. A reader that falls 256 MiB behind fails with
   * a RangeError. The connection closes when both are closed; an error reaches both.
   *
   * @example
   * ```js
   * import { Client } from "gatewright";
   *
   * const messages = [{ role: "user", content: "Reply with exactly: one two" }];
   * const stream = await new Client().chat.completions.create({ model: "model-sol", messages, stream: true });
   * const [one, other] = stream.tee();
   * const count = async (events) => {
   *   let seen = 0;
   *   for await (const _ of events) seen += 1;
   *   return seen;
   * };
   * console.log(await Promise.all([count(one), count(other)]));
   * ```
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

  /** Reads to the end for the branches, if there are any. Throws the error that they got. */
  protected async drain(): Promise<void> {
    if (this.#tee === undefined) return;
    let end: Batch | undefined;
    do end = await this.#tee.pull();
    while (end === undefined);
    if (end.error !== undefined) throw end.error;
  }

  /**
   * The events as bytes, one line of JSON each, in the same format as other SDKs, to forward them in an HTTP
   * response. Nothing is read before it is requested. Cancelling closes the connection; an error becomes that
   * of the stream. `Events.fromReadableStream` parses the bytes.
   *
   * @example
   * ```js
   * import { Client } from "gatewright";
   *
   * const messages = [{ role: "user", content: "Reply with exactly: one two" }];
   * const stream = await new Client().chat.completions.create({ model: "model-sol", messages, stream: true });
   * const response = new Response(stream.toReadableStream(), { headers: { "content-type": "application/x-ndjson" } });
   * console.log((await response.text()).split("\n").length);
   * ```
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
   * Parses the output of `toReadableStream`. `T` is not checked. Closing it, or aborting `signal`, cancels `readable`.
   *
   * Errors: those of `readable`, `DecodeError` for a line that is not JSON, `CancelledError`.
   *
   * @example
   * ```js
   * import { Events } from "gatewright";
   *
   * const { body } = new Response('{"n": 1}\n{"n": 2}\n');
   * for await (const { n } of Events.fromReadableStream(body)) console.log(n);
   * ```
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

/** A document as one line; a document with line breaks is serialised again. */
function line(document: string): string {
  return `${/[\r\n]/.test(document) ? JSON.stringify(JSON.parse(document)) : document}\n`;
}
