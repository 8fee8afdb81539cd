/** The events of a streamed response, with the texts so far. */

import { growing } from "./chat-events";
import type { ResponseStream } from "./generated/streams";
import type { ResponseStreamEvent, ResponseTextDeltaEvent } from "./generated/types";
import { JsonPrefix } from "./json-prefix";
import { ApiPromise } from "./promise";
import { Reader } from "./reader";
import type { ParsedResponse } from "./responses";
import { type CallOrigin, type Format, parseResponse } from "./structured";

/** New text of a response, with the text so far. */
export interface ResponseTextEvent extends ResponseTextDeltaEvent {
  /** The text so far. */
  readonly snapshot: string;
  /**
   * The JSON so far; null if the request has no format, no value has begun, or the text exceeds 1 MiB. Parsed
   * when it is read.
   */
  readonly parsed: unknown;
}

/** An event of `responses.stream`: one of the protocol, that of new text with the text so far. */
export type ResponseEvent = Exclude<ResponseStreamEvent, ResponseTextDeltaEvent> | ResponseTextEvent;

/**
 * The events of a response: `for await (const event of stream)`, once.
 *
 * @example
 * ```js
 * import { Client } from "gatewright";
 *
 * const stream = new Client().responses.stream({ model: "model-sol", input: "Reply with exactly: one two" });
 * for await (const event of stream) if (event.type === "response.output_text.delta") console.log(event.snapshot);
 * console.log((await stream.finalResponse()).output_text);
 * ```
 */
export class ResponseEvents<T> extends Reader<ResponseStream, ResponseEvent> {
  readonly #format: Format | undefined;
  readonly #origin: CallOrigin;

  /** Created by the client. */
  constructor(opened: PromiseLike<ResponseStream>, format: Format | undefined, origin: CallOrigin) {
    super(opened);
    this.#format = format;
    this.#origin = origin;
  }

  /** The events. Errors: those of the call and of its stream; TypeError for another loop. */
  async *[Symbol.asyncIterator](): AsyncGenerator<ResponseEvent, void, undefined> {
    const texts = new Map<string, { text: string; readonly prefix: JsonPrefix }>();
    for await (const event of await this.opened) {
      if (event.type === "response.output_text.delta") {
        const { output_index: item, content_index: part, delta } = event as ResponseTextDeltaEvent;
        const known = texts.get(`${item} ${part}`) ?? { text: "", prefix: new JsonPrefix() };
        texts.set(`${item} ${part}`, known);
        known.text += delta;
        if (this.#format !== undefined) known.prefix.feed(delta);
        Object.defineProperty(event, "snapshot", { value: known.text, configurable: true });
        growing(event, "parsed", known.text, known.prefix.cut());
      }
      yield event as ResponseEvent;
    }
  }

  /**
   * Reads to the end; returns the whole answer, with `output_parsed` if the request has a format. A loop
   * still gets every event.
   *
   * Errors: `StructuredOutputError` if it failed or was cut off, or its text is not a value of the schema;
   * those of the stream.
   */
  finalResponse(): ApiPromise<ParsedResponse<T>> {
    return ApiPromise.of(this.#final());
  }

  async #final(): Promise<ParsedResponse<T>> {
    const response = await (await this.opened).finalResponse();
    if (this.#format !== undefined) await parseResponse(response, this.#format, this.#origin);
    return response as ParsedResponse<T>;
  }
}
