/** The way to the gateway that all resources of a client share: parameters in, results out. */

import { CallSite, failure, failureOf } from "./failure";
import type { Operation } from "./generated/operations";
import {
  type NativeAnswer,
  type NativeCall,
  type NativeCancellation,
  type NativeClient,
  type NativeClientOptions,
  type NativeResponse,
  native,
} from "./native";
import { ApiPromise } from "./promise";
import type { RequestOptions } from "./resource";
import { ResponseInfo, remember } from "./response";
import { cancelled, Stream } from "./stream";

type Members = Record<string, unknown>;

export class Connection {
  readonly #native: NativeClient;

  /** Errors: `ConfigurationError`, placed at the caller of `owner`, the class that is being made. */
  constructor(options: NativeClientOptions, owner: new (...args: never[]) => unknown) {
    const made = native.NativeClient.create(options);
    if (typeof made === "string") throw failure(made, new CallSite(owner));
    this.#native = made;
  }

  /** The bare host requests go to. */
  get baseUrl(): string {
    return this.#native.baseUrl;
  }

  /**
   * Sends one operation. `path`: its positional parameters. `method`: the innermost function that is left
   * out of the stack of an error.
   */
  send<T>(
    operation: Operation,
    path: readonly unknown[],
    params: object | null | undefined,
    options: RequestOptions | undefined,
    method: (...args: never[]) => unknown,
  ): ApiPromise<T> {
    const site = new CallSite(method);
    return new ApiPromise<T>((resolve, reject) => {
      this.#send<T>(operation, path, params ?? {}, options ?? {}, site).then(resolve, reject);
    });
  }

  /**
   * Runs one native call under the caller's signal. Errors: what the core reports, at `site`; `CancelledError`
   * if the signal is the reason.
   */
  async run(
    operation: Operation,
    site: CallSite,
    signal: AbortSignal | undefined,
    start: (client: NativeClient, cancellation?: NativeCancellation) => Promise<NativeAnswer>,
  ): Promise<NativeAnswer> {
    if (signal === undefined) return settled(await start(this.#native), site);
    if (signal.aborted) throw cancelled(operation.id, site, signal.reason);
    const cancellation = new native.Cancellation();
    const onAbort = () => cancellation.cancel();
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      return settled(await start(this.#native, cancellation), site, signal);
    } finally {
      signal.removeEventListener("abort", onAbort);
    }
  }

  async #send<T>(
    operation: Operation,
    path: readonly unknown[],
    params: object,
    options: RequestOptions,
    site: CallSite,
  ): Promise<T> {
    const { call, streams } = assemble(operation, path, params as Members, options);
    const answer = await this.run(operation, site, options.signal, (client, cancellation) =>
      streams ? client.open(call, cancellation) : client.call(call, cancellation),
    );
    const response = new ResponseInfo(answer as NativeResponse);
    const result =
      answer.stream === undefined
        ? parse(operation.id, answer, site)
        : new Stream(answer.stream, response, operation.id, site, options.signal);
    return remember(result as T, response);
  }
}

/** The answer, or the error it stands for. */
function settled(answer: NativeAnswer, site: CallSite, signal?: AbortSignal): NativeAnswer {
  if (answer.error !== undefined) {
    throw failure(answer.error, site, signal?.aborted === true ? signal.reason : undefined);
  }
  return answer;
}

/** The JSON document of an answer. Errors: `DecodeError` with status, request id and the text received. */
export function parse(operation: string, answer: NativeAnswer, site: CallSite): unknown {
  const body = answer.body ?? "";
  try {
    return JSON.parse(body);
  } catch (cause) {
    throw failureOf(
      {
        kind: "decode",
        message: `${operation}: the answer is not JSON`,
        operation,
        status: answer.status,
        requestId: answer.requestId,
        body,
        cause,
      },
      site,
    );
  }
}

/** Sorts the members of `params` by the way they travel. */
function assemble(
  operation: Operation,
  path: readonly unknown[],
  params: Members,
  options: RequestOptions,
): { call: NativeCall; streams: boolean } {
  const call: NativeCall = { operation: operation.id, path: [], query: [], extraQuery: [], headers: [] };
  const rest = { ...params };
  const take = (name: string): unknown => {
    const value = rest[name];
    delete rest[name];
    return value;
  };

  operation.path.forEach((name, index) => {
    const value = operation.body ? take(name) : path[index];
    // A missing id must not become the text "undefined" in a path.
    if (typeof value !== "string" && typeof value !== "number") {
      throw new TypeError(
        `${operation.name}: ${name} must be a string, not ${value === null ? "null" : typeof value}`,
      );
    }
    call.path.push(name, String(value));
  });
  for (const name of operation.query) add(call.query, name, take(name));
  for (const name of operation.headers) add(call.headers, name, take(name));
  for (const [name, value] of Object.entries(options.extraQuery ?? {})) add(call.extraQuery, name, value);
  for (const [name, value] of Object.entries(options.extraHeaders ?? {})) add(call.headers, name, value);
  if (options.timeoutMs !== undefined) call.timeoutMs = options.timeoutMs;
  if (options.maxRetries !== undefined) call.maxRetries = options.maxRetries;

  if (operation.body) {
    Object.assign(rest, options.extraBody);
    call.body = JSON.stringify(rest);
  } else {
    // Most likely options passed in the place of parameters; dropping them would hide it.
    const [unknown] = Object.keys(rest);
    if (unknown !== undefined) throw new TypeError(`${operation.name}: no parameter is called ${unknown}`);
  }
  const streams = typeof operation.stream === "string" ? rest[operation.stream] === true : operation.stream;
  return { call, streams };
}

/** Adds a parameter's value; one pair for each item of an array, none if it is missing. */
function add(pairs: string[], name: string, value: unknown): void {
  if (value === undefined || value === null) return;
  for (const item of Array.isArray(value) ? value : [value]) pairs.push(name, String(item));
}
