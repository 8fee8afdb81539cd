/** `client.messages`: helpers on top of the generated methods. */

import { CallSite } from "./failure";
import { operations } from "./generated/operations";
import { MessagesResource } from "./generated/resources";
import { MessageStream } from "./generated/streams";
import type {
  Message,
  MessageOutputConfig,
  MessageRequest,
  MessageStreamEvent,
  MessageTurn,
} from "./generated/types";
import { MessageEvents } from "./message-events";
import { ApiPromise } from "./promise";
import type { RequestOptions } from "./resource";
import type { Parsed, Schema } from "./standard";
import { formatOf, parseMessage, refuseStream } from "./structured";
import { messagesDialect } from "./tool-dialects";
import { loop, type Tool, type ToolLoopOptions, type ToolRun } from "./tools";

/** Parameters of `messages.parse`. */
export interface MessageParseParams<S extends Schema>
  extends Omit<MessageRequest, "output_config" | "output_format" | "stream"> {
  /**
   * Options of the answer; `format` is its schema: a zod 4 schema, another Standard Schema, or a JSON Schema.
   */
  output_config: Omit<MessageOutputConfig, "format"> & { format: S };
}

/** Parameters of `messages.runTools`. */
export interface MessageToolParams extends Omit<MessageRequest, "tools" | "stream"> {
  /** The functions, created with `tool`. */
  tools: readonly Tool[];
}

/** A message with a value. */
export interface ParsedMessage<T> extends Message {
  /** The value; null if the model refused or called tools. */
  parsed_output: T | null;
}

/** `client.messages`, with helpers. */
export class Messages extends MessagesResource {
  /**
   * Requests an answer that follows a schema, and returns it as a value: `parsed_output`, which is null if
   * the model refused or called tools.
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
   * const message = await new Client().messages.parse({
   *   model: "model-breeze",
   *   max_tokens: 256,
   *   messages: [{ role: "user", content: "A city of Norway, and how many live there." }],
   *   output_config: { format: City },
   * });
   * console.log(message.parsed_output.name);
   * ```
   */
  parse<S extends Schema>(
    params: MessageParseParams<S>,
    options?: RequestOptions,
  ): ApiPromise<ParsedMessage<Parsed<S>>> {
    const origin = {
      operation: { ...operations.create_message, name: "messages.parse" },
      site: new CallSite(this.parse),
    };
    return ApiPromise.of(
      (async () => {
        refuseStream(origin.operation.name, params);
        const format = formatOf(params.output_config?.format);
        const body = { ...params, output_config: { ...params.output_config, format: format.messages } };
        const message = await this.connection.send<Message>(origin.operation, [], body, options, origin.site);
        await parseMessage(message, format, origin);
        return message as ParsedMessage<Parsed<S>>;
      })(),
    );
  }

  /**
   * Opens a stream of events that can be read at once: `for await (const event of client.messages.stream(…))`.
   *
   * The events are those of the protocol, and after a piece of a block, by `type`: `text` (`text`, `snapshot`), `thinking`
   * (`thinking`, `snapshot`), `input_json` (`partial_json`, `snapshot`), `citation` (`citation`, `snapshot`) or `signature`
   * (`signature`). `content_block_stop` has the whole `content_block`, `message_stop` the whole `message`.
   *
   * Errors: those of `create`, raised when the stream is read.
   *
   * @example
   * ```js
   * import { Client } from "gatewright";
   *
   * const messages = [{ role: "user", content: "Reply with exactly: one two" }];
   * const stream = new Client().messages.stream({ model: "model-breeze", max_tokens: 64, messages });
   * console.log((await stream.finalMessage()).content);
   * ```
   */
  stream(params: Omit<MessageRequest, "stream">, options?: RequestOptions): MessageEvents {
    const operation = { ...operations.create_message, name: "messages.stream" };
    const site = new CallSite(this.stream);
    const body = { ...params, stream: true };
    const closing = new AbortController();
    return new MessageEvents(
      this.connection.send<MessageStream>(operation, [], body, options, site, MessageStream, closing.signal),
      closing,
    );
  }

  /**
   * Calls a model repeatedly, and the tools that it requests, until it answers without a call.
   *
   * The calls of a round run at the same time, and their results form one user turn. The model gets an
   * error of a tool, or arguments that do not fit, as `error: …`. A `tool_choice` that forces a call applies
   * to the first round only.
   *
   * Errors: `ToolLoopError` if there are too many rounds, or an answer is cut off in its calls, with the
   * turns in `error.messages`; those of `create`.
   *
   * @example
   * ```js
   * import { Client, tool } from "gatewright";
   *
   * const time = tool({ name: "time", description: "The time.", run: () => new Date().toISOString() });
   * const messages = [{ role: "user", content: "How late is it?" }];
   * const params = { model: "model-breeze", max_tokens: 256, messages, tools: [time] };
   * const run = await new Client().messages.runTools(params, { maxRounds: 3, onEvent: ({ type }) => console.log(type) });
   * console.log(run.text, run.rounds, run.messages.length);
   * ```
   */
  async runTools(
    params: MessageToolParams,
    options: ToolLoopOptions<MessageTurn, MessageStreamEvent> = {},
  ): Promise<ToolRun<MessageTurn, Message>> {
    const operation = { ...operations.create_message, name: "messages.runTools" };
    const site = new CallSite(this.runTools);
    const { onEvent, ...others } = options;
    return loop(messagesDialect(operation), params, others, site, async (body, callOptions) => {
      if (onEvent === undefined) return this.connection.send<Message>(operation, [], body, callOptions, site);
      const streamed = { ...body, stream: true };
      const stream = await this.connection.send<MessageStream>(
        operation,
        [],
        streamed,
        callOptions,
        site,
        MessageStream,
      );
      for await (const event of stream) await onEvent(event);
      return stream.finalMessage();
    });
  }
}
