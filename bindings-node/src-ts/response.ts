/** What came with a result: status, headers, request id; and the result itself. */

import { type CallSite, failureOf } from "./failure";
import type { JoinedText, Operation } from "./generated/operations";
import type { NativeAnswer, NativeResponse } from "./native";

/** The HTTP side of an answer. */
export class ResponseInfo {
  readonly status: number;
  /** The gateway's id of the request. */
  readonly requestId: string | undefined;
  /** Attempts made, the successful one included. */
  readonly attempts: number;
  /** From the start of the call to the answer, all attempts together; for a stream, to its head. */
  readonly elapsedMs: number;
  #headers: Headers | string;

  /** Made by the client. */
  constructor(response: NativeResponse) {
    this.status = response.status;
    this.requestId = response.requestId;
    this.attempts = response.attempts;
    this.elapsedMs = response.elapsedMs;
    this.#headers = response.headers;
  }

  /** Headers of the answer. */
  get headers(): Headers {
    if (typeof this.#headers === "string") {
      this.#headers = new Headers(JSON.parse(this.#headers) as [string, string][]);
    }
    return this.#headers;
  }
}

// Beside the results, not on them: they stay plain objects that clone, compare and print as what arrived.
const responses = new WeakMap<object, ResponseInfo>();

/** Notes what a result came with. */
export function remember<T>(result: T, response: ResponseInfo): T {
  if (typeof result === "object" && result !== null) responses.set(result, response);
  return result;
}

/**
 * Status, headers, request id and attempts of a result this package returned: the object itself, not a copy
 * or a part of it.
 */
export function responseOf(result: object): ResponseInfo {
  const response = responses.get(result);
  if (response === undefined) throw new TypeError("responseOf: not a result of a gatewright client");
  return response;
}

/**
 * The document of an answer, with what the specification adds to it. Errors: `DecodeError` with status, request id
 * and the text received.
 */
export function resultOf<T>(operation: Operation, answer: NativeAnswer, site: CallSite): T {
  const response = new ResponseInfo(answer as NativeResponse);
  const result: unknown = parse(operation, answer, response, site);
  if (typeof result === "object" && result !== null) {
    if (operation.iterable !== undefined) makeIterable(result, operation.iterable);
    if (operation.text !== undefined) addText(result, operation.text);
  }
  return remember(result as T, response);
}

function parse(operation: Operation, answer: NativeAnswer, response: ResponseInfo, site: CallSite): unknown {
  const body = answer.body ?? "";
  try {
    return JSON.parse(body);
  } catch (cause) {
    throw failureOf(
      {
        kind: "decode",
        message: `${operation.id}: the answer is not JSON`,
        operation: operation.id,
        status: response.status,
        headers: response.headers,
        requestId: response.requestId,
        attempts: response.attempts,
        body,
        cause,
      },
      site,
    );
  }
}

/** What adds the joined text to the documents in the events of a stream, where they hold one. */
export function completer({ text }: Operation): ((event: unknown) => void) | undefined {
  if (text === undefined || text.events.length === 0) return undefined;
  return (event) => {
    for (const name of text.events) {
      const document = memberOf(event, name);
      if (typeof document === "object" && document !== null) addText(document, text);
    }
  };
}

/** Makes a result iterable over one of its members. Not enumerable: the object stays what arrived. */
function makeIterable(result: object, member: string): void {
  Object.defineProperty(result, Symbol.iterator, {
    value: () => {
      const found = memberOf(result, member);
      return (Array.isArray(found) ? found : [])[Symbol.iterator]();
    },
    configurable: true,
    writable: true,
  });
}

/** Adds the member that joins the texts of all parts of a kind. Not enumerable: the object stays what arrived. */
function addText(result: object, { name, path, type, member }: JoinedText): void {
  if (Object.hasOwn(result, name)) return;
  Object.defineProperty(result, name, {
    get: () => {
      let parts: unknown[] = [result];
      for (const step of path) {
        parts = parts.flatMap((part) => {
          const below = memberOf(part, step);
          return Array.isArray(below) ? below : [];
        });
      }
      const texts = parts
        .filter((part) => memberOf(part, "type") === type)
        .map((part) => memberOf(part, member));
      return texts.filter((text) => typeof text === "string").join("");
    },
    configurable: true,
  });
}

function memberOf(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>)[name] : undefined;
}
