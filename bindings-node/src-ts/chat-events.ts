/** A streamed chat completion as it grows, event by event: texts so far, tool calls, values of a schema. */

import type { ParsedChatCompletion } from "./chat";
import type { ChatCompletionStream } from "./generated/streams";
import type { ChatCompletionChunk, ChatDelta } from "./generated/types";
import { type Cut, JsonPrefix, valueOfCut } from "./json-prefix";
import { ApiPromise } from "./promise";
import { Reader } from "./reader";
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
   * first read. Beyond 1 MiB of text, it is null.
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
  | ToolArgumentsDeltaEvent
  | ToolArgumentsDoneEvent;

/**
 * The events of a chat completion: `for await (const event of stream)`, once.
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
export class ChatCompletionEvents<T> extends Reader<ChatCompletionStream, ChatEvent<T>> {
  readonly #format: Format | undefined;
  readonly #origin: CallOrigin;

  /** Created by the client. */
  constructor(opened: PromiseLike<ChatCompletionStream>, format: Format | undefined, origin: CallOrigin) {
    super(opened);
    this.#format = format;
    this.#origin = origin;
  }

  /** The events. Errors: those of the call, and of `finalChatCompletion`; TypeError for another loop. */
  async *[Symbol.asyncIterator](): AsyncGenerator<ChatEvent<T>, void, undefined> {
    const answer = new Answer(this.#format);
    const events: ChatEvent<unknown>[] = [];
    for await (const chunk of await this.opened) {
      const error = await answer.take(chunk, events).catch(failed);
      yield* events.splice(0) as ChatEvent<T>[];
      if (error !== undefined) await this.#fail(error);
    }
    const error = await answer.end(events).catch(failed);
    yield* events as ChatEvent<T>[];
    if (error !== undefined) await this.#fail(error);
  }

  /** Errors: that of the whole answer, which explains what is wrong; otherwise this one. */
  async #fail(error: Error): Promise<void> {
    if (error instanceof Unfit || error instanceof CutOffText) await this.finalChatCompletion();
    throw error;
  }

  /**
   * Reads to the end; returns the whole answer, with `parsed` in its messages if the request has a format. A
   * loop still gets every event.
   *
   * Errors: `StructuredOutputError` if a choice was cut off, or its text is not a value of the schema; those
   * of the stream.
   */
  finalChatCompletion(): ApiPromise<ParsedChatCompletion<T>> {
    return ApiPromise.of(this.#final());
  }

  async #final(): Promise<ParsedChatCompletion<T>> {
    const completion = await (await this.opened).finalChatCompletion();
    if (this.#format !== undefined) await parseCompletion(completion, this.#format, this.#origin);
    return completion as ParsedChatCompletion<T>;
  }

  /**
   * Reads to the end; returns the text of the first choice, null if it has none. Errors: those of the
   * stream.
   */
  async finalContent(): Promise<string | null> {
    const { choices } = await (await this.opened).finalChatCompletion();
    return choices[0]?.message.content ?? null;
  }
}

/** An error as a value, so that the events before it are yielded first. */
const failed = (error: Error): Error => error;

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

  /** Adds the events of a chunk. Errors: `Unfit` or `CutOffText` if a text is not the requested value. */
  async take(chunk: ChatCompletionChunk, events: ChatEvent<unknown>[]): Promise<void> {
    events.push({ type: "chunk", chunk });
    for (const { index = 0, delta, finish_reason: reason } of chunk.choices ?? []) {
      const choice = this.#choices.get(index) ?? new ChoiceSoFar();
      this.#choices.set(index, choice);
      if (delta != null) await this.#add(events, index, choice, delta);
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

  async #add(
    events: ChatEvent<unknown>[],
    index: number,
    choice: ChoiceSoFar,
    { content, refusal, tool_calls: calls }: ChatDelta,
  ): Promise<void> {
    if (content) {
      choice.content += content;
      if (this.#format !== undefined) choice.prefix.feed(content);
      const textEvent = { type: "content.delta", index, delta: content, snapshot: choice.content } as const;
      events.push(growing(textEvent, "parsed", choice.content, choice.prefix.cut()));
    }
    if (refusal) {
      choice.refusal += refusal;
      events.push({ type: "refusal.delta", index, delta: refusal, snapshot: choice.refusal });
    }
    for (const [position, { index: at = position, function: made, custom }] of (calls ?? []).entries()) {
      if (at !== choice.openCall) {
        await this.#finish(events, index, choice, false);
        choice.openCall = at;
      }
      const call = choice.calls.get(at) ?? new CallSoFar();
      choice.calls.set(at, call);
      if (made == null) {
        call.isFunction &&= custom == null;
        continue;
      }
      call.name ||= made.name ?? "";
      const delta = made.arguments ?? "";
      call.arguments += delta;
      call.prefix.feed(delta);
      const argumentsEvent = {
        type: "tool_calls.function.arguments.delta",
        index: at,
        name: call.name,
        arguments_delta: delta,
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
    }
    const call = openCall === undefined ? undefined : choice.calls.get(openCall);
    choice.openCall = undefined;
    if (openCall === undefined || !call?.isFunction) return;
    const { name, arguments: text } = call;
    const parsed_arguments = valueOfCut(text, { end: text.length, tail: "" });
    events.push({
      type: "tool_calls.function.arguments.done",
      index: openCall,
      name,
      arguments: text,
      parsed_arguments,
    });
  }
}

/** Adds the value of a text so far to an event, parsed on first access. */
export function growing<E extends object, N extends string>(
  event: E,
  name: N,
  text: string,
  cut: Cut,
): E & { readonly [name in N]: unknown } {
  const get = () => {
    const value = valueOfCut(text, cut);
    Object.defineProperty(event, name, { value, configurable: true });
    return value;
  };
  return Object.defineProperty(event, name, { get, configurable: true }) as E & {
    readonly [name in N]: unknown;
  };
}
