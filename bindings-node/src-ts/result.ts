/** The contents of a response in the form for the caller. */

import type { EngineAnswer, EngineResponse } from "./engine";
import type { JoinedText, Operation } from "./operation";
import { ResponseInfo, remember } from "./response";

/**
 * The contents of a response; a document has the members that the specification adds. `promise`: that of the result.
 */
export function resultOf<T>(operation: Operation, answer: EngineAnswer, promise?: object): T {
  const response = new ResponseInfo(answer as EngineResponse);
  const result = contentOf(operation, answer);
  if (typeof result === "object" && result !== null) {
    if (operation.iterable !== undefined) makeIterable(result, operation.iterable);
    if (operation.text !== undefined) addText(result, operation.text);
  }
  return remember(result as T, response, promise);
}

function contentOf(operation: Operation, answer: EngineAnswer): unknown {
  switch (operation.answer) {
    case "nothing":
      return undefined;
    case "text":
    case "bytes":
      return answer.content;
    case undefined:
      // The core has already validated that it is JSON.
      return JSON.parse((answer.content ?? "") as string);
  }
}

/** A function that adds the joined text to documents in the events of a stream. */
export function completer({ text }: Operation): ((event: unknown) => void) | undefined {
  if (text === undefined || text.events.length === 0) return undefined;
  return (event) => {
    for (const name of text.events) {
      const document = memberOf(event, name);
      if (typeof document === "object" && document !== null) addText(document, text);
    }
  };
}

/** Makes a result iterable over one of its members. Not enumerable: the object stays as it arrived. */
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

/** Adds the member that joins the texts of all parts of a kind. Not enumerable: the object stays as it arrived. */
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
