/** Members of documents whose types nothing has checked: a server may send a value of any type in any place. */

import { type CallSite, failureOf } from "./failure";

export type Members = Record<string, unknown>;

/** A member has a value of a type that helpers cannot read. The message says where, by JSON Pointer. */
export class UnexpectedMember extends Error {
  constructor(pointer: string, value: unknown, expected: string) {
    super(`${pointer} is ${kindOf(value)}, not ${expected}`);
  }
}

function kindOf(value: unknown): string {
  if (value === undefined) return "missing";
  if (value === null) return "null";
  if (Array.isArray(value)) return "an array";
  return typeof value === "object" ? "an object" : `a ${typeof value}`;
}

export function isObject(value: unknown): value is Members {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** An object that must be there. `pointer`: where it is. Errors: `UnexpectedMember`. */
export function objectAt(value: unknown, pointer: string): Members {
  if (!isObject(value)) throw new UnexpectedMember(pointer, value, "an object");
  return value;
}

// Of the following functions, `place` is the JSON Pointer of the holder, which is put together with the name only for an
// error. What is null is missing, as for the core.

/** Errors: `UnexpectedMember`. */
export function objectMember(holder: object, name: string, place: string): Members | undefined {
  const value = (holder as Members)[name] ?? undefined;
  return value === undefined ? undefined : objectAt(value, `${place}/${name}`);
}

/** The items of a list; none if it is missing. Errors: `UnexpectedMember`. */
export function listMember(holder: object, name: string, place: string): readonly unknown[] {
  const value = (holder as Members)[name] ?? [];
  if (!Array.isArray(value)) throw new UnexpectedMember(`${place}/${name}`, value, "an array");
  return value;
}

/** The items of a list of objects; none if it is missing. Errors: `UnexpectedMember`. */
export function objectsMember(holder: object, name: string, place: string): readonly Members[] {
  const items = listMember(holder, name, place);
  for (const [at, item] of items.entries()) {
    if (!isObject(item)) throw new UnexpectedMember(`${place}/${name}/${at}`, item, "an object");
  }
  return items as readonly Members[];
}

/** Errors: `UnexpectedMember`. */
export function textMember(holder: object, name: string, place: string): string | undefined {
  const value = (holder as Members)[name] ?? undefined;
  if (value === undefined || typeof value === "string") return value;
  // The core takes a number for a text, too.
  if (typeof value === "number") return String(value);
  throw new UnexpectedMember(`${place}/${name}`, value, "a string");
}

/** An integer that identifies something: beyond 2^53, several would be one. Errors: `UnexpectedMember`. */
export function integerMember(holder: object, name: string, place: string): number | undefined {
  const value = (holder as Members)[name] ?? undefined;
  if (value === undefined || Number.isSafeInteger(value)) return value as number | undefined;
  throw new UnexpectedMember(`${place}/${name}`, value, "an integer below 2^53");
}

/** Sets a member, whatever its name: `__proto__` is one like any other. */
export function put(members: object, name: string | number, value: unknown): void {
  Object.defineProperty(members, name, { value, enumerable: true, configurable: true, writable: true });
}

/** Where a document came from, for its error. */
interface DocumentOrigin {
  /** The document in words: `the response`. */
  readonly what: string;
  readonly document: unknown;
  readonly operation: string;
  /** The method as the caller writes it. */
  readonly method: string;
  readonly site: CallSite;
  readonly response: {
    readonly status: number;
    readonly requestId: string | undefined;
    readonly attempts: number;
  };
}

/** What to throw where reading a document has thrown `error`: a `DecodeError` if a member is the cause, else the same. */
export function readingError(error: unknown, origin: DocumentOrigin): unknown {
  if (!(error instanceof UnexpectedMember)) return error;
  const { what, document, operation, method, site, response } = origin;
  const { status, requestId, attempts } = response;
  const message = `${method}: ${what} has a member of an unexpected type: ${error.message}`;
  return failureOf({ kind: "decode", message, operation, status, requestId, attempts, body: document }, site);
}
