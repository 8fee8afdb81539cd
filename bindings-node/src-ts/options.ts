/** Options of a client and of a call, as callers give them and as they cross over. */

import type { Middleware } from "./callbacks";
import type { NativeClientOptions, NativeRequestOptions } from "./native";

/** How a client is made. What is left out comes from the environment or has a default. */
export interface ClientOptions {
  /**
   * Bare host of the gateway; a trailing `/v1` or `/v1beta` is dropped. Default: `GATEWRIGHT_BASE_URL`, else
   * `http://127.0.0.1:8080`.
   */
  baseUrl?: string | undefined;
  /**
   * Key sent as a bearer token, or a function that gives it, at once or by a promise. It is asked for each call, so
   * it should keep the key; once after a 401 it is asked with `refresh`, and the call is tried once more. What it
   * throws, the call throws. Default: `GATEWRIGHT_API_KEY`.
   */
  apiKey?: string | ApiKeyFunction | undefined;
  /**
   * Bounds a call as a whole, all attempts and pauses together; of a stream, until its head has arrived, and from then
   * on the longest silence, unless `idleTimeoutMs` is given. Milliseconds, as every time; `Infinity` is no limit.
   * Default: 600000.
   */
  timeoutMs?: number | undefined;
  /** Bounds the making of a connection. Milliseconds. Default: 5000. */
  connectTimeoutMs?: number | undefined;
  /** Bounds the time until the head of an answer, for each attempt. Milliseconds. Default: no bound of its own. */
  firstByteTimeoutMs?: number | undefined;
  /**
   * Bounds the time without a byte of an answer that has begun. Milliseconds. Default: 120000, or `timeoutMs` if
   * shorter.
   */
  idleTimeoutMs?: number | undefined;
  /** Bounds the time without an event of a stream; keep-alive comments do not count. Milliseconds. Default: 600000. */
  eventTimeoutMs?: number | undefined;
  /** Attempts after the first one. Default: 2. */
  maxRetries?: number | undefined;
  /** Bounds the body of an answer, in bytes. Default: 256 MiB. */
  maxBodyBytes?: number | undefined;
  /** Most requests under way at once, open streams among them. Default: 1000. */
  maxConnections?: number | undefined;
  /** Bounds the wait for one of them; then `PoolTimeoutError`. Milliseconds. Default: 60000. */
  poolTimeoutMs?: number | undefined;
  /** Most connections kept open for later requests. Default: 100. */
  maxIdleConnections?: number | undefined;
  /** How long an unused connection is kept open. Milliseconds. Default: 90000. */
  idleConnectionTimeoutMs?: number | undefined;
  /**
   * URL of a proxy for everything (`http:`, `https:`, `socks5:`), or `false` for none. Default: as `HTTP_PROXY`,
   * `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY` say.
   */
  proxy?: string | false | undefined;
  /**
   * PEM file of certificate authorities to trust beside the platform's and the bundled ones. Default:
   * `GATEWRIGHT_CA_BUNDLE`.
   */
  caBundle?: string | undefined;
  /** PEM file with the certificate chain and the key to show to servers that ask for them. */
  clientCertificate?: string | undefined;
  /** Headers of every request; those of a call replace them. */
  defaultHeaders?: Readonly<Record<string, string>> | undefined;
  /** Query parameters of every request; those of a call replace them. */
  defaultQuery?: Readonly<Record<string, string>> | undefined;
  /** What runs around every attempt of every call, the outermost first. */
  middleware?: readonly Middleware[] | undefined;
  /**
   * Whether a request for a model of the catalog is checked before it is sent: against the rules of the specification,
   * the limits of the model and the endpoint that serves it; then `InvalidRequestError` tells all violations at once, at
   * most 100. Never checked: requests for other models, members the specification does not describe, and what only the
   * gateway knows, such as whether a response that is named exists. An answer is checked for what 2.7 and 2.11 promise;
   * then `DecodeError` tells them. Default: `false`.
   */
  validate?: boolean | undefined;
}

/** Gives the key. `refresh`: the gateway has just refused the one given before. */
export type ApiKeyFunction = (request: { readonly refresh: boolean }) => string | Promise<string>;

/** What may be said of all calls of a client as well as of a single one. */
export interface CallDefaults {
  /**
   * Bounds the whole call, all attempts together, in milliseconds; of a stream, until its head has arrived, and from
   * then on the longest silence, unless an `idleTimeoutMs` is given, here or to the client.
   */
  timeoutMs?: number | undefined;
  /** Bounds the time until the head of the answer, for each attempt, in milliseconds. */
  firstByteTimeoutMs?: number | undefined;
  /**
   * Bounds the time without a byte of an answer that has begun, in milliseconds. Where none is given: two minutes, or
   * `timeoutMs` if shorter.
   */
  idleTimeoutMs?: number | undefined;
  /** Bounds the time without an event of a stream, in milliseconds. */
  eventTimeoutMs?: number | undefined;
  /** Attempts after the first one. */
  maxRetries?: number | undefined;
  extraHeaders?: Readonly<Record<string, string>> | undefined;
  extraQuery?: Readonly<Record<string, string>> | undefined;
  /** Members added to the request's body, or put in place of those it has. */
  extraBody?: Readonly<Record<string, unknown>> | undefined;
  /**
   * Whether a request for a model of the catalog is checked before it is sent: against the rules of the specification,
   * the limits of the model and the endpoint that serves it; then `InvalidRequestError` tells all violations at once, at
   * most 100. Never checked: requests for other models, members the specification does not describe, and what only the
   * gateway knows, such as whether a response that is named exists. An answer is checked for what 2.7 and 2.11 promise;
   * then `DecodeError` tells them.
   */
  validate?: boolean | undefined;
}

/** Options of a single call. */
export interface RequestOptions extends CallDefaults {
  /** Aborting it drops the request, or closes the stream, at once; the reason is the error's `cause`. */
  signal?: AbortSignal | undefined;
  /** What makes the attempts of the call one and the same to the gateway. Default: made up for each call. */
  idempotencyKey?: string | undefined;
}

const CALL_DEFAULTS: ReadonlySet<string> = new Set<keyof CallDefaults>([
  "timeoutMs",
  "firstByteTimeoutMs",
  "idleTimeoutMs",
  "eventTimeoutMs",
  "maxRetries",
  "extraHeaders",
  "extraQuery",
  "extraBody",
  "validate",
]);
const REQUEST_OPTIONS: ReadonlySet<string> = new Set([...CALL_DEFAULTS, "signal", "idempotencyKey"]);
const CLIENT_OPTIONS: ReadonlySet<string> = new Set<keyof ClientOptions>([
  "baseUrl",
  "apiKey",
  "timeoutMs",
  "connectTimeoutMs",
  "firstByteTimeoutMs",
  "idleTimeoutMs",
  "eventTimeoutMs",
  "maxRetries",
  "maxBodyBytes",
  "maxConnections",
  "poolTimeoutMs",
  "maxIdleConnections",
  "idleConnectionTimeoutMs",
  "proxy",
  "caBundle",
  "clientCertificate",
  "defaultHeaders",
  "defaultQuery",
  "middleware",
  "validate",
]);

/** What other SDKs call the options, to help those who come from them. */
const OTHER_NAMES: Readonly<Record<string, string>> = {
  baseURL: "baseUrl",
  timeout: "timeoutMs",
  headers: "extraHeaders",
  query: "extraQuery",
  body: "extraBody",
};

/** Refuses options that do not exist: dropping them in silence would hide a slip. */
export function refuseUnknown(place: string, options: object, known: ReadonlySet<string>): void {
  for (const name of Object.keys(options)) {
    if (known.has(name)) continue;
    const meant = OTHER_NAMES[name] ?? name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
    const hint = known.has(meant) ? `; it is called ${meant} here` : "";
    throw new TypeError(`${place}: no option is called ${name}${hint}`);
  }
}

/** Options of a client as they cross over. Only what was given does: the core knows the defaults. */
export function nativeClientOptions(options: ClientOptions, userAgent: string): NativeClientOptions {
  refuseUnknown("Client", options, CLIENT_OPTIONS);
  const { apiKey, proxy, defaultHeaders, defaultQuery, middleware, ...rest } = options;
  const given: NativeClientOptions = { userAgent, ...environment(apiKey), ...withoutMissing(rest) };
  if (typeof apiKey === "function") given.asksForKey = true;
  else if (typeof apiKey === "string") given.apiKey = apiKey;
  if (typeof proxy === "string" || proxy === false) given.proxy = proxy === false ? "" : proxy;
  if (defaultHeaders != null) given.defaultHeaders = flat(defaultHeaders);
  if (defaultQuery != null) given.defaultQuery = flat(defaultQuery);
  if (middleware != null) {
    given.middleware = middleware.map(({ before, after }) => ({
      before: before !== undefined,
      after: after !== undefined,
    }));
  }
  return given;
}

/**
 * The variables the core would read itself. Workers, and Bun, have copies of the environment: what a program sets
 * there, the core does not see.
 */
function environment(apiKey: ClientOptions["apiKey"]): Partial<NativeClientOptions> {
  const { GATEWRIGHT_BASE_URL, GATEWRIGHT_API_KEY, GATEWRIGHT_CA_BUNDLE } = process.env;
  return withoutMissing({
    baseUrl: GATEWRIGHT_BASE_URL || undefined,
    apiKey: typeof apiKey === "function" ? undefined : GATEWRIGHT_API_KEY || undefined,
    caBundle: GATEWRIGHT_CA_BUNDLE || undefined,
  });
}

/** Options of all calls of a client, as they cross over. */
export function nativeCallDefaults(options: CallDefaults): NativeRequestOptions {
  refuseUnknown("withOptions", options, CALL_DEFAULTS);
  return crossing(options);
}

/** Options of a call of `place`, as they cross over; `undefined` if nothing was said. */
export function nativeRequestOptions(
  place: string,
  options: RequestOptions | null | undefined,
): NativeRequestOptions | undefined {
  if (options === undefined || options === null) return undefined;
  refuseUnknown(place, options, REQUEST_OPTIONS);
  const { signal: _, ...rest } = options;
  return crossing(rest);
}

function crossing(options: Omit<RequestOptions, "signal">): NativeRequestOptions {
  const { extraHeaders, extraQuery, extraBody, ...rest } = options;
  const given: NativeRequestOptions = withoutMissing(rest);
  if (extraHeaders != null) given.headers = flat(extraHeaders);
  if (extraQuery != null) given.query = flat(extraQuery);
  if (extraBody != null) given.body = JSON.stringify(extraBody);
  return given;
}

/** A copy without the members that are `undefined` or null. */
function withoutMissing<T extends object>(members: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  const given = Object.entries(members).filter(([, value]) => value !== undefined && value !== null);
  return Object.fromEntries(given) as { [K in keyof T]?: Exclude<T[K], undefined> };
}

/** Name, value, name, value. */
function flat(pairs: Readonly<Record<string, unknown>>): string[] {
  const list: string[] = [];
  for (const [name, value] of Object.entries(pairs)) addPair(list, name, value);
  return list;
}

/** Adds a parameter's value; one pair for each item of an array, none if it is missing. */
export function addPair(pairs: string[], name: string, value: unknown): void {
  if (value === undefined || value === null) return;
  for (const item of Array.isArray(value) ? value : [value]) pairs.push(name, String(item));
}
