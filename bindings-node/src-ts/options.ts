/** Converts options of a client and of a call for the engine. The options themselves are generated. */

import {
  CALL_DEFAULTS,
  type CallDefaults,
  CLIENT_OPTIONS,
  type ClientOptions,
  type Crossing,
  type EngineClientOptions,
  type EngineRequestOptions,
  REQUEST_OPTIONS,
  type RequestOptions,
  VARIABLES,
} from "./generated/options";
import { jsonOf } from "./json";
import { suggestion } from "./spelling";

/**
 * Returns the key. `refresh`: the gateway has just rejected the previous one.
 *
 * @example
 * ```js
 * import { Client } from "gatewright";
 *
 * let kept;
 * const read = async () => process.env.GATEWRIGHT_API_KEY;
 * const client = new Client({
 *   apiKey: async ({ refresh }) => {
 *     if (refresh || kept === undefined) kept = await read();
 *     return kept;
 *   },
 * });
 * await client.models.list();
 * ```
 */
export type ApiKeyFunction = (request: { readonly refresh: boolean }) => string | Promise<string>;

/** `timeoutMs` under its name in other SDKs. */
export interface TimeoutAlias {
  /** The same as `timeoutMs`, under its name in other SDKs. In milliseconds. */
  timeout?: number | undefined;
}

/** Options of a client under their names in other SDKs. */
export interface ClientAliases extends TimeoutAlias {
  /** The same as `baseUrl`, under its name in other SDKs. */
  baseURL?: string | undefined;
}

/** Options that have another name, too. */
const ALIASES: Readonly<Record<string, string>> = { baseURL: "baseUrl", timeout: "timeoutMs" };

/** Names of the options in other SDKs, to help users who migrate. */
const OTHER_NAMES: Readonly<Record<string, string>> = {
  ...ALIASES,
  headers: "extraHeaders",
  query: "extraQuery",
  body: "extraBody",
};

/** Rejects unknown options: ignoring them silently would hide a mistake. `known`: by name. */
export function refuseUnknown(place: string, options: object, known: object): void {
  for (const name of Object.keys(options)) {
    if (Object.hasOwn(known, name)) continue;
    const ownName =
      OTHER_NAMES[name] ?? name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
    const hint = Object.hasOwn(known, ownName)
      ? `; it is called ${ownName} here`
      : suggestion(name, Object.keys(known));
    throw new TypeError(`${place}: no option is called ${name}${hint}`);
  }
}

/** The options under our names. Errors: TypeError for an option that is unknown, or given under both of its names. */
function named<O extends object>(place: string, options: O & ClientAliases, known: object): O {
  const renamed = { ...options } as Record<string, unknown>;
  for (const [alias, name] of Object.entries(ALIASES)) {
    if (!Object.hasOwn(renamed, alias) || !Object.hasOwn(known, name)) continue;
    if (Object.hasOwn(renamed, name))
      throw new TypeError(`${place}: ${alias} and ${name} are the same option`);
    renamed[name] = renamed[alias];
    delete renamed[alias];
  }
  refuseUnknown(place, renamed, known);
  return renamed as unknown as O;
}

/** Options of a client in the engine's format. Passes only those that were set: the core knows the defaults. */
export function engineClientOptions(
  from: ClientOptions & ClientAliases,
  userAgent: string,
): EngineClientOptions {
  const options = named<ClientOptions>("Client", from, CLIENT_OPTIONS);
  const { apiKey, middleware } = options;
  const given: EngineClientOptions = {
    userAgent,
    ...environment(apiKey),
    ...crossing(options, CLIENT_OPTIONS),
  };
  if (typeof apiKey === "function") given.asksForKey = true;
  else if (typeof apiKey === "string") given.apiKey = apiKey;
  if (middleware != null) {
    given.middleware = middleware.map(({ before, after }) => ({
      before: before !== undefined,
      after: after !== undefined,
    }));
  }
  return given;
}

/**
 * The variables that the core would read itself. Workers and Bun have copies of the environment, so the core does not
 * see variables that a program sets there.
 */
function environment(apiKey: ClientOptions["apiKey"]): EngineClientOptions {
  const given: EngineClientOptions = {};
  for (const [option, variable] of Object.entries(VARIABLES) as [keyof typeof VARIABLES, string][]) {
    const value = process.env[variable];
    if (value) given[option] = value;
  }
  if (typeof apiKey === "function") delete given.apiKey;
  return given;
}

/** Options of all calls of a client, in the engine's format. */
export function engineCallDefaults(options: CallDefaults & TimeoutAlias): EngineRequestOptions {
  return crossing(named<CallDefaults>("withOptions", options, CALL_DEFAULTS), CALL_DEFAULTS);
}

/** Options of a call of `place`, in the engine's format; `undefined` if there are none. */
export function engineRequestOptions(
  place: string,
  options: RequestOptions | null | undefined,
): EngineRequestOptions | undefined {
  if (options === undefined || options === null) return undefined;
  return crossing(named<RequestOptions>(place, options, REQUEST_OPTIONS), REQUEST_OPTIONS);
}

/** Options of work other than a call, in the engine's format. Errors: TypeError for an option that is unknown. */
export function engineOptions(
  place: string,
  options: object,
  table: Readonly<Record<string, Crossing>>,
): object {
  return crossing(named(place, options, table), table);
}

/** The options that are set and are data, each in the engine's format. */
function crossing(options: object, table: Readonly<Record<string, Crossing>>): object {
  const given: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(options)) {
    const form = table[name];
    if (value === undefined || value === null || form === undefined || form === "stays") continue;
    given[name] = FORMS[form](value, name);
  }
  return given;
}

const FORMS: Readonly<Record<Exclude<Crossing, "stays">, (value: unknown, name: string) => unknown>> = {
  plain: (value) => value,
  pairs: (value) => flat(value as object),
  members: (value, name) => jsonOf(name, value),
  address: (value) => {
    if (value === false) return "";
    if (typeof value === "string") return value;
    throw new TypeError("proxy must be an address, or false for no proxy");
  },
};

/** Name, value, name, value. Of an object, or of what iterates over pairs: `Headers`, `URLSearchParams`, a `Map`. */
function flat(pairs: object): string[] {
  const list: string[] = [];
  const entries = Symbol.iterator in pairs ? (pairs as Iterable<[string, unknown]>) : Object.entries(pairs);
  for (const [name, value] of entries) addPair(list, name, value);
  return list;
}

/** Adds the value of a parameter: one pair per item of an array, none if it is missing. */
export function addPair(pairs: string[], name: string, value: unknown): void {
  if (value === undefined || value === null) return;
  for (const item of Array.isArray(value) ? value : [value]) pairs.push(name, String(item));
}
