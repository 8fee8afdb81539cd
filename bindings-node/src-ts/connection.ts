/** The way to the gateway that all resources of a client share: parameters in, results out. */

import { CallSite, failure, failureOf } from "./failure";
import { type Operation, operations } from "./generated/operations";
import {
  type NativeAnswer,
  type NativeCall,
  type NativeCancellation,
  type NativeClient,
  type NativeClientOptions,
  type NativeResponse,
  type NativeWait,
  native,
} from "./native";
import { ApiPromise } from "./promise";
import type { RequestOptions } from "./resource";
import { ResponseInfo, remember } from "./response";
import { cancelled, Stream } from "./stream";
import type { WaitOptions } from "./videos";

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

  /** Sends one operation. `path`: its positional parameters. Errors are placed at `site`. */
  send<T>(
    operation: Operation,
    path: readonly unknown[],
    params: object | null | undefined,
    options: RequestOptions | undefined,
    site: CallSite,
  ): ApiPromise<T> {
    return this.#run<T>(operation, options?.signal, site, (cancellation) => {
      const { call, streams } = assemble(operation, path, (params ?? {}) as Members, options ?? {});
      return streams ? this.#native.open(call, cancellation) : this.#native.call(call, cancellation);
    });
  }

  /** Looks a video task up until it is completed. Errors are placed at `site`. */
  waitForVideo<T>(taskId: string, options: WaitOptions, site: CallSite): ApiPromise<T> {
    const operation = operations.retrieve_video;
    return this.#run<T>(operation, options.signal, site, (cancellation) => {
      const [name] = operation.path;
      const wait: NativeWait = { taskId: pathValue(operation, name, taskId) };
      if (options.intervalMs !== undefined) wait.intervalMs = options.intervalMs;
      if (options.timeoutMs !== undefined) wait.timeoutMs = options.timeoutMs;
      return this.#native.waitForVideo(wait, cancellation);
    });
  }

  /** Runs native work under the caller's signal, and makes its answer a result. */
  #run<T>(
    operation: Operation,
    signal: AbortSignal | undefined,
    site: CallSite,
    start: (cancellation?: NativeCancellation) => Promise<NativeAnswer>,
  ): ApiPromise<T> {
    return new ApiPromise<T>((resolve, reject) => {
      settle(operation, signal, site, start)
        .then((answer) => resultOf<T>(operation, answer, signal, site))
        .then(resolve, reject);
    });
  }
}

/** Waits for native work. Errors: what the core reports; `CancelledError` if the signal is the reason. */
async function settle(
  operation: Operation,
  signal: AbortSignal | undefined,
  site: CallSite,
  start: (cancellation?: NativeCancellation) => Promise<NativeAnswer>,
): Promise<NativeAnswer> {
  if (signal === undefined) return succeeded(await start(), site);
  if (signal.aborted) throw cancelled(operation.id, site, signal.reason);
  const cancellation = new native.Cancellation();
  const onAbort = () => cancellation.cancel();
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    return succeeded(await start(cancellation), site, signal);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}

/** The object a caller gets, with what came with it noted. */
function resultOf<T>(
  operation: Operation,
  answer: NativeAnswer,
  signal: AbortSignal | undefined,
  site: CallSite,
): T {
  const response = new ResponseInfo(answer as NativeResponse);
  const result =
    answer.stream === undefined
      ? parse(operation, answer, site)
      : new Stream(answer.stream, response, operation.id, site, signal);
  return remember(result as T, response);
}

/** The answer, or the error it stands for. */
function succeeded(answer: NativeAnswer, site: CallSite, signal?: AbortSignal): NativeAnswer {
  if (answer.error !== undefined) {
    throw failure(answer.error, site, signal?.aborted === true ? signal.reason : undefined);
  }
  return answer;
}

/** The JSON document of an answer. Errors: `DecodeError` with status, request id and the text received. */
function parse(operation: Operation, answer: NativeAnswer, site: CallSite): unknown {
  const body = answer.body ?? "";
  try {
    return JSON.parse(body);
  } catch (cause) {
    throw failureOf(
      {
        kind: "decode",
        message: `${operation.id}: the answer is not JSON`,
        operation: operation.id,
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
    call.path.push(name, pathValue(operation, name, value));
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

/** A path parameter's value as text. Errors: TypeError; a missing id must not become `undefined` in a path. */
function pathValue(operation: Operation, name: string, value: unknown): string {
  if (typeof value === "string" || typeof value === "number") return String(value);
  const found = value === null ? "null" : typeof value;
  throw new TypeError(`${operation.name}: ${name} must be a string, not ${found}`);
}

/** Adds a parameter's value; one pair for each item of an array, none if it is missing. */
function add(pairs: string[], name: string, value: unknown): void {
  if (value === undefined || value === null) return;
  for (const item of Array.isArray(value) ? value : [value]) pairs.push(name, String(item));
}
