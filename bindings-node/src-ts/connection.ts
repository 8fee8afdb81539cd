/** The connection to the gateway that all resources of a client share: parameters in, results out. */

import { Callbacks } from "./callbacks";
import { delivered, deliveries } from "./deliveries";
import {
  type EngineAnswer,
  type EngineCall,
  type EngineCancellation,
  type EngineClient,
  type EngineFile,
  type EngineResponse,
  type EngineSaving,
  type EngineWait,
  type EngineWatch,
  engine,
} from "./engine";
import { type CallSite, cancelled, closed, failure, placed } from "./failure";
import { readFiles } from "./file-argument";
import { engineSaving } from "./files";
import { operations } from "./generated/operations";
import {
  type CallDefaults,
  type ClientOptions,
  type RequestOptions,
  type SaveOptions,
  WAIT_OPTIONS,
  type WaitOptions,
} from "./generated/options";
import { jsonOf } from "./json";
import type { Operation } from "./operation";
import {
  addPair,
  type ClientAliases,
  engineCallDefaults,
  engineClientOptions,
  engineOptions,
  engineRequestOptions,
  type TimeoutAlias,
} from "./options";
import { ApiPromise } from "./promise";
import { ResponseInfo, remember } from "./response";
import { resultOf } from "./result";
import { misspelled, suggestion } from "./spelling";
import { Stream, type StreamClass } from "./stream";

type Members = Record<string, unknown>;

/** Starts work of the engine under a number. `cancellation`: pass it on. */
export type Start = (number: number, cancellation?: EngineCancellation) => void;

export class Connection {
  readonly #engine: EngineClient;
  readonly #callbacks: Callbacks | undefined;

  private constructor(made: EngineClient | string, callbacks: Callbacks | undefined, site: CallSite) {
    if (typeof made === "string") throw failure(made, site);
    this.#engine = made;
    this.#callbacks = callbacks;
  }

  /** Creates a new connection. Errors: `ConfigurationError`, with the stack of `site`. */
  static open(options: ClientOptions & ClientAliases, userAgent: string, site: CallSite): Connection {
    const callbacks = Callbacks.of(options);
    const given = engineClientOptions(options, userAgent);
    return new Connection(
      engine.EngineClient.create(given, deliveries(), callbacks?.callback),
      callbacks,
      site,
    );
  }

  /** This connection with other defaults for its calls. Errors: `ConfigurationError`, with the stack of `site`. */
  withOptions(options: CallDefaults & TimeoutAlias, site: CallSite): Connection {
    const given = engineCallDefaults(options);
    return new Connection(this.#engine.withOptions(given), this.#callbacks, site);
  }

  /** The base URL of the gateway, without a path. */
  get baseUrl(): string {
    return this.#engine.baseUrl;
  }

  /**
   * Sends one operation. `path`: its positional parameters; `stream`: the class of its events; `closing`: aborted when the stream
   * is closed, even before it began. Errors have the stack of `site`.
   */
  send<T>(
    operation: Operation,
    path: readonly unknown[],
    params: object | null | undefined,
    options: RequestOptions | undefined,
    site: CallSite,
    stream: StreamClass = Stream,
    closing?: AbortSignal,
  ): ApiPromise<T> {
    const members = (params ?? {}) as Members;
    let files: EngineFile[] | undefined;
    const start: Start = (number, cancellation) => {
      const { call, streams } = assemble(operation, path, members, options);
      if (files !== undefined) call.files = files;
      if (streams) this.#engine.open(number, call, cancellation);
      else this.#engine.call(number, call, cancellation);
    };
    const before =
      operation.files &&
      (async () => {
        try {
          files = await readFiles(operation, members, engine.maxFormBytes());
        } catch (error) {
          throw error instanceof Error ? placed(error, site) : error;
        }
      });
    return this.run<T>(asAsked(operation, members), options?.signal, site, start, stream, before, closing);
  }

  /** Starts a wait for a video task. Errors have the stack of `site`. */
  watchVideo(taskId: string, options: WaitOptions, submitted: boolean, site: CallSite): EngineWatch {
    const operation = operations.retrieve_video;
    const [name] = operation.path;
    const wait: EngineWait = {
      taskId: pathValue(operation, name, taskId),
      submitted,
      options: engineOptions("wait", options, WAIT_OPTIONS),
    };
    const watch = this.#engine.watchVideo(wait);
    if (typeof watch === "string") throw failure(watch, site);
    return watch;
  }

  /** Saves the file that a record points to; returns the size. Errors have the stack of `site`. */
  async save(
    kind: EngineSaving["kind"],
    record: object,
    path: string | URL,
    options: SaveOptions,
    site: CallSite,
  ): Promise<number> {
    const saving = engineSaving(kind, record, path, options);
    const start: Start = (number, cancellation) => this.#engine.save(number, saving, cancellation);
    return Number((await this.#settle({ id: "save", name: "save" }, options.signal, site, start)).content);
  }

  /**
   * Runs work of the engine with the caller's signal, and converts its response to a result. `before`: what has to be
   * ready first. Errors have the stack of `site`.
   */
  run<T>(
    operation: Operation,
    signal: AbortSignal | undefined,
    site: CallSite,
    start: Start,
    stream: StreamClass = Stream,
    before?: () => Promise<void>,
    closing?: AbortSignal,
  ): ApiPromise<T> {
    const promise: ApiPromise<T> = new ApiPromise<T>((resolve, reject) => {
      this.#settle(operation, signal, site, start, before, closing)
        .then((answer) => receive<T>(operation, answer, signal, site, stream, promise))
        .then(resolve, reject);
    });
    return promise;
  }

  /**
   * Waits for work of the engine. Errors: an error that a callback threw; the core's error; `CancelledError` if the
   * signal ended it, or its stream was closed.
   */
  async #settle(
    operation: Pick<Operation, "id" | "name">,
    signal: AbortSignal | undefined,
    site: CallSite,
    start: Start,
    before?: () => Promise<void>,
    closing?: AbortSignal,
  ): Promise<EngineAnswer> {
    const origin = { operation: operation.id, method: operation.name, site };
    if (before !== undefined) await before();
    if (signal?.aborted) throw cancelled(origin, signal.reason);
    const call = this.#callbacks?.begin(site);
    const endings = [signal, closing].filter((one) => one !== undefined);
    const cancellation =
      endings.length === 0 && call === undefined ? undefined : new engine.Cancellation(call?.id);
    const onAbort = () => cancellation?.cancel();
    for (const one of endings) one.addEventListener("abort", onAbort, { once: true });
    try {
      const answer = await delivered(
        (number) => start(number, cancellation),
        (answer) => answer,
      );
      if (call?.failed) {
        answer.stream?.close();
        throw call.error;
      }
      if (closing?.aborted) {
        answer.stream?.close();
        throw closed(origin);
      }
      if (answer.error === null) {
        if (!signal?.aborted) return answer;
        // The response arrived after the caller had aborted the call.
        answer.stream?.close();
        throw cancelled(origin, signal.reason);
      }
      throw failure(answer.error, site, signal?.aborted ? signal.reason : undefined);
    } finally {
      for (const one of endings) one.removeEventListener("abort", onAbort);
      if (call !== undefined) this.#callbacks?.end(call);
    }
  }
}

/** The object for the caller, with its response metadata recorded. */
function receive<T>(
  operation: Operation,
  answer: EngineAnswer,
  signal: AbortSignal | undefined,
  site: CallSite,
  Class: StreamClass,
  promise: object,
): T {
  if (answer.stream === null) return resultOf<T>(operation, answer, promise);
  const response = new ResponseInfo(answer as EngineResponse);
  const origin = { operation: operation.id, method: operation.name, site, signal };
  return remember(new Class(answer.stream, response, operation, origin) as T, response);
}

/** Sorts the members of `params` by where they are sent. */
function assemble(
  operation: Operation,
  path: readonly unknown[],
  params: Members,
  options: RequestOptions | undefined,
): { call: EngineCall; streams: boolean } {
  const call: EngineCall = { operation: operation.id };
  const rest = { ...params };
  const take = (name: string): unknown => {
    const value = rest[name];
    delete rest[name];
    return value;
  };

  if (operation.path.length > 0) {
    call.path = operation.path.flatMap((name, index) => {
      const value = operation.body === null ? path[index] : take(name);
      return [name, pathValue(operation, name, value)];
    });
  }
  if (operation.query.length > 0) call.query = pairs(operation.query, take);
  if (operation.headers.length > 0) call.headers = pairs(operation.headers, take);
  const given = engineRequestOptions(operation.name, options);
  if (given !== undefined) call.options = given;

  if (operation.body !== null) {
    refuseMisspelled(operation.name, rest, operation.body);
    operation.files?.forEach(take);
    call.body = jsonOf(operation.name, rest);
  } else {
    // Most likely options passed in place of parameters; ignoring them would hide the mistake.
    const [unknown] = Object.keys(rest);
    if (unknown !== undefined) {
      const hint = suggestion(unknown, [...operation.query, ...operation.headers]);
      throw new TypeError(`${operation.name}: no parameter is called ${unknown}${hint}`);
    }
  }
  return { call, streams: streams(operation, rest) };
}

/** Errors: TypeError for a member that is a misspelled one. Other unknown members are sent: providers have their own. */
function refuseMisspelled(method: string, body: Members, known: readonly string[]): void {
  for (const name of Object.keys(body)) {
    if (known.includes(name) || body[name] === undefined) continue;
    const intended = misspelled(
      name,
      known.filter((one) => body[one] === undefined),
    );
    if (intended === undefined) continue;
    throw new TypeError(
      `${method}: no parameter is called ${name}; did you mean ${intended}? The option extraBody sends it as it is`,
    );
  }
}

/** Names and values of parameters, flat. */
function pairs(names: readonly string[], take: (name: string) => unknown): string[] {
  const list: string[] = [];
  for (const name of names) addPair(list, name, take(name));
  return list;
}

/** Whether the response is to be a stream: the types of the method follow from its parameters alone. */
function streams({ stream }: Operation, body: Members): boolean {
  if (typeof stream === "boolean") return stream;
  return typeof stream === "string" ? body[stream] === true : body[stream.parameter] === stream.word;
}

/** The operation with the kind of answer that these parameters ask for. */
function asAsked(operation: Operation, params: Members): Operation {
  const { textForm } = operation;
  const value = textForm && params[textForm.parameter];
  return textForm?.values.includes(value as string) ? { ...operation, answer: "text" } : operation;
}

/** A path parameter's value as text. Errors: TypeError; a missing id must not become `undefined` in a path. */
function pathValue(operation: Operation, name: string, value: unknown): string {
  if (typeof value === "string" || typeof value === "number") return String(value);
  const found = value === null ? "null" : typeof value;
  throw new TypeError(`${operation.name}: ${name} must be a string, not ${found}`);
}
