/** `client.chat.completions`: helpers on top of the generated methods. */

import { ChatCompletionEvents, type ChatEvent } from "./chat-events";
import { CallSite } from "./failure";
import { operations } from "./generated/operations";
import { ChatCompletionsResource, ChatResource } from "./generated/resources";
import { ChatCompletionStream } from "./generated/streams";
import type {
  ChatChoice,
  ChatCompletion,
  ChatCompletionMessage,
  ChatCompletionRequest,
  ChatResponseFormat,
} from "./generated/types";
import type { Operation } from "./operation";
import { ApiPromise } from "./promise";
import type { RequestOptions } from "./resource";
import type { Parsed, Schema, StandardSchema } from "./standard";
import type { StreamClass } from "./stream";
import { type CallOrigin, formatOf, parseCompletion, refuseStream, wireFormat } from "./structured";
import { chatDialect } from "./tool-dialects";
import { type ConversationMessage, loop, type Tool, type ToolLoopOptions, type ToolRun } from "./tools";

/** Parameters of `chat.completions.create`, whose format may be a schema, too. */
export interface ChatCompletionParams extends Omit<ChatCompletionRequest, "response_format"> {
  /** Format of the response, or the schema that it follows. */
  response_format?: ChatResponseFormat | StandardSchema | null;
}

/** Parameters of `chat.completions.parse`. */
export interface ChatParseParams<S extends Schema>
  extends Omit<ChatCompletionRequest, "response_format" | "stream"> {
  /** The schema of the answer: a zod 4 schema, another Standard Schema, or a JSON Schema. */
  response_format: S;
}

/** Parameters of `chat.completions.stream`. */
export interface ChatStreamParams<S extends Schema>
  extends Omit<ChatCompletionRequest, "response_format" | "stream"> {
  /** The schema of the answer: a zod 4 schema, another Standard Schema, or a JSON Schema. */
  response_format?: S;
}

/** Parameters of `chat.completions.runTools`. */
export interface ChatToolParams extends Omit<ChatCompletionParams, "messages" | "tools" | "stream"> {
  /** The conversation to begin with. */
  messages: readonly ConversationMessage[];
  /** The functions, created with `tool`. */
  tools: readonly Tool[];
}

/** A chat completion with a value in each message. */
export interface ParsedChatCompletion<T> extends Omit<ChatCompletion, "choices"> {
  /** The choices, one per n. */
  choices: ParsedChatChoice<T>[];
}

/** A choice with a value in its message. */
export interface ParsedChatChoice<T> extends Omit<ChatChoice, "message"> {
  /** The assistant's message. */
  message: ParsedChatMessage<T>;
}

/** A message with a value. */
export interface ParsedChatMessage<T> extends ChatCompletionMessage {
  /** The value; null if the model refused or called tools. */
  parsed: T | null;
}

/** `client.chat.completions`, with helpers. */
export class ChatCompletions extends ChatCompletionsResource {
  /**
   * Like the generated method; `response_format` may be a schema, whose JSON Schema is sent. The answer is not parsed:
   * `parse` does that.
   */
  override create(
    params: ChatCompletionParams & { stream?: false | null },
    options?: RequestOptions,
  ): ApiPromise<ChatCompletion>;
  override create(
    params: ChatCompletionParams & { stream: true },
    options?: RequestOptions,
  ): ApiPromise<ChatCompletionStream>;
  override create(
    params: ChatCompletionParams,
    options?: RequestOptions,
  ): ApiPromise<ChatCompletion | ChatCompletionStream>;
  override create(
    params: ChatCompletionParams,
    options?: RequestOptions,
  ): ApiPromise<ChatCompletion | ChatCompletionStream> {
    return super.create(params as ChatCompletionRequest, options);
  }

  protected override send<T>(
    operation: Operation,
    path: readonly unknown[],
    params: ChatCompletionParams,
    options: RequestOptions | undefined,
    stream?: StreamClass,
  ): ApiPromise<T> {
    return super.send<T>(operation, path, onTheWire(params), options, stream);
  }

  /**
   * Requests an answer that follows a schema, and returns it as a value: `choices[0].message.parsed`, which
   * is null if the model refused or called tools.
   *
   * The schema is sent in its strict form: every property is required, and no other is allowed. A zod schema
   * (4.2 or later) or another Standard Schema also checks the answer; with a JSON Schema, the answer is
   * unchecked JSON.
   *
   * Errors: `StructuredOutputError` if the answer was cut off, is not JSON or does not fit, with the whole answer in
   * `error.answer`; TypeError for a schema that cannot be sent; those of `create`.
   *
   * @example
   * ```js
   * import { Client } from "gatewright";
   *
   * const City = { type: "object", properties: { name: { type: "string" }, population: { type: "integer" } } };
   * const completion = await new Client().chat.completions.parse({
   *   model: "model-sol",
   *   messages: [{ role: "user", content: "A city of Norway, and how many live there." }],
   *   response_format: City,
   * });
   * console.log(completion.choices[0].message.parsed.name);
   * ```
   */
  parse<S extends Schema>(
    params: ChatParseParams<S>,
    options?: RequestOptions,
  ): ApiPromise<ParsedChatCompletion<Parsed<S>>> {
    const origin = {
      operation: { ...operations.create_chat_completion, name: "chat.completions.parse" },
      site: new CallSite(this.parse),
    };
    return ApiPromise.of(
      (async () => {
        refuseStream(origin.operation.name, params);
        const format = formatOf(params.response_format);
        const body = { ...params, response_format: format.chat };
        const completion = await this.connection.send<ChatCompletion>(
          origin.operation,
          [],
          body,
          options,
          origin.site,
        );
        await parseCompletion(completion, format, origin);
        return completion as ParsedChatCompletion<Parsed<S>>;
      })(),
    );
  }

  /**
   * Opens a stream of events, each with the answer so far. Read it with `for await`. With a schema as
   * `response_format`, events also have the value so far, and the final completion has `parsed`.
   *
   * Errors: those of `parse`, raised when the stream is read.
   *
   * @example
   * ```js
   * import { Client } from "gatewright";
   *
   * const stream = new Client().chat.completions.stream({
   *   model: "model-sol",
   *   messages: [{ role: "user", content: "A city of Norway." }],
   *   response_format: { type: "object", properties: { name: { type: "string" } } },
   * });
   * for await (const event of stream) if (event.type === "content.delta") console.log(event.parsed);
   * console.log((await stream.finalChatCompletion()).choices[0].message.parsed);
   * ```
   */
  stream<S extends Schema>(
    params: ChatStreamParams<S>,
    options?: RequestOptions,
  ): ChatCompletionEvents<Parsed<S>> {
    const origin = {
      operation: { ...operations.create_chat_completion, name: "chat.completions.stream" },
      site: new CallSite(this.stream),
    };
    const { response_format: schema, ...rest } = params;
    const format = schema == null ? undefined : formatOf(schema);
    const body = { ...rest, ...(format !== undefined && { response_format: format.chat }), stream: true };
    const closing = new AbortController();
    const opened = this.#open(body, options, origin, closing.signal);
    return new ChatCompletionEvents(opened, format, origin, closing);
  }

  /**
   * Calls a model repeatedly, and the tools that it requests, until it answers without a call.
   *
   * The calls of a round run at the same time. The model gets an error of a tool, or arguments that do not
   * fit, as `error: …`. A `tool_choice` that forces a call applies to the first round only.
   *
   * Errors: `ToolLoopError` if there are too many rounds, or an answer is cut off in its calls, with the
   * conversation in `error.messages`; those of `create`.
   *
   * @example
   * ```js
   * import { Client, tool } from "gatewright";
   *
   * const time = tool({ name: "time", description: "The time.", run: () => new Date().toISOString() });
   * const run = await new Client().chat.completions.runTools(
   *   { model: "model-sol", messages: [{ role: "user", content: "How late is it?" }], tools: [time] },
   *   { maxRounds: 3, onMessage: ({ role, content }) => console.log(role, content) },
   * );
   * console.log(run.text, run.rounds, run.messages.length);
   * ```
   */
  async runTools(
    params: ChatToolParams,
    options: ToolLoopOptions<ConversationMessage, ChatEvent<never>> = {},
  ): Promise<ToolRun<ConversationMessage, ChatCompletion>> {
    const operation = { ...operations.create_chat_completion, name: "chat.completions.runTools" };
    const site = new CallSite(this.runTools);
    const dialect = chatDialect(operation);
    const { onEvent, ...others } = options;
    return loop(dialect, onTheWire(params), others, site, async (body, callOptions) => {
      if (onEvent === undefined)
        return this.connection.send<ChatCompletion>(operation, [], body, callOptions, site);
      const origin = { operation, site };
      const opened = this.#open({ ...body, stream: true }, callOptions, origin);
      const events = new ChatCompletionEvents<never>(opened, undefined, origin);
      for await (const event of events) await onEvent(event);
      return opened.then((stream) => stream.finalChatCompletion());
    });
  }

  #open(
    body: object,
    options: RequestOptions | undefined,
    { operation, site }: CallOrigin,
    closing?: AbortSignal,
  ): ApiPromise<ChatCompletionStream> {
    return this.connection.send<ChatCompletionStream>(
      operation,
      [],
      body,
      options,
      site,
      ChatCompletionStream,
      closing,
    );
  }
}

/** `client.chat`, with helpers. */
export class Chat extends ChatResource {
  override readonly completions: ChatCompletions = new ChatCompletions(this.connection);
}

function onTheWire(params: Pick<ChatCompletionParams, "response_format">): object {
  const format = params?.response_format;
  if (format == null) return params;
  const wire = wireFormat(format, "chat");
  return wire === format ? params : { ...params, response_format: wire };
}
