/** `client.native`: helpers on top of the generated methods. */

import { CallSite } from "./failure";
import { operations } from "./generated/operations";
import { type ListNativeModelsParams, NativeModelsResource, NativeResource } from "./generated/resources";
import type {
  GenerateContentRequest,
  GenerateContentResponse,
  NativeGenerationConfig,
  NativeModel,
  NativeModelList,
} from "./generated/types";
import { paged } from "./pages";
import { ApiPromise } from "./promise";
import type { RequestOptions } from "./resource";
import type { Parsed, Schema } from "./standard";
import { formatOf, parseContent } from "./structured";

/** Parameters of `native.parse`. */
export interface ContentParseParams<S extends Schema>
  extends Omit<GenerateContentRequest, "generationConfig"> {
  /** The model. */
  model: string;
  /** Settings; what the answer has to be, in `responseJsonSchema`: a zod 4 schema, another one of this kind, or a JSON Schema. */
  generationConfig: Omit<NativeGenerationConfig, "responseJsonSchema" | "responseSchema"> & {
    responseJsonSchema: S;
  };
}

/** A native answer with a value. */
export interface ParsedContent<T> extends GenerateContentResponse {
  /** The value of the first candidate; null if the model called functions. */
  parsed: T | null;
}

/** A page of native models. `for await` goes on with the models of the next pages; `for` gives those of this page. */
export interface NativeModelPage extends NativeModelList, AsyncIterable<NativeModel> {}

/** `client.native.models`, with pages that go on. */
export class NativeModels extends NativeModelsResource {
  /**
   * Lists the models. `for await` over the page, or over the promise of it, goes on with the next pages; `for` gives the models
   * of this page.
   *
   * Errors: those of the generated method; `DecodeError` if a page names itself as the next one.
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
      elements: ({ models }) => models,
      end: ({ nextPageToken }) => nextPageToken,
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
   * Asks for an answer that follows a schema, and gives it as a value: `parsed`, that of the first candidate, which is null if
   * the model called functions.
   *
   * The schema is sent in its strict form: every property is required, and no other is allowed. A zod schema (4.2 or later), or
   * another one of the Standard Schema kind, also checks the answer; of a JSON Schema, the answer is JSON.
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
    const asked = {
      operation: { ...operations.generate_content, name: "native.parse" },
      site: new CallSite(this.parse),
    };
    return ApiPromise.of(
      (async () => {
        const format = formatOf(params.generationConfig?.responseJsonSchema);
        if (format.native === undefined)
          throw new TypeError(`${asked.operation.name}: responseJsonSchema must be a schema`);
        const generationConfig = { ...params.generationConfig, ...format.native };
        const answer = await this.connection.send<GenerateContentResponse>(
          asked.operation,
          [],
          { ...params, generationConfig },
          options,
          asked.site,
        );
        await parseContent(answer, format, asked);
        return answer as ParsedContent<Parsed<S>>;
      })(),
    );
  }
}
