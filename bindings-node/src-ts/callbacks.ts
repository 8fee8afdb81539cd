/**
 * The caller's own functions: middleware and the key's source. The core asks for them on this thread, by call; what
 * one throws is kept with its call, so that whoever made the call gets that very error.
 */

import { AsyncResource } from "node:async_hooks";

import type { GatewrightError } from "./error";
import { type CallSite, failureFrom, type NativeFailure } from "./failure";
import type { ErrorKind } from "./generated/errors";
import type { ApiKeyFunction, ClientOptions } from "./options";

/**
 * What runs around every attempt of every call of a client, retries included. Either function may return a promise; the
 * call's deadline counts on. Of several, the first is the outermost. They run in the asynchronous context of the call.
 */
export interface Middleware {
  /**
   * Before an attempt is sent; it may change the attempt's headers, for this attempt alone. What it throws, the call
   * throws at once.
   */
  before?(attempt: Attempt): void | Promise<void>;
  /**
   * After an attempt was answered, by a document or by a stream's head, or has failed. What it throws, the call
   * throws in place of the outcome.
   */
  after?(attempt: Attempt, outcome: Outcome): void | Promise<void>;
}

/** One request of a call. The same object goes to `before` and to `after`. */
export interface Attempt {
  /** `operationId` of the call, as in the specification. */
  readonly operation: string;
  /** 1 for the first attempt of a call. */
  readonly number: number;
  /** Attempts the call may make after the first one. */
  readonly maxRetries: number;
  /** Time left of the call's deadline when the attempt began, in milliseconds. */
  readonly remainingMs: number;
  /** Why the attempt before this one failed; null for the first. */
  readonly previous: ErrorKind | null;
  readonly method: string;
  /** The whole address, query included. */
  readonly url: string;
  /** The headers to be sent, the key among them; to be changed in `before`. */
  readonly headers: Headers;
  /** The JSON text that is sent; null where the operation has no body. */
  readonly body: string | null;
}

/** What came of an attempt. */
export interface Outcome {
  /** HTTP status; null where there was no answer. */
  readonly status: number | null;
  /** Headers of the answer; null where there was none. */
  readonly headers: Headers | null;
  readonly requestId: string | null;
  /** Text of the answer, where it has been read: not of a stream, and cut where the attempt failed. */
  readonly body: string | null;
  /** The failure, where the attempt failed. Whether it is tried again is not decided yet. */
  readonly error: GatewrightError | null;
  /** From the attempt's beginning to the end of the answer, or to the head of its stream. */
  readonly elapsedMs: number;
}

/** What the core calls; it never rejects, and gives null where a callback threw. */
export type Callback = (
  call: number,
  index: number,
  stage: string,
  details: string,
  body: string | null | undefined,
) => Promise<string | null>;

/** A call as its callbacks know it. */
export class CallbackCall {
  /** What the core calls it by. */
  readonly id: number;
  readonly #site: CallSite;
  // Callbacks run in the caller's asynchronous context: its AsyncLocalStorage reaches them.
  readonly #context = new AsyncResource("GatewrightCall");
  /** By middleware: the attempt under way, as `before` was given it. */
  readonly #attempts = new Map<number, Attempt>();
  /** What a callback has thrown, the first one's if there are several. */
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

  /** Calls `before`. Gives the headers as JSON if they were changed, else nothing. */
  async before(index: number, middleware: Middleware, details: string, body: string | null): Promise<string> {
    const attempt = attemptOf(JSON.parse(details) as NativeAttempt, body);
    this.#attempts.set(index, attempt);
    const given = JSON.stringify([...attempt.headers]);
    await middleware.before?.(attempt);
    const wanted = JSON.stringify([...attempt.headers]);
    return wanted === given ? "" : wanted;
  }

  /** Calls `after`, with the attempt that `before` was given. */
  async after(index: number, middleware: Middleware, details: string, body: string | null): Promise<string> {
    const { attempt, outcome } = JSON.parse(details) as { attempt: NativeAttempt; outcome: NativeOutcome };
    const known = this.#attempts.get(index);
    this.#attempts.delete(index);
    await middleware.after?.(known ?? attemptOf(attempt, null), {
      ...outcome,
      headers: outcome.headers === null ? null : new Headers(outcome.headers),
      body,
      error: outcome.error === null ? null : failureFrom(outcome.error, this.#site),
    });
    return "";
  }
}

/** The callbacks of a client. Knows no client: what the core holds on to must not hold the client in turn. */
export class Callbacks {
  readonly #apiKey: ApiKeyFunction | undefined;
  readonly #middleware: readonly Middleware[];
  readonly #calls = new Map<number, CallbackCall>();
  #last = 0;

  private constructor(apiKey: ApiKeyFunction | undefined, middleware: readonly Middleware[]) {
    this.#apiKey = apiKey;
    this.#middleware = middleware;
  }

  /** Those the options name, if any. */
  static of({ apiKey, middleware }: ClientOptions): Callbacks | undefined {
    const ask = typeof apiKey === "function" ? apiKey : undefined;
    const list = [...(middleware ?? [])];
    return ask === undefined && list.length === 0 ? undefined : new Callbacks(ask, list);
  }

  /** Notes a call that begins. */
  begin(site: CallSite): CallbackCall {
    // 0 is no call; a number comes again only after four billion others.
    this.#last = (this.#last + 1) % 0xffffffff || 1;
    const call = new CallbackCall(this.#last, site);
    this.#calls.set(call.id, call);
    return call;
  }

  /** Forgets a call that has ended. */
  end(call: CallbackCall): void {
    this.#calls.delete(call.id);
  }

  /** What the core is given to call. */
  readonly callback: Callback = async (id, index, stage, details, body) => {
    // A call that has been aborted is forgotten; nobody waits for what its callbacks would say.
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
    if (typeof key !== "string") throw new TypeError(`apiKey: the function gave ${typeof key}, not a string`);
    return key;
  }
}

/** An attempt as the core describes it. */
interface NativeAttempt extends Omit<Attempt, "headers" | "body"> {
  readonly headers: [string, string][];
}

interface NativeOutcome extends Omit<Outcome, "headers" | "body" | "error"> {
  readonly headers: [string, string][] | null;
  readonly error: NativeFailure | null;
}

function attemptOf({ headers, ...attempt }: NativeAttempt, body: string | null): Attempt {
  return { ...attempt, headers: new Headers(headers), body };
}
