/** A streamed chat completion as it grows, event by event: texts so far, tool calls, values of a schema. */

import type { ParsedChatCompletion, ParsedChatMessage } from "./chat";
import type { ChatCompletionStream } from "./generated/streams";
import type { ChatCompletionChunk, TokenLogprob } from "./generated/types";
import { growing, growingList } from "./growing";
import { JsonPrefix } from "./json-prefix";
import {
  integerMember,
  isObject,
  listMember,
  type Members,
  objectMember,
  objectsMember,
  textMember,
  UnexpectedMember,
} from "./members";
import { ApiPromise } from "./promise";
import { type Failure, Reader, type ReaderListeners } from "./reader";
import { type CallOrigin, type Format, parseCompletion, Unfit } from "./structured";

/** A chunk as it arrived. The events for its contents follow. */
export interface ChunkEvent {
  /** Kind of the event. */
  readonly type: "chunk";
  /** The chunk. */
  readonly chunk: ChatCompletionChunk;
}

/** New text. */
export interface ContentDeltaEvent {
  /** Kind of the event. */
  readonly type: "content.delta";
  /** Index of the choice. */
  readonly index: number;
  /** The new text. */
  readonly delta: string;
  /** The text so far. */
  readonly snapshot: string;
  /**
   * The JSON so far; null if the request has no format or no value has begun. The text is parsed when this is
   * first read. Beyond 8 MiB of text, 128 levels or 100,000 values, it is null.
   */
  readonly parsed: unknown;
}

/** The text is complete. */
export interface ContentDoneEvent<T> {
  /** Kind of the event. */
  readonly type: "content.done";
  /** Index of the choice. */
  readonly index: number;
  /** The whole text. */
  readonly content: string;
  /** The value; null if the request has no format. */
  readonly parsed: T | null;
}

/** New text of a refusal. */
export interface RefusalDeltaEvent {
  /** Kind of the event. */
  readonly type: "refusal.delta";
  /** Index of the choice. */
  readonly index: number;
  /** The new text. */
  readonly delta: string;
  /** The text so far. */
  readonly snapshot: string;
}

/** The refusal is complete. */
export interface RefusalDoneEvent {
  /** Kind of the event. */
  readonly type: "refusal.done";
  /** Index of the choice. */
  readonly index: number;
  /** The whole text. */
  readonly refusal: string;
}

/** Log probabilities of new tokens of the text. */
export interface LogprobsContentDeltaEvent {
  /** Kind of the event. */
  readonly type: "logprobs.content.delta";
  /** Index of the choice. */
  readonly index: number;
  /** The new tokens. */
  readonly content: readonly TokenLogprob[];
  /** The tokens so far. */
  readonly snapshot: readonly TokenLogprob[];
}

/** The log probabilities of the text are complete. */
export interface LogprobsContentDoneEvent {
  /** Kind of the event. */
  readonly type: "logprobs.content.done";
  /** Index of the choice. */
  readonly index: number;
  /** All tokens. */
  readonly content: readonly TokenLogprob[];
}

/** Log probabilities of new tokens of a refusal. */
export interface LogprobsRefusalDeltaEvent {
  /** Kind of the event. */
  readonly type: "logprobs.refusal.delta";
  /** Index of the choice. */
  readonly index: number;
  /** The new tokens. */
  readonly refusal: readonly TokenLogprob[];
  /** The tokens so far. */
  readonly snapshot: readonly TokenLogprob[];
}

/** The log probabilities of a refusal are complete. */
export interface LogprobsRefusalDoneEvent {
  /** Kind of the event. */
  readonly type: "logprobs.refusal.done";
  /** Index of the choice. */
  readonly index: number;
  /** All tokens. */
  readonly refusal: readonly TokenLogprob[];
}

/** New text of the arguments of a tool call. */
export interface ToolArgumentsDeltaEvent {
  /** Kind of the event. */
  readonly type: "tool_calls.function.arguments.delta";
  /** Index of the call. */
  readonly index: number;
  /** Name of the tool. */
  readonly name: string;
  /** The new text. */
  readonly arguments_delta: string;
  /** The text so far. */
  readonly arguments: string;
  /** The arguments so far, or null; see `ContentDeltaEvent.parsed`. */
  readonly parsed_arguments: unknown;
}

/** The arguments of a tool call are complete. */
export interface ToolArgumentsDoneEvent {
  /** Kind of the event. */
  readonly type: "tool_calls.function.arguments.done";
  /** Index of the call. */
  readonly index: number;
  /** Name of the tool. */
  readonly name: string;
  /** The whole text. */
  readonly arguments: string;
  /** The arguments; null if they are not JSON. */
  readonly parsed_arguments: unknown;
}

/** An event of `chat.completions.stream`, named as in other SDKs. */
export type ChatEvent<T> =
  | ChunkEvent
  | ContentDeltaEvent
  | ContentDoneEvent<T>
  | RefusalDeltaEvent
  | RefusalDoneEvent
  | LogprobsContentDeltaEvent
  | LogprobsContentDoneEvent
  | LogprobsRefusalDeltaEvent
  | LogprobsRefusalDoneEvent
  | ToolArgumentsDeltaEvent
  | ToolArgumentsDoneEvent;

/** Listeners to events, by their type. */
type ByType<T> = {
  [Type in Exclude<ChatEvent<T>["type"], "chunk">]: (event: Extract<ChatEvent<T>, { type: Type }>) => void;
};

/** What listeners of `chat.completions.stream` are called with, named as in other SDKs. */
export interface ChatListeners<T> extends ReaderListeners, ByType<T> {
  /** A chunk as it arrived. */
  chunk: (chunk: ChatCompletionChunk) => void;
  /** New text, and the text so far. */
  content: (delta: string, snapshot: string) => void;
  /** The message of the first choice. */
  message: (message: ParsedChatMessage<T>) => void;
  /** The whole answer. */
  chatCompletion: (completion: ParsedChatCompletion<T>) => void;
  /** The text of the first choice, after `chatCompletion`; not without one. */
  finalContent: (content: string) => void;
  /** The message of the first choice, after `chatCompletion`. */
  finalMessage: (message: ParsedChatMessage<T>) => void;
  /** The whole answer, after `chatCompletion`. */
  finalChatCompletion: (completion: ParsedChatCompletion<T>) => void;
}

/**
 * The events of a chat completion: `for await (const event of stream)`, or `stream.on(name, listener)`, once.
 *
 * @example
 * ```js
 * import { Client } from "gatewright";
 *
 * const messages = [{ role: "user", content: "Reply with exactly: one two" }];
 * const stream = new Client().chat.completions.stream({ model: "model-sol", messages });
 * for await (const event of stream) if (event.type === "content.delta") console.log(event.snapshot);
 * console.log(await stream.finalContent());
 * ```
 */
export class ChatCompletionEvents<T> extends Reader<ChatCompletionStream, ChatEvent<T>, ChatListeners<T>> {
  readonly #format: Format | undefined;
  readonly #origin: CallOrigin;
  readonly #answer: Answer;

  /** Created by the client. */
  constructor(
    opened: PromiseLike<ChatCompletionStream>,
    format: Format | undefined,
    origin: CallOrigin,
    closing?: AbortController,
  ) {
    super(opened, closing);
    this.#format = format;
    this.#origin = origin;
    this.#answer = new Answer(format);
  }

  protected async take(
    chunk: ChatCompletionChunk | undefined,
    events: ChatEvent<T>[],
  ): Promise<Failure | undefined> {
    const made = events as ChatEvent<unknown>[];
    try {
      await (chunk === undefined ? this.#answer.end(made) : this.#answer.take(chunk, made));
      return undefined;
    } catch (error) {
      if (error instanceof UnexpectedMember) throw error;
      return () => this.#failure(error as Error);
    }
  }

  /** The error of the whole answer, which explains what is wrong; otherwise this one. */
  async #failure(error: Error): Promise<Error> {
    if (!(error instanceof Unfit || error instanceof CutOffText)) return error;
    return this.#parsed(await this.opened).then(
      () => error,
      (explained) => explained,
    );
  }

  protected tell(event: ChatEvent<T>): void {
    if (event.type === "chunk") {
      this.emit("chunk", () => [event.chunk]);
      return;
    }
    if (event.type === "content.delta") this.emit("content", () => [event.delta, event.snapshot]);
    this.emit(event.type, () => [event as never]);
  }

  protected async whole(stream: ChatCompletionStream): Promise<() => void> {
    const completion = await this.#parsed(stream);
    const message = completion.choices[0]?.message;
    return () => {
      if (message !== undefined) this.emit("message", () => [message]);
      this.emit("chatCompletion", () => [completion]);
      const content = message?.content;
      if (typeof content === "string") this.emit("finalContent", () => [content]);
      if (message !== undefined) this.emit("finalMessage", () => [message]);
      this.emit("finalChatCompletion", () => [completion]);
    };
  }

  /**
   * Reads to the end; returns the whole answer, with `parsed` in its messages if the request has a format. A
   * loop still gets every event.
   *
   * Errors: `StructuredOutputError` if a choice was cut off, or its text is not a value of the schema; those
   * of the stream.
   */
  finalChatCompletion(): ApiPromise<ParsedChatCompletion<T>> {
    return ApiPromise.of(this.forWhole().then((stream) => this.#parsed(stream)));
  }

  async #parsed(stream: ChatCompletionStream): Promise<ParsedChatCompletion<T>> {
    const completion = await stream.finalChatCompletion();
    if (this.#format !== undefined) await parseCompletion(completion, this.#format, this.#origin);
    return completion as ParsedChatCompletion<T>;
  }

  /**
   * Reads to the end; returns the message of the first choice. Errors: those of `finalChatCompletion`; TypeError if the answer
   * has no choice.
   */
  async finalMessage(): Promise<ParsedChatMessage<T>> {
    const { choices } = await this.finalChatCompletion();
    if (choices[0] === undefined) throw new TypeError("the answer has no choice");
    return choices[0].message;
  }

  /**
   * Reads to the end; returns the text of the first choice, null if it has none. Errors: those of the
   * stream.
   */
  async finalContent(): Promise<string | null> {
    const { choices } = await (await this.forWhole()).finalChatCompletion();
    return choices[0]?.message.content ?? null;
  }
}

/** The part of a call that has arrived. */
class CallSoFar {
  name = "";
  arguments = "";
  readonly prefix = new JsonPrefix();
  isFunction = true;
}

/** The part of a choice that has arrived. */
class ChoiceSoFar {
  content = "";
  refusal = "";
  readonly prefix = new JsonPrefix();
  readonly contentTokens: TokenLogprob[] = [];
  readonly refusalTokens: TokenLogprob[] = [];
  readonly calls = new Map<number, CallSoFar>();
  openCall: number | undefined;
  isTextDone = false;
}

/** A text ended before it could become the requested value. */
class CutOffText extends Error {}

/** Turns chunks into events. */
class Answer {
  readonly #format: Format | undefined;
  readonly #choices = new Map<number, ChoiceSoFar>();

  constructor(format: Format | undefined) {
    this.#format = format;
  }

  /**
   * Adds the events of a chunk. Errors: `Unfit` or `CutOffText` if a text is not the requested value; `UnexpectedMember`.
   */
  async take(chunk: ChatCompletionChunk, events: ChatEvent<unknown>[]): Promise<void> {
    events.push({ type: "chunk", chunk });
    for (const [position, piece] of objectsMember(chunk, "choices", "").entries()) {
      const place = `/choices/${position}`;
      const index = integerMember(piece, "index", place) ?? position;
      const choice = this.#choices.get(index) ?? new ChoiceSoFar();
      this.#choices.set(index, choice);
      const delta = objectMember(piece, "delta", place);
      if (delta !== undefined) this.#addText(events, index, choice, delta, place);
      const logprobs = objectMember(piece, "logprobs", place);
      if (logprobs !== undefined) this.#addTokens(events, index, choice, logprobs, place);
      if (delta?.["tool_calls"] != null) await this.#addCalls(events, index, choice, delta, place);
      const reason = piece["finish_reason"];
      if (!reason) continue;
      if (this.#format !== undefined && (reason === "length" || reason === "content_filter")) {
        throw new CutOffText(reason);
      }
      await this.#finish(events, index, choice);
    }
  }

  /** Adds the remaining events of a stream without finish reasons. */
  async end(events: ChatEvent<unknown>[]): Promise<void> {
    for (const [index, choice] of this.#choices) await this.#finish(events, index, choice);
  }

  #addText(
    events: ChatEvent<unknown>[],
    index: number,
    choice: ChoiceSoFar,
    delta: Members,
    place: string,
  ): void {
    const content = textMember(delta, "content", `${place}/delta`);
    if (content) {
      choice.content += content;
      if (this.#format !== undefined) choice.prefix.feed(content);
      const textEvent = { type: "content.delta", index, delta: content, snapshot: choice.content } as const;
      events.push(growing(textEvent, "parsed", choice.content, choice.prefix.cut()));
    }
    const refusal = textMember(delta, "refusal", `${place}/delta`);
    if (refusal) {
      choice.refusal += refusal;
      events.push({ type: "refusal.delta", index, delta: refusal, snapshot: choice.refusal });
    }
  }

  #addTokens(
    events: ChatEvent<unknown>[],
    index: number,
    { contentTokens, refusalTokens }: ChoiceSoFar,
    logprobs: Members,
    place: string,
  ): void {
    const tokens = (name: string) =>
      listMember(logprobs, name, `${place}/logprobs`) as readonly TokenLogprob[];
    const content = tokens("content");
    if (content.length > 0) {
      for (const token of content) contentTokens.push(token);
      events.push(growingList({ type: "logprobs.content.delta", index, content } as const, contentTokens));
    }
    const refusal = tokens("refusal");
    if (refusal.length > 0) {
      for (const token of refusal) refusalTokens.push(token);
      events.push(growingList({ type: "logprobs.refusal.delta", index, refusal } as const, refusalTokens));
    }
  }

  async #addCalls(
    events: ChatEvent<unknown>[],
    index: number,
    choice: ChoiceSoFar,
    delta: Members,
    choicePlace: string,
  ): Promise<void> {
    for (const [position, piece] of objectsMember(delta, "tool_calls", `${choicePlace}/delta`).entries()) {
      const place = `${choicePlace}/delta/tool_calls/${position}`;
      const at = integerMember(piece, "index", place) ?? position;
      const made = objectMember(piece, "function", place);
      if (at !== choice.openCall) {
        await this.#finish(events, index, choice, false);
        choice.openCall = at;
      }
      const call = choice.calls.get(at) ?? new CallSoFar();
      choice.calls.set(at, call);
      if (made === undefined) {
        call.isFunction &&= piece["custom"] == null;
        continue;
      }
      call.name ||= textMember(made, "name", `${place}/function`) ?? "";
      const text = argumentsOf(made, `${place}/function`);
      call.arguments += text;
      call.prefix.feed(text);
      const argumentsEvent = {
        type: "tool_calls.function.arguments.delta",
        index: at,
        name: call.name,
        arguments_delta: text,
        arguments: call.arguments,
      } as const;
      events.push(growing(argumentsEvent, "parsed_arguments", call.arguments, call.prefix.cut()));
    }
  }

  /** Completes what is open: the text before tool calls, which is not a value; a call before the next one. */
  async #finish(
    events: ChatEvent<unknown>[],
    index: number,
    choice: ChoiceSoFar,
    reads = true,
  ): Promise<void> {
    const { content, refusal, openCall } = choice;
    if (!choice.isTextDone) {
      choice.isTextDone = true;
      if (content !== "") {
        const format = reads && refusal === "" ? this.#format : undefined;
        events.push({ type: "content.done", index, content, parsed: (await format?.read(content)) ?? null });
      }
      if (refusal !== "") events.push({ type: "refusal.done", index, refusal });
      const { contentTokens, refusalTokens } = choice;
      if (contentTokens.length > 0) {
        events.push({ type: "logprobs.content.done", index, content: [...contentTokens] });
      }
      if (refusalTokens.length > 0) {
        events.push({ type: "logprobs.refusal.done", index, refusal: [...refusalTokens] });
      }
    }
    const call = openCall === undefined ? undefined : choice.calls.get(openCall);
    choice.openCall = undefined;
    if (openCall === undefined || !call?.isFunction) return;
    const { name, arguments: text } = call;
    const doneEvent = {
      type: "tool_calls.function.arguments.done",
      index: openCall,
      name,
      arguments: text,
    } as const;
    // Not parsed here: a server may alternate between calls, and each turn ends one.
    const event = growing(doneEvent, "parsed_arguments", text, { end: text.length, tail: "" });
    events.push(Object.defineProperty(event, "parsed_arguments", { enumerable: true }));
  }
}

/** The text of a call's arguments; some servers write an object, which the core makes a text, too. */
function argumentsOf(made: Members, place: string): string {
  const given = made["arguments"];
  if (!isObject(given)) return textMember(made, "arguments", place) ?? "";
  try {
    return JSON.stringify(given);
  } catch {
    // It is nested too deep.
    throw new UnexpectedMember(`${place}/arguments`, given, "a string");
  }
}
