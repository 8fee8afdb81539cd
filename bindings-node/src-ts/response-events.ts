/** The events of a streamed response, with the texts so far. */

import type { ResponseStream } from "./generated/streams";
import type {
  ResponseFunctionCallArgumentsDeltaEvent,
  ResponseStreamEvent,
  ResponseTextDeltaEvent,
} from "./generated/types";
import { growing } from "./growing";
import { JsonPrefix } from "./json-prefix";
import { integerMember, textMember } from "./members";
import { ApiPromise } from "./promise";
import { Reader, type ReaderListeners } from "./reader";
import type { ParsedResponse } from "./responses";
import { type CallOrigin, type Format, parseResponse } from "./structured";

/** New text of a response, with the text so far. */
export interface ResponseTextEvent extends ResponseTextDeltaEvent {
  /** The text so far. */
  readonly snapshot: string;
  /**
   * The JSON so far, parsed when it is read. Null if the request has no format, no value has begun, or the text exceeds 8 MiB, 128
   * levels or 100,000 values.
   */
  readonly parsed: unknown;
}

/** New text of the arguments of a call, with the text so far. */
export interface ResponseArgumentsEvent extends ResponseFunctionCallArgumentsDeltaEvent {
  /** The text so far. */
  readonly snapshot: string;
}

/** An event of `responses.stream`: one of the protocol, those of new text and new arguments with the text so far. */
export type ResponseEvent =
  | Exclude<ResponseStreamEvent, ResponseTextDeltaEvent | ResponseFunctionCallArgumentsDeltaEvent>
  | ResponseTextEvent
  | ResponseArgumentsEvent;

/** Listeners to events, by their type. */
type ByType = {
  [Type in ResponseEvent["type"]]: (event: Extract<ResponseEvent, { type: Type }>) => void;
};

/** What listeners of `responses.stream` are called with, named as in other SDKs. */
export interface ResponseListeners<T> extends ReaderListeners, Omit<ByType, "error"> {
  /** Each event. */
  event: (event: ResponseEvent) => void;
  /** The whole answer. */
  finalResponse: (response: ParsedResponse<T>) => void;
}

/**
 * The events of a response: `for await (const event of stream)`, or `stream.on(name, listener)`, once.
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
export class ResponseEvents<T> extends Reader<ResponseStream, ResponseEvent, ResponseListeners<T>> {
  readonly #format: Format | undefined;
  readonly #origin: CallOrigin;
  /** By kind of the event, and the indices of the item and of its part. */
  readonly #texts = new Map<string, { text: string; readonly prefix: JsonPrefix }>();

  /** Created by the client. */
  constructor(
    opened: PromiseLike<ResponseStream>,
    format: Format | undefined,
    origin: CallOrigin,
    closing?: AbortController,
  ) {
    super(opened, closing);
    this.#format = format;
    this.#origin = origin;
  }

  protected take(event: ResponseStreamEvent | undefined, events: ResponseEvent[]): undefined {
    if (event === undefined) return undefined;
    if (event.type === "response.output_text.delta") {
      const { text, prefix } = this.#add(event, integerMember(event, "content_index", "") ?? 0);
      growing(event, "parsed", text, prefix.cut());
    } else if (event.type === "response.function_call_arguments.delta") {
      this.#add(event, undefined);
    }
    events.push(event as ResponseEvent);
    return undefined;
  }

  /** Adds the new text of an event to the text so far, and that to the event. Errors: `UnexpectedMember`. */
  #add(
    event: ResponseTextDeltaEvent | ResponseFunctionCallArgumentsDeltaEvent,
    part: number | undefined,
  ): { text: string; readonly prefix: JsonPrefix } {
    const delta = textMember(event, "delta", "") ?? "";
    const place = `${event.type} ${integerMember(event, "output_index", "")} ${part}`;
    const known = this.#texts.get(place) ?? { text: "", prefix: new JsonPrefix() };
    this.#texts.set(place, known);
    known.text += delta;
    if (this.#format !== undefined && part !== undefined) known.prefix.feed(delta);
    Object.defineProperty(event, "snapshot", { value: known.text, configurable: true });
    return known;
  }

  protected tell(event: ResponseEvent): void {
    this.emit("event", () => [event]);
    // That of errors is called with the error of the stream, which has this one.
    if (event.type !== "error") this.emit(event.type, () => [event as never]);
  }

  protected async whole(stream: ResponseStream): Promise<() => void> {
    const response = await this.#parsed(stream);
    return () => this.emit("finalResponse", () => [response]);
  }

  /**
   * Reads to the end; returns the whole answer, with `output_parsed` if the request has a format. A loop
   * still gets every event.
   *
   * Errors: `StructuredOutputError` if it failed or was cut off, or its text is not a value of the schema;
   * those of the stream.
   */
  finalResponse(): ApiPromise<ParsedResponse<T>> {
    return ApiPromise.of(this.forWhole().then((stream) => this.#parsed(stream)));
  }

  async #parsed(stream: ResponseStream): Promise<ParsedResponse<T>> {
    const response = await stream.finalResponse();
    if (this.#format !== undefined) await parseResponse(response, this.#format, this.#origin);
    return response as ParsedResponse<T>;
  }
}
