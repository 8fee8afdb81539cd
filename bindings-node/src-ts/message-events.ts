/** The events of a streamed message: those of the protocol, and what they add up to. */

import type { MessageStream } from "./generated/streams";
import type {
  Message,
  MessageBlock,
  MessageBlockStopEvent,
  MessageCitationsDelta,
  MessageStopEvent,
  MessageStreamEvent,
} from "./generated/types";
import { growing, growingList } from "./growing";
import type { Members } from "./members";
import { type Block, MessageSoFar, objectIn, textIn } from "./message-so-far";
import { ApiPromise } from "./promise";
import { type Failure, Reader, type ReaderListeners } from "./reader";

/** New text of a block of text. */
export interface TextEvent {
  /** Kind of the event. */
  readonly type: "text";
  /** The new text. */
  readonly text: string;
  /** The text of the block so far. */
  readonly snapshot: string;
}

/** New JSON of the input of a tool call. */
export interface InputJsonEvent {
  /** Kind of the event. */
  readonly type: "input_json";
  /** The new text. */
  readonly partial_json: string;
  /**
   * The input so far; `{}` before it begins. The text is parsed when this is first read. Beyond 8 MiB of text, 128 levels or 100,000 values, it is
   * `{}`, too: the whole input is in the event `content_block_stop`.
   */
  readonly snapshot: unknown;
}

/** New text of the model's thinking. */
export interface ThinkingEvent {
  /** Kind of the event. */
  readonly type: "thinking";
  /** The new text. */
  readonly thinking: string;
  /** The text of the block so far. */
  readonly snapshot: string;
}

/** The signature of a block of thinking. */
export interface SignatureEvent {
  /** Kind of the event. */
  readonly type: "signature";
  /** The whole signature. */
  readonly signature: string;
}

/** A citation of a block of text. */
export interface CitationEvent {
  /** Kind of the event. */
  readonly type: "citation";
  /** The new citation. */
  readonly citation: MessageCitationsDelta["citation"];
  /** The citations of the block so far. */
  readonly snapshot: readonly MessageCitationsDelta["citation"][];
}

/** A block is complete. */
export interface ContentBlockStopEvent extends MessageBlockStopEvent {
  /** The whole block. */
  readonly content_block: MessageBlock;
}

/** The message is complete. */
export interface MessageEndEvent extends MessageStopEvent {
  /** The whole message. */
  readonly message: Message;
}

/** An event of `messages.stream`: one of the protocol, or what it brings, named as in other SDKs. */
export type MessageEvent =
  | Exclude<MessageStreamEvent, MessageBlockStopEvent | MessageStopEvent>
  | ContentBlockStopEvent
  | MessageEndEvent
  | TextEvent
  | InputJsonEvent
  | ThinkingEvent
  | SignatureEvent
  | CitationEvent;

/** What listeners of `messages.stream` are called with, named as in other SDKs. */
export interface MessageListeners extends ReaderListeners {
  /** An event of the protocol, and the message so far. */
  streamEvent: (event: MessageStreamEvent, snapshot: Message | undefined) => void;
  /** New text, and the text of the block so far. */
  text: (text: string, snapshot: string) => void;
  /** New JSON of the input of a tool call, and the input so far. */
  inputJson: (partialJson: string, snapshot: unknown) => void;
  /** New text of the model's thinking, and the text of the block so far. */
  thinking: (thinking: string, snapshot: string) => void;
  /** The signature of a block of thinking. */
  signature: (signature: string) => void;
  /** A citation, and the citations of the block so far. */
  citation: (citation: CitationEvent["citation"], snapshot: CitationEvent["snapshot"]) => void;
  /** A block that is complete. */
  contentBlock: (block: MessageBlock) => void;
  /** The whole message. */
  message: (message: Message) => void;
  /** The whole message, after `message`. */
  finalMessage: (message: Message) => void;
}

/**
 * The events of a message: `for await (const event of stream)`, `stream.on(name, listener)`, or `stream.textStream()`,
 * once.
 *
 * @example
 * ```js
 * import { Client } from "gatewright";
 *
 * const messages = [{ role: "user", content: "Reply with exactly: one two" }];
 * const stream = new Client().messages.stream({ model: "model-breeze", max_tokens: 64, messages });
 * for await (const event of stream) {
 *   if (event.type === "text") console.log(event.snapshot);
 *   if (event.type === "message_stop") console.log(event.message.usage);
 * }
 * console.log(await stream.finalText());
 * ```
 */
export class MessageEvents extends Reader<MessageStream, MessageEvent, MessageListeners> {
  readonly #soFar = new MessageSoFar();
  #whole: Message | undefined;
  /** Events of the server whose type is one of ours. */
  #serverEvents: WeakSet<object> | undefined;

  /** The message so far, an object that grows; `undefined` before its first event. */
  get currentMessage(): Message | undefined {
    return this.#whole ?? this.#soFar.message;
  }

  protected take(event: MessageStreamEvent | undefined, events: MessageEvent[]): Failure | undefined {
    if (event === undefined) return undefined;
    switch (event.type) {
      case "message_start":
        events.push(event);
        // The text of a message that arrived whole is new text, too.
        for (const block of this.#soFar.begin(event)) {
          const text = block.members["type"] === "text" ? block.text("text") : "";
          if (text !== "") events.push({ type: "text", text, snapshot: text });
        }
        break;
      case "content_block_start":
        events.push(event);
        this.#soFar.beginBlock(event);
        break;
      case "content_block_delta": {
        events.push(event);
        const delta = objectIn(event, "delta");
        if (delta === undefined) break;
        const piece = eventOf(delta, this.#soFar.add(event, delta));
        if (piece !== undefined) events.push(piece);
        break;
      }
      case "content_block_stop":
        events.push(extended(event, "content_block", this.#soFar.endBlock(event)));
        break;
      case "message_delta":
        events.push(event);
        this.#soFar.settle(event);
        break;
      case "message_stop":
        events.push(extended(event, "message", this.#soFar.end()));
        break;
      default:
        if (OUR_TYPES.has(event.type)) {
          this.#serverEvents ??= new WeakSet();
          this.#serverEvents.add(event);
        }
        events.push(event);
    }
    return undefined;
  }

  protected tell(event: MessageEvent): void {
    if (this.#serverEvents?.has(event)) {
      this.emit("streamEvent", () => [event as MessageStreamEvent, this.currentMessage]);
      return;
    }
    switch (event.type) {
      case "text":
        this.emit("text", () => [event.text, event.snapshot]);
        break;
      case "input_json":
        this.emit("inputJson", () => [event.partial_json, event.snapshot]);
        break;
      case "thinking":
        this.emit("thinking", () => [event.thinking, event.snapshot]);
        break;
      case "signature":
        this.emit("signature", () => [event.signature]);
        break;
      case "citation":
        this.emit("citation", () => [event.citation, event.snapshot]);
        break;
      default:
        this.emit("streamEvent", () => [event, this.currentMessage]);
        if (event.type === "content_block_stop") this.emit("contentBlock", () => [event.content_block]);
    }
  }

  protected async whole(stream: MessageStream): Promise<() => void> {
    const message = await stream.finalMessage();
    return () => {
      this.emit("message", () => [message]);
      this.emit("finalMessage", () => [message]);
    };
  }

  /** The new text of all text blocks, instead of the events; never an empty piece. Errors: those of the events. */
  async *textStream(): AsyncGenerator<string, void, undefined> {
    for await (const event of this) {
      if (event.type === "text" && event.text !== "" && !this.#serverEvents?.has(event)) yield event.text;
    }
  }

  /**
   * Reads to the end; returns the whole message. A loop still gets every event, and so do listeners. Errors: those of the
   * stream.
   */
  finalMessage(): ApiPromise<Message> {
    const whole = async () => {
      this.#whole = await (await this.forWhole()).finalMessage();
      return this.#whole;
    };
    return ApiPromise.of(whole());
  }

  /** Reads to the end; returns the text of all text blocks. Errors: those of the stream. */
  async finalText(): Promise<string> {
    return (await this.finalMessage()).text;
  }
}

/** The types of the events that this module makes. */
const OUR_TYPES: ReadonlySet<string> = new Set(["text", "input_json", "thinking", "signature", "citation"]);

/** The event of a piece of a block, which has been added to it; `undefined` for a kind that is not known. */
function eventOf(delta: Members, block: Block): MessageEvent | undefined {
  const piece = (name: string) => textIn(delta, name);
  switch (delta["type"]) {
    case "text_delta":
      return { type: "text", text: piece("text"), snapshot: block.text("text") };
    case "input_json_delta": {
      const { text, cut } = block.input;
      const event = { type: "input_json", partial_json: piece("partial_json") } as const;
      return growing(event, "snapshot", text, cut, {});
    }
    case "thinking_delta":
      return { type: "thinking", thinking: piece("thinking"), snapshot: block.text("thinking") };
    case "signature_delta":
      return { type: "signature", signature: piece("signature") };
    case "citations_delta": {
      const citation = delta["citation"] as CitationEvent["citation"] | null | undefined;
      if (citation == null) return undefined;
      const citations = block.citations as CitationEvent["snapshot"];
      return growingList({ type: "citation", citation } as const, citations);
    }
    default:
      return undefined;
  }
}

/** An event with a member that did not arrive. Not enumerable: the event stays as it arrived. */
function extended<E extends object, N extends string, V>(
  event: E,
  name: N,
  value: V,
): E & { readonly [name in N]: V } {
  return Object.defineProperty(event, name, { value, configurable: true }) as E & { readonly [name in N]: V };
}
