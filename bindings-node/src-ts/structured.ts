/** Structured output: from a schema to the format that is sent, and from the answer to a value. */

import { cutOffCode } from "./cut-off";
import { type CallSite, failureOf } from "./failure";
import type { StructuredOutputError } from "./generated/errors";
import type {
  ChatCompletion,
  ChatResponseFormat,
  GenerateContentResponse,
  Message,
  MessageOutputFormat,
  NativeGenerationConfig,
  Response,
  ResponseTextFormat,
} from "./generated/types";
import { type Members, objectAt, objectMember, objectsMember, readingError, textMember } from "./members";
import type { Operation } from "./operation";
import { responseOf } from "./response";
import {
  firstProblem,
  isStandard,
  type JsonSchema,
  jsonSchemaOf,
  type Schema,
  type StandardSchema,
} from "./standard";
import { strictSchema } from "./strict";

/** Maximum number of characters of an answer that an error shows. */
const MAX_SHOWN_LENGTH = 200;
/** Maximum number of characters of a format's name. */
const MAX_NAME_LENGTH = 64;

/** Formats in their wire form, in chat or in responses. */
const ON_THE_WIRE: readonly unknown[] = ["json_schema", "json_object", "text"];

const ADVICE: ReadonlyMap<string, string> = new Map([
  [
    "length",
    "the answer was cut off: raise max_tokens, max_completion_tokens, max_output_tokens or maxOutputTokens",
  ],
  ["content_filter", "the provider's content filter cut the answer off: change the prompt or the model"],
]);

/** The format of an answer: how it is requested, and how it is parsed. */
export interface Format {
  /** Name of the format on the wire. */
  readonly name: string;
  /** `response_format` of chat. */
  readonly chat: ChatResponseFormat;
  /** `text.format` of responses. */
  readonly responses: ResponseTextFormat;
  /** `output_config.format` of messages. */
  readonly messages: MessageOutputFormat;
  /** Members of `generationConfig` of native; undefined if the format is as it is on the wire of another protocol. */
  readonly native: Pick<NativeGenerationConfig, "responseMimeType" | "responseJsonSchema"> | undefined;
  /** The value of a text. Errors: `Unfit`. */
  read(text: string): unknown;
}

/** Why a text is not a value of a format: `$.path: reason`. */
export class Unfit extends Error {
  constructor(
    readonly code: "invalid_json" | "mismatch",
    readonly path: string,
    reason: string,
    options?: ErrorOptions,
  ) {
    super(`${path}: ${reason}`, options);
  }
}

/** A schema's formats are the same in every call, and take a while to make. */
const known = new WeakMap<object, Format>();

/** The format of a schema, or of a format in its wire form. Errors: TypeError. */
export function formatOf(schema: Schema): Format {
  if (isStandard(schema)) {
    const format = known.get(schema) ?? standardFormat(schema);
    known.set(schema, format);
    return format;
  }
  if (typeof schema !== "object" || schema === null) {
    throw new TypeError(`${String(schema)} is no schema: give one of zod, or a JSON Schema`);
  }
  return isOnTheWire(schema) ? asGiven(schema) : strictFormat("answer", schema, parsedJson);
}

/** The format passed to `create`, in its wire form. Errors: TypeError. */
export function wireFormat(given: unknown, protocol: "chat" | "responses"): unknown {
  return isStandard(given) ? formatOf(given)[protocol] : given;
}

/** A name that the protocols allow: other characters become `_`, at most 64. */
export function formatName(name: string): string {
  return (
    Array.from(name, (one) => (/[A-Za-z0-9_-]/.test(one) ? one : "_"))
      .slice(0, MAX_NAME_LENGTH)
      .join("") || "answer"
  );
}

function standardFormat(schema: StandardSchema): Format {
  const document = jsonSchemaOf(schema);
  const { title } = document;
  return strictFormat(formatName(typeof title === "string" ? title : ""), document, async (text) => {
    const validated = await schema["~standard"].validate(parsedJson(text));
    if (validated.issues !== undefined) {
      const { path, message } = firstProblem(validated.issues);
      throw new Unfit("mismatch", path, message);
    }
    return validated.value;
  });
}

function strictFormat(name: string, document: JsonSchema, read: Format["read"]): Format {
  const schema = strictSchema(document);
  const named = { name, schema, strict: true };
  return {
    name,
    chat: { type: "json_schema", json_schema: named },
    responses: { type: "json_schema", ...named },
    messages: { type: "json_schema", schema },
    native: { responseMimeType: "application/json", responseJsonSchema: schema },
    read,
  };
}

function isOnTheWire(schema: JsonSchema): boolean {
  return ON_THE_WIRE.includes(schema["type"]);
}

function asGiven(format: JsonSchema): Format {
  const wire = format as never;
  const read = format["type"] === "text" ? (text: string) => text : parsedJson;
  return { name: "answer", chat: wire, responses: wire, messages: wire, native: undefined, read };
}

function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new Unfit("invalid_json", "$", `invalid JSON: ${(cause as Error).message}`, { cause });
  }
}

/** Errors: TypeError; the value of an answer is there at its end. */
export function refuseStream(method: string, params: object): void {
  if ((params as { stream?: unknown }).stream !== true) return;
  throw new TypeError(
    `${method}: the answer is parsed as a whole; leave out stream, or use the method stream`,
  );
}

/** The call that an answer belongs to, for its errors. */
export interface CallOrigin {
  /** Under the name of the method that was called. */
  readonly operation: Operation;
  readonly site: CallSite;
}

/**
 * Adds `parsed` to each message. Not enumerable: the message goes back into a conversation as it arrived. Errors:
 * `StructuredOutputError` if a choice was cut off, or its text is not a value of the schema; `DecodeError`.
 */
export function parseCompletion(
  completion: ChatCompletion,
  format: Format,
  origin: CallOrigin,
): Promise<void> {
  return reading(completion, origin, async () => {
    for (const [position, choice] of objectsMember(completion, "choices", "").entries()) {
      const place = `/choices/${position}`;
      const message = objectAt(choice["message"], `${place}/message`);
      const text = textMember(message, "content", `${place}/message`);
      refuseCutOff(completion, textMember(choice, "finish_reason", place), text, origin);
      const calls = objectsMember(message, "tool_calls", `${place}/message`);
      // Beside calls of tools, a text is no answer yet.
      const none = message["refusal"] != null || calls.length > 0 || message["function_call"] != null;
      add(message, "parsed", none ? null : await readValue(completion, text ?? "", format, origin));
    }
  });
}

/**
 * Adds `output_parsed`, the value of the last message, and `refusal`. Errors: `StructuredOutputError` if it failed or was
 * cut off, or its text is not a value of the schema; `DecodeError`.
 */
export function parseResponse(response: Response, format: Format, origin: CallOrigin): Promise<void> {
  return reading(response, origin, async () => {
    const items = objectsMember(response, "output", "");
    const { text, refusal } = lastMessage(items);
    if (response.status === "incomplete") {
      const reason = objectMember(response, "incomplete_details", "")?.["reason"];
      refuseCutOff(response, cutOffCode(reason) ?? "incomplete", text, origin);
    }
    if (response.status === "failed") {
      const error = objectMember(response, "error", "") ?? {};
      const cause = textMember(error, "message", "/error") ?? "the gateway does not say why";
      throw unfit(response, { code: "failed", message: `the answer failed: ${cause}` }, origin);
    }
    // Beside calls of tools, a text is no answer yet.
    const calls = items.some(({ type }) => type === "function_call" || type === "custom_tool_call");
    const none = text === undefined || refusal !== undefined || calls;
    add(response, "output_parsed", none ? null : await readValue(response, text, format, origin));
    add(response, "refusal", refusal ?? null);
  });
}

/**
 * Adds `parsed_output`. Errors: `StructuredOutputError` if it was cut off, or its text is not a value of the
 * schema; `DecodeError`.
 */
export function parseMessage(message: Message, format: Format, origin: CallOrigin): Promise<void> {
  return reading(message, origin, async () => {
    const blocks = objectsMember(message, "content", "");
    const text = joined(blocks, "/content", ({ type }) => type === "text");
    refuseCutOff(message, cutOffCode(message.stop_reason), text, origin);
    // Beside calls of tools, a text is no answer yet, and the text of a refusal never is.
    const none = message.stop_reason === "refusal" || blocks.some(({ type }) => type === "tool_use");
    add(message, "parsed_output", none ? null : await readValue(message, text, format, origin));
  });
}

/**
 * Adds `parsed`, the value of the first candidate. Errors: `StructuredOutputError` if it was cut off, the prompt was blocked,
 * or the text is not a value of the schema; `DecodeError`.
 */
export function parseContent(
  response: GenerateContentResponse,
  format: Format,
  origin: CallOrigin,
): Promise<void> {
  return reading(response, origin, async () => {
    const [candidate] = objectsMember(response, "candidates", "");
    const feedback = objectMember(response, "promptFeedback", "");
    const isBlocked = candidate === undefined && feedback?.["blockReason"] != null;
    const content = objectMember(candidate ?? {}, "content", "/candidates/0") ?? {};
    const parts = objectsMember(content, "parts", "/candidates/0/content");
    const text = joined(parts, "/candidates/0/content/parts", ({ thought }) => thought !== true);
    const reason = isBlocked ? "content_filter" : cutOffCode(candidate?.["finishReason"]);
    refuseCutOff(response, reason, text, origin);
    // Beside calls of functions, a text is no answer yet.
    const none = parts.some(({ functionCall }) => functionCall != null);
    add(response, "parsed", none ? null : await readValue(response, text, format, origin));
  });
}

/** Reads an answer. Errors: those of `read`; `DecodeError` if a member has a type that it cannot read. */
async function reading(
  answer: object,
  { operation, site }: CallOrigin,
  read: () => Promise<void>,
): Promise<void> {
  try {
    await read();
  } catch (error) {
    const { id, name: method } = operation;
    const response = responseOf(answer);
    throw readingError(error, {
      what: "the response",
      document: answer,
      operation: id,
      method,
      site,
      response,
    });
  }
}

/** The texts of those of the parts that count. */
function joined(parts: readonly Members[], place: string, counts: (part: Members) => boolean): string {
  const texts = parts.map((part, at) =>
    counts(part) ? textMember(part, "text", `${place}/${at}`) : undefined,
  );
  return texts.map((text) => text ?? "").join("");
}

/** Text and refusal of the last message; `undefined` for each that is missing. */
function lastMessage(items: readonly Members[]): { text: string | undefined; refusal: string | undefined } {
  const at = items.map(({ type }) => type).lastIndexOf("message");
  const parts = objectsMember(items[at] ?? {}, "content", `/output/${at}`);
  const joined = (type: string, member: "text" | "refusal") => {
    const texts: string[] = [];
    for (const [index, part] of parts.entries()) {
      if (part["type"] === type) texts.push(textMember(part, member, `/output/${at}/content/${index}`) ?? "");
    }
    return texts.length === 0 ? undefined : texts.join("");
  };
  return { text: joined("output_text", "text"), refusal: joined("refusal", "refusal") };
}

function add(holder: object, name: string, value: unknown): void {
  Object.defineProperty(holder, name, { value, configurable: true, writable: true });
}

function refuseCutOff(
  answer: object,
  reason: string | undefined,
  text: string | undefined,
  origin: CallOrigin,
): void {
  if (reason === undefined) return;
  const advice = ADVICE.get(reason);
  if (advice !== undefined) {
    throw unfit(answer, { code: reason, message: `${advice} (reason: ${reason})${beginning(text)}` }, origin);
  }
  if (reason === "incomplete") {
    const message = `the answer is incomplete; the gateway does not say why${beginning(text)}`;
    throw unfit(answer, { code: reason, message }, origin);
  }
}

async function readValue(answer: object, text: string, format: Format, origin: CallOrigin): Promise<unknown> {
  try {
    return await format.read(text);
  } catch (error) {
    if (!(error instanceof Unfit)) throw error;
    const { code, path: param, cause } = error;
    const message = `the answer is no ${format.name}: ${error.message}${beginning(text)}`;
    throw unfit(answer, { code, param, message }, origin, cause);
  }
}

function unfit(
  answer: object,
  { code, param, message }: { code: string; param?: string; message: string },
  { operation, site }: CallOrigin,
  cause?: unknown,
): StructuredOutputError {
  const { status, requestId, attempts } = responseOf(answer);
  return failureOf(
    {
      kind: "structured_output",
      code,
      param,
      message: `${operation.name}: ${message}`,
      operation: operation.id,
      status,
      requestId,
      attempts,
      answer,
      cause,
    },
    site,
  ) as StructuredOutputError;
}

function beginning(text: string | undefined): string {
  if (!text) return "; its text is empty";
  return `; its text begins: ${text.slice(0, MAX_SHOWN_LENGTH)}${text.length > MAX_SHOWN_LENGTH ? "…" : ""}`;
}
