/** The way to the gateway that all resources of a client share: parameters in, results out. */

import { Callbacks } from "./callbacks";
import { type CallSite, cancelled, failure } from "./failure";
import { nativeSaving, type SaveOptions } from "./files";
import { type Operation, operations } from "./generated/operations";
import {
  type NativeAnswer,
  type NativeCall,
  type NativeCancellation,
  type NativeClient,
  type NativeResponse,
  type NativeSaving,
  type NativeWait,
  type NativeWatch,
  native,
} from "./native";
import {
  addPair,
  type CallDefaults,
  type ClientOptions,
  nativeCallDefaults,
  nativeClientOptions,
  nativeRequestOptions,
  type RequestOptions,
} from "./options";
import { ApiPromise } from "./promise";
import { ResponseInfo, remember, resultOf } from "./response";
import { Stream, type StreamClass } from "./stream";
import type { WaitOptions } from "./videos";

type Members = Record<string, unknown>;

/** Starts native work. `cancellation`: to be passed on. */
export type Start = (cancellation?: NativeCancellation) => Promise<NativeAnswer>;

export class Connection {
  readonly #native: NativeClient;
  readonly #callbacks: Callbacks | undefined;

  private constructor(made: NativeClient | string, callbacks: Callbacks | undefined, site: CallSite) {
    if (typeof made === "string") throw failure(made, site);
    this.#native = made;
    this.#callbacks = callbacks;
  }

  /** A connection of its own. Errors: `ConfigurationError`, placed at `site`. */
  static open(options: ClientOptions, userAgent: string, site: CallSite): Connection {
    const callbacks = Callbacks.of(options);
    const given = nativeClientOptions(options, userAgent);
    return new Connection(native.NativeClient.create(given, callbacks?.callback), callbacks, site);
  }

  /** This one with other defaults for its calls. Errors: `ConfigurationError`, placed at `site`. */
  withOptions(options: CallDefaults, site: CallSite): Connection {
    const given = nativeCallDefaults(options);
    return new Connection(this.#native.withOptions(given), this.#callbacks, site);
  }

  /** The bare host requests go to. */
  get baseUrl(): string {
    return this.#native.baseUrl;
  }

  /** Sends one operation. `path`: its positional parameters; `stream`: its events' class. Errors are placed at `site`. */
  send<T>(
    operation: Operation,
    path: readonly unknown[],
    params: object | null | undefined,
    options: RequestOptions | undefined,
    site: CallSite,
    stream: StreamClass = Stream,
  ): ApiPromise<T> {
    const start: Start = (cancellation) => {
      const { call, streams } = assemble(operation, path, (params ?? {}) as Members, options);
      return streams ? this.#native.open(call, cancellation) : this.#native.call(call, cancellation);
    };
    return this.run<T>(operation, options?.signal, site, start, stream);
  }

  /** Begins a wait for a video task. Errors are placed at `site`. */
  watchVideo(
    taskId: string,
    { intervalMs, timeoutMs }: WaitOptions,
    submitted: boolean,
    site: CallSite,
  ): NativeWatch {
    const operation = operations.retrieve_video;
    const [name] = operation.path;
    const wait: NativeWait = { taskId: pathValue(operation, name, taskId), submitted };
    if (intervalMs !== undefined) wait.intervalMs = intervalMs;
    if (timeoutMs !== undefined) wait.timeoutMs = timeoutMs;
    const watch = this.#native.watchVideo(wait);
    if (typeof watch === "string") throw failure(watch, site);
    return watch;
  }

  /** Saves what a record points to; gives the size. Errors are placed at `site`. */
  async save(
    kind: NativeSaving["kind"],
    record: object,
    path: string | URL,
    options: SaveOptions,
    site: CallSite,
  ): Promise<number> {
    const saving = nativeSaving(kind, record, path, options);
    const start: Start = (cancellation) => this.#native.save(saving, cancellation);
    return Number((await this.#settle("save", options.signal, site, start)).body);
  }

  /** Runs native work under the caller's signal, and makes its answer a result. Errors are placed at `site`. */
  run<T>(
    operation: Operation,
    signal: AbortSignal | undefined,
    site: CallSite,
    start: Start,
    stream: StreamClass = Stream,
  ): ApiPromise<T> {
    return new ApiPromise<T>((resolve, reject) => {
      this.#settle(operation.id, signal, site, start)
        .then((answer) => receive<T>(operation, answer, signal, site, stream))
        .then(resolve, reject);
    });
  }

  /**
   * Waits for native work. Errors: what a callback threw; what the core reports; `CancelledError` if the signal is
   * the reason.
   */
  async #settle(
    operation: string,
    signal: AbortSignal | undefined,
    site: CallSite,
    start: Start,
  ): Promise<NativeAnswer> {
    if (signal?.aborted) throw cancelled({ operation, site }, signal.reason);
    const call = this.#callbacks?.begin(site);
    const cancellation =
      signal === undefined && call === undefined ? undefined : new native.Cancellation(call?.id);
    const onAbort = () => cancellation?.cancel();
    signal?.addEventListener("abort", onAbort, { once: true });
    try {
      const answer = await start(cancellation);
      if (call?.failed) {
        answer.stream?.close();
        throw call.error;
      }
      if (answer.error === undefined) {
        if (!signal?.aborted) return answer;
        // It had arrived, but nobody had it yet when the caller said that it is not wanted.
        answer.stream?.close();
        throw cancelled({ operation, site }, signal.reason);
      }
      throw failure(answer.error, site, signal?.aborted ? signal.reason : undefined);
    } finally {
      signal?.removeEventListener("abort", onAbort);
      if (call !== undefined) this.#callbacks?.end(call);
    }
  }
}

/** The object a caller gets, with what came with it noted. */
function receive<T>(
  operation: Operation,
  answer: NativeAnswer,
  signal: AbortSignal | undefined,
  site: CallSite,
  Class: StreamClass,
): T {
  if (answer.stream === undefined) return resultOf<T>(operation, answer, site);
  const response = new ResponseInfo(answer as NativeResponse);
  const origin = { operation: operation.id, site, signal };
  return remember(new Class(answer.stream, response, operation, origin) as T, response);
}

/** Sorts the members of `params` by the way they travel. */
function assemble(
  operation: Operation,
  path: readonly unknown[],
  params: Members,
  options: RequestOptions | undefined,
): { call: NativeCall; streams: boolean } {
  const call: NativeCall = { operation: operation.id, path: [], query: [], headers: [] };
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
  for (const name of operation.query) addPair(call.query, name, take(name));
  for (const name of operation.headers) addPair(call.headers, name, take(name));
  const given = nativeRequestOptions(operation.name, options);
  if (given !== undefined) call.options = given;

  if (operation.body) {
    call.body = JSON.stringify(rest);
  } else {
    // Most likely options passed in the place of parameters; dropping them would hide it.
    const [unknown] = Object.keys(rest);
    if (unknown !== undefined) throw new TypeError(`${operation.name}: no parameter is called ${unknown}`);
  }
  return { call, streams: streams(operation, rest, options) };
}

/** Whether the answer is to be a stream. */
function streams({ stream }: Operation, body: Members, options: RequestOptions | undefined): boolean {
  if (typeof stream === "boolean") return stream;
  return (options?.extraBody?.[stream] ?? body[stream]) === true;
}

/** A path parameter's value as text. Errors: TypeError; a missing id must not become `undefined` in a path. */
function pathValue(operation: Operation, name: string, value: unknown): string {
  if (typeof value === "string" || typeof value === "number") return String(value);
  const found = value === null ? "null" : typeof value;
  throw new TypeError(`${operation.name}: ${name} must be a string, not ${found}`);
}
