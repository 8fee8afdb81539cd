/**
 * The caller's functions: middleware and the key provider. The core invokes them on this thread during a
 * call. If one throws, the error is stored with its call, so that the caller gets the original error.
 */

import { AsyncResource } from "node:async_hooks";

import type { GatewrightError } from "./error";
import { type CallSite, type EngineFailure, failureFrom } from "./failure";
import type { ErrorKind } from "./generated/errors";
import type { ClientOptions } from "./generated/options";
import { headersOf, pairsOf } from "./headers";
import type { ApiKeyFunction } from "./options";

/**
 * Code that runs around every attempt of every call of a client, retries included. Either function may return
 * a promise, which counts against the call's deadline. If there are several, the first is the outermost. They
 * run in the asynchronous context of the call.
 *
 * @example
 * ```js
 * import { Client } from "gatewright";
 *
 * const timing = {
 *   before: ({ headers }) => headers.set("x-team", "search"),
 *   after: ({ operation, number }, { status, elapsedMs }) => console.log(operation, number, status, elapsedMs),
 * };
 * const client = new Client({ middleware: [timing] });
 * await client.models.list();
 * ```
 */
export interface Middleware {
  /**
   * Runs before an attempt is sent. It may change the headers of this attempt only. If it throws, the call throws the
   * same error at once.
   */
  before?(attempt: Attempt): void | Promise<void>;
  /**
   * Runs after an attempt that got a whole response or the headers of a stream, or that failed. If it throws, the call
   * throws the same error instead of the outcome.
   */
  after?(attempt: Attempt, outcome: Outcome): void | Promise<void>;
}

/** One request of a call. The same object goes to `before` and to `after`. */
export interface Attempt {
  /** `operationId` of the call, as in the specification. */
  readonly operation: string;
  /** 1 for the first attempt of a call. */
  readonly number: number;
  /** Maximum number of attempts after the first one. */
  readonly maxRetries: number;
  /** Time that remained until the call's deadline when the attempt started, in milliseconds. */
  readonly remainingMs: number;
  /** Why the previous attempt failed; null for the first. */
  readonly previous: ErrorKind | null;
  /** HTTP method. */
  readonly method: string;
  /** The full URL, including the query. */
  readonly url: string;
  /** The headers to send, including the key; `before` may change them. */
  readonly headers: Headers;
  /** The JSON text to send, or a form with its files, as far as they are text; null if the operation has no body. */
  readonly body: string | null;
}

/** The outcome of an attempt. */
export interface Outcome {
  /** HTTP status; null if there was no response. */
  readonly status: number | null;
  /** Response headers; null if there was no response. */
  readonly headers: Headers | null;
  /** The gateway's id of the request; null if it sent none. */
  readonly requestId: string | null;
  /** Text of the response, if it was read: null for a stream, truncated if the attempt failed. */
  readonly body: string | null;
  /** The failure, if the attempt failed. The client has not decided yet whether to retry. */
  readonly error: GatewrightError | null;
  /** From the start of the attempt to the end of the response, or to the headers of a stream. */
  readonly elapsedMs: number;
}

/** The function that the core calls; it never rejects, and returns null if a callback threw. */
export type Callback = (
  call: number,
  index: number,
  stage: string,
  details: string,
  body: string | null | undefined,
) => Promise<string | null>;

/** The state of a call for its callbacks. */
export class CallbackCall {
  /** The core's number for it. */
  readonly id: number;
  readonly #site: CallSite;
  // Callbacks run in the caller's asynchronous context, so they see its AsyncLocalStorage.
  readonly #context = new AsyncResource("GatewrightCall");
  /** The current attempt for each middleware, as passed to `before`. */
  readonly #attempts = new Map<number, Attempt>();
  /** The first error that a callback threw. */
  error: unknown;
  failed = false;

  constructor(id: number, site: CallSite) {
    this.id = id;
    this.#site = site;
  }

  /** Runs a callback; null if it throws. */
  async run(callback: () => Promise<string>): Promise<string | null> {
    try {
      return await this.#context.runInAsyncScope(callback);
    } catch (error) {
      if (!this.failed) this.error = error;
      this.failed = true;
      return null;
    }
  }

  /** Calls `before`. Returns the headers as JSON if they changed, else nothing. */
  async before(index: number, middleware: Middleware, details: string, body: string | null): Promise<string> {
    const attempt = attemptOf(JSON.parse(details) as EngineAttempt, body);
    this.#attempts.set(index, attempt);
    const given = JSON.stringify(pairsOf(attempt.headers));
    await middleware.before?.(attempt);
    const wanted = JSON.stringify(pairsOf(attempt.headers));
    return wanted === given ? "" : wanted;
  }

  /** Calls `after`, with the same attempt as `before`. */
  async after(index: number, middleware: Middleware, details: string, body: string | null): Promise<string> {
    const { attempt, outcome } = JSON.parse(details) as { attempt: EngineAttempt; outcome: EngineOutcome };
    const known = this.#attempts.get(index);
    this.#attempts.delete(index);
    await middleware.after?.(known ?? attemptOf(attempt, null), {
      ...outcome,
      headers: outcome.headers === null ? null : headersOf(outcome.headers),
      body,
      error: outcome.error === null ? null : failureFrom(outcome.error, this.#site),
    });
    return "";
  }
}

/**
 * The callbacks of a client. Does not refer to the client: the core keeps this object, which must not keep the client
 * alive.
 */
export class Callbacks {
  readonly #apiKey: ApiKeyFunction | undefined;
  readonly #middleware: readonly Middleware[];
  readonly #calls = new Map<number, CallbackCall>();
  #last = 0;

  private constructor(apiKey: ApiKeyFunction | undefined, middleware: readonly Middleware[]) {
    this.#apiKey = apiKey;
    this.#middleware = middleware;
  }

  /** The callbacks in the options, if any. */
  static of({ apiKey, middleware }: ClientOptions): Callbacks | undefined {
    const ask = typeof apiKey === "function" ? apiKey : undefined;
    const list = [...(middleware ?? [])];
    return ask === undefined && list.length === 0 ? undefined : new Callbacks(ask, list);
  }

  /** Registers a call that starts. */
  begin(site: CallSite): CallbackCall {
    // 0 means no call; a number repeats only after four billion others.
    this.#last = (this.#last + 1) % 0xffffffff || 1;
    const call = new CallbackCall(this.#last, site);
    this.#calls.set(call.id, call);
    return call;
  }

  /** Removes a call that has ended. */
  end(call: CallbackCall): void {
    this.#calls.delete(call.id);
  }

  /** The function for the core to call. */
  readonly callback: Callback = async (id, index, stage, details, body) => {
    // An aborted call is already removed; its callbacks are no longer needed.
    const call = this.#calls.get(id);
    if (call === undefined) return null;
    return call.run(async () => {
      if (stage === "apiKey") return this.#key(JSON.parse(details) as { refresh: boolean });
      const middleware = this.#middleware[index] as Middleware;
      const around = stage === "before" ? call.before : call.after;
      return around.call(call, index, middleware, details, body ?? null);
    });
  };

  async #key(request: { refresh: boolean }): Promise<string> {
    const key: unknown = await this.#apiKey?.(request);
    if (typeof key !== "string")
      throw new TypeError(`apiKey: the function returned ${typeof key}, not a string`);
    return key;
  }
}

/** The core's description of an attempt. */
interface EngineAttempt extends Omit<Attempt, "headers" | "body"> {
  readonly headers: [string, string][];
}

interface EngineOutcome extends Omit<Outcome, "headers" | "body" | "error"> {
  readonly headers: [string, string][] | null;
  readonly error: EngineFailure | null;
}

function attemptOf({ headers, ...attempt }: EngineAttempt, body: string | null): Attempt {
  return { ...attempt, headers: headersOf(headers), body };
}
