/** `client.native`: helpers on top of the generated methods. */

import { CallSite } from "./failure";
import { operations } from "./generated/operations";
import { type ListNativeModelsParams, NativeModelsResource, NativeResource } from "./generated/resources";
import { GenerateContentResponseStream } from "./generated/streams";
import type {
  GenerateContentRequest,
  GenerateContentResponse,
  NativeContent,
  NativeGenerationConfig,
  NativeModel,
  NativeModelList,
} from "./generated/types";
import { paged } from "./pages";
import { ApiPromise } from "./promise";
import type { RequestOptions } from "./resource";
import type { Parsed, Schema } from "./standard";
import { formatOf, parseContent } from "./structured";
import { nativeDialect } from "./tool-dialects";
import { loop, type Tool, type ToolLoopOptions, type ToolRun } from "./tools";

/** Parameters of `native.parse`. */
export interface ContentParseParams<S extends Schema>
  extends Omit<GenerateContentRequest, "generationConfig"> {
  /** The model. */
  model: string;
  /**
   * Settings; `responseJsonSchema` is the schema of the answer: a zod 4 schema, another Standard Schema, or a
   * JSON Schema.
   */
  generationConfig: Omit<NativeGenerationConfig, "responseJsonSchema" | "responseSchema"> & {
    responseJsonSchema: S;
  };
}

/** Parameters of `native.runTools`. */
export interface ContentToolParams extends Omit<GenerateContentRequest, "tools"> {
  /** The model. */
  model: string;
  /** The functions, created with `tool`. */
  tools: readonly Tool[];
}

/** A native answer with a value. */
export interface ParsedContent<T> extends GenerateContentResponse {
  /** The value of the first candidate; null if the model called functions. */
  parsed: T | null;
}

/**
 * A page of native models. `for await` continues with the models of the next pages; `for` yields those of
 * this page.
 */
export interface NativeModelPage extends NativeModelList, AsyncIterable<NativeModel> {}

/** `client.native.models`, with pages that continue. */
export class NativeModels extends NativeModelsResource {
  /**
   * Lists the models. `for await` over the page, or over the promise of it, continues with the next pages;
   * `for` yields the models of this page.
   *
   * Errors: those of the generated method; `DecodeError` if a page leads back to an earlier one.
   *
   * @example
   * ```js
   * import { Client } from "gatewright";
   *
   * for await (const model of new Client().native.models.list({ pageSize: 10 })) console.log(model.name);
   * ```
   */
  override list(params: ListNativeModelsParams = {}, options?: RequestOptions): ApiPromise<NativeModelPage> {
    const operation = operations.list_native_models;
    const site = new CallSite(this.list);
    return paged<NativeModelList, NativeModel, ListNativeModelsParams>({
      operation,
      site,
      fetch: (more) =>
        this.connection.send<NativeModelList>(operation, [], { ...params, ...more }, options, site),
      elements: "models",
      end: "nextPageToken",
      // The mapping of protocol buffers writes nothing as an empty text.
      goesOn: ({ nextPageToken }) => Boolean(nextPageToken),
      after: (pageToken) => ({ pageToken }),
    });
  }
}

/** `client.native`, with helpers. */
export class Native extends NativeResource {
  override readonly models: NativeModels = new NativeModels(this.connection);

  /**
   * Requests an answer that follows a schema, and returns it as a value: `parsed`, from the first candidate,
   * which is null if the model called functions.
   *
   * The schema is sent in its strict form: every property is required, and no other is allowed. A zod schema
   * (4.2 or later) or another Standard Schema also checks the answer; with a JSON Schema, the answer is
   * unchecked JSON.
   *
   * Errors: `StructuredOutputError` if the answer was cut off or blocked, is not JSON or does not fit, with the whole answer in
   * `error.answer`; TypeError for a schema that cannot be sent; those of `generateContent`.
   *
   * @example
   * ```js
   * import { Client } from "gatewright";
   *
   * const answer = await new Client().native.parse({
   *   model: "model-terra",
   *   contents: [{ parts: [{ text: "A city of Norway." }] }],
   *   generationConfig: { responseJsonSchema: { type: "object", properties: { name: { type: "string" } } } },
   * });
   * console.log(answer.parsed.name);
   * ```
   */
  parse<S extends Schema>(
    params: ContentParseParams<S>,
    options?: RequestOptions,
  ): ApiPromise<ParsedContent<Parsed<S>>> {
    const origin = {
      operation: { ...operations.generate_content, name: "native.parse" },
      site: new CallSite(this.parse),
    };
    return ApiPromise.of(
      (async () => {
        const format = formatOf(params.generationConfig?.responseJsonSchema);
        if (format.native === undefined)
          throw new TypeError(`${origin.operation.name}: responseJsonSchema must be a schema`);
        const generationConfig = { ...params.generationConfig, ...format.native };
        const answer = await this.connection.send<GenerateContentResponse>(
          origin.operation,
          [],
          { ...params, generationConfig },
          options,
          origin.site,
        );
        await parseContent(answer, format, origin);
        return answer as ParsedContent<Parsed<S>>;
      })(),
    );
  }

  /**
   * Calls a model repeatedly, and the tools that it requests, until it answers without a call. The first
   * candidate counts.
   *
   * The calls of a round run at the same time, and their results form one user content. The model gets
   * an error of a tool, or arguments that do not fit, as `error: …`. A `functionCallingConfig` that forces a
   * call applies to the first round only.
   *
   * Errors: `ToolLoopError` if there are too many rounds, or an answer has no candidates or is cut off in its
   * calls, with the contents in `error.messages`; those of `generateContent`.
   *
   * @example
   * ```js
   * import { Client, tool } from "gatewright";
   *
   * const time = tool({ name: "time", description: "The time.", run: () => new Date().toISOString() });
   * const contents = [{ parts: [{ text: "How late is it?" }] }];
   * const run = await new Client().native.runTools({ model: "model-terra", contents, tools: [time] });
   * console.log(run.text, run.rounds, run.messages.length);
   * ```
   */
  async runTools(
    params: ContentToolParams,
    options: ToolLoopOptions<NativeContent, GenerateContentResponse> = {},
  ): Promise<ToolRun<NativeContent, GenerateContentResponse>> {
    const name = "native.runTools";
    const operation = { ...operations.generate_content, name };
    const streamed = { ...operations.stream_generate_content, name };
    const site = new CallSite(this.runTools);
    const { onEvent, ...others } = options;
    return loop(nativeDialect(operation), params, others, site, async (body, callOptions) => {
      if (onEvent === undefined)
        return this.connection.send<GenerateContentResponse>(operation, [], body, callOptions, site);
      const stream = await this.connection.send<GenerateContentResponseStream>(
        streamed,
        [],
        body,
        callOptions,
        site,
        GenerateContentResponseStream,
      );
      for await (const event of stream) await onEvent(event);
      return stream.finalResponse();
    });
  }
}
