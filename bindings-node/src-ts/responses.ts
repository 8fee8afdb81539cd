/** `client.responses`: helpers on top of the generated methods. */

import { CallSite } from "./failure";
import { operations } from "./generated/operations";
import { ResponsesResource } from "./generated/resources";
import { ResponseStream } from "./generated/streams";
import type { Response, ResponseRequest, ResponseTextFormat, ResponseTextOptions } from "./generated/types";
import { InputItems } from "./input-items";
import type { Operation } from "./operation";
import { ApiPromise } from "./promise";
import type { RequestOptions } from "./resource";
import { type ResponseEvent, ResponseEvents } from "./response-events";
import type { Parsed, Schema, StandardSchema } from "./standard";
import type { StreamClass } from "./stream";
import { type CallOrigin, formatOf, parseResponse, refuseStream, wireFormat } from "./structured";
import { responsesDialect } from "./tool-dialects";
import { type ConversationItem, loop, type Tool, type ToolLoopOptions, type ToolRun } from "./tools";

/** Options of the text of a response, whose format may be a schema. */
export interface SchemaTextOptions<F> extends Omit<ResponseTextOptions, "format"> {
  /** Format of the response, or the schema that it follows. */
  format: F;
}

/** Parameters of `responses.create`, whose format may be a schema, too. */
export interface ResponseParams extends Omit<ResponseRequest, "text"> {
  /** Options of the text of the response. */
  text?: ResponseTextOptions | SchemaTextOptions<ResponseTextFormat | StandardSchema> | null;
}

/** Parameters of `responses.parse`. */
export interface ResponseParseParams<S extends Schema> extends Omit<ResponseRequest, "text" | "stream"> {
  /**
   * Options of the answer; `format` is its schema: a zod 4 schema, another Standard Schema, or a JSON Schema.
   */
  text: SchemaTextOptions<S>;
}

/** Parameters of `responses.stream`. */
export interface ResponseStreamParams<S extends Schema> extends Omit<ResponseRequest, "text" | "stream"> {
  /** Options of the text; `format` may be a schema, as in `parse`. */
  text?: Partial<SchemaTextOptions<S>>;
}

/** Parameters of `responses.runTools`. */
export interface ResponseToolParams extends Omit<ResponseParams, "input" | "tools" | "stream"> {
  /** The conversation to begin with: a text, or items. */
  input: string | readonly ConversationItem[];
  /** The functions, created with `tool`. */
  tools: readonly Tool[];
}

/** A response with a value. */
export interface ParsedResponse<T> extends Response {
  /** The value of the last message; null if the model refused or called tools. */
  output_parsed: T | null;
  /** Why the model refused; null if it did not. */
  refusal: string | null;
}

/** `client.responses`, with helpers. */
export class Responses extends ResponsesResource {
  override readonly inputItems: InputItems = new InputItems(this.connection);

  /**
   * Like the generated method; `text.format` may be a schema, whose JSON Schema is sent. The answer is not parsed:
   * `parse` does that.
   */
  override create(
    params: ResponseParams & { stream?: false | null },
    options?: RequestOptions,
  ): ApiPromise<Response>;
  override create(
    params: ResponseParams & { stream: true },
    options?: RequestOptions,
  ): ApiPromise<ResponseStream>;
  override create(params: ResponseParams, options?: RequestOptions): ApiPromise<Response | ResponseStream>;
  override create(params: ResponseParams, options?: RequestOptions): ApiPromise<Response | ResponseStream> {
    return super.create(params as ResponseRequest, options);
  }

  protected override send<T>(
    operation: Operation,
    path: readonly unknown[],
    params: object | null | undefined,
    options: RequestOptions | undefined,
    stream?: StreamClass,
  ): ApiPromise<T> {
    return super.send<T>(operation, path, onTheWire(params), options, stream);
  }

  /**
   * Requests an answer that follows a schema, and returns it as a value: `output_parsed`, which is null if
   * the model refused or called tools.
   *
   * The schema is sent in its strict form: every property is required, and no other is allowed. A zod schema
   * (4.2 or later) or another Standard Schema also checks the answer; with a JSON Schema, the answer is
   * unchecked JSON.
   *
   * Errors: `StructuredOutputError` if the answer failed, was cut off, is not JSON or does not fit, with the whole answer
   * in `error.answer`; TypeError for a schema that cannot be sent; those of `create`.
   *
   * @example
   * ```js
   * import { Client } from "gatewright";
   *
   * const City = { type: "object", properties: { name: { type: "string" }, population: { type: "integer" } } };
   * const response = await new Client().responses.parse({
   *   model: "model-sol",
   *   input: "A city of Norway, and how many live there.",
   *   text: { format: City },
   * });
   * console.log(response.output_parsed.name);
   * ```
   */
  parse<S extends Schema>(
    params: ResponseParseParams<S>,
    options?: RequestOptions,
  ): ApiPromise<ParsedResponse<Parsed<S>>> {
    const origin = {
      operation: { ...operations.create_response, name: "responses.parse" },
      site: new CallSite(this.parse),
    };
    return ApiPromise.of(
      (async () => {
        refuseStream(origin.operation.name, params);
        const format = formatOf(params.text?.format);
        const body = { ...params, text: { ...params.text, format: format.responses } };
        const response = await this.connection.send<Response>(
          origin.operation,
          [],
          body,
          options,
          origin.site,
        );
        await parseResponse(response, format, origin);
        return response as ParsedResponse<Parsed<S>>;
      })(),
    );
  }

  /**
   * Opens a stream of events, each with the text so far. Read it with `for await`. With a schema as
   * `text.format`, events also have the value so far, and the final response has `output_parsed`.
   *
   * Errors: those of `parse`, raised when the stream is read.
   *
   * @example
   * ```js
   * import { Client } from "gatewright";
   *
   * const stream = new Client().responses.stream({ model: "model-sol", input: "Reply with exactly: one two" });
   * console.log((await stream.finalResponse()).output_text);
   * ```
   */
  stream<S extends Schema>(
    params: ResponseStreamParams<S>,
    options?: RequestOptions,
  ): ResponseEvents<Parsed<S>> {
    const origin = {
      operation: { ...operations.create_response, name: "responses.stream" },
      site: new CallSite(this.stream),
    };
    const schema = params.text?.format;
    const format = schema == null ? undefined : formatOf(schema);
    const text = format === undefined ? params.text : { ...params.text, format: format.responses };
    const closing = new AbortController();
    const opened = this.#open({ ...params, text, stream: true }, options, origin, closing.signal);
    return new ResponseEvents(opened, format, origin, closing);
  }

  /**
   * Calls a model repeatedly, and the tools that it requests, until it answers without a call.
   *
   * The calls of a round run at the same time. The model gets an error of a tool, or arguments that do not
   * fit, as `error: …`. A `tool_choice` that forces a call applies to the first round only.
   *
   * Errors: `ToolLoopError` if there are too many rounds, or an answer fails or is cut off in its calls, with
   * the items in `error.messages`; those of `create`.
   *
   * @example
   * ```js
   * import { Client, tool } from "gatewright";
   *
   * const time = tool({ name: "time", description: "The time.", run: () => new Date().toISOString() });
   * const run = await new Client().responses.runTools({ model: "model-sol", input: "How late is it?", tools: [time] });
   * console.log(run.text, run.rounds, run.messages.length);
   * ```
   */
  async runTools(
    params: ResponseToolParams,
    options: ToolLoopOptions<ConversationItem, ResponseEvent> = {},
  ): Promise<ToolRun<ConversationItem, Response>> {
    const operation = { ...operations.create_response, name: "responses.runTools" };
    const site = new CallSite(this.runTools);
    const dialect = responsesDialect(operation);
    const { onEvent, ...others } = options;
    return loop(dialect, onTheWire(params) ?? {}, others, site, async (body, callOptions) => {
      if (onEvent === undefined)
        return this.connection.send<Response>(operation, [], body, callOptions, site);
      const origin = { operation, site };
      const opened = this.#open({ ...body, stream: true }, callOptions, origin);
      const events = new ResponseEvents(opened, undefined, origin);
      for await (const event of events) await onEvent(event);
      return opened.then((stream) => stream.finalResponse());
    });
  }

  #open(
    body: object,
    options: RequestOptions | undefined,
    { operation, site }: CallOrigin,
    closing?: AbortSignal,
  ): ApiPromise<ResponseStream> {
    return this.connection.send<ResponseStream>(operation, [], body, options, site, ResponseStream, closing);
  }
}

function onTheWire(params: object | null | undefined): object | null | undefined {
  const { text } = (params ?? {}) as ResponseParams;
  if (text?.format == null) return params;
  const wire = wireFormat(text.format, "responses");
  return wire === text.format ? params : { ...params, text: { ...text, format: wire } };
}
