/** What every generated resource class is built on. */

import type { Connection } from "./connection";
import { CallSite } from "./failure";
import type { Operation } from "./generated/operations";
import type { ApiPromise } from "./promise";

/** Options of a single call. */
export interface RequestOptions {
  /** Aborting it drops the request, or closes the stream, at once. */
  signal?: AbortSignal | undefined;
  /** Bounds the whole call, all attempts together, in milliseconds. */
  timeoutMs?: number | undefined;
  /** Attempts after the first one. */
  maxRetries?: number | undefined;
  extraHeaders?: Readonly<Record<string, string>> | undefined;
  extraQuery?: Readonly<Record<string, string>> | undefined;
  /** Members added to the request's body, or put in place of those it has. */
  extraBody?: Readonly<Record<string, unknown>> | undefined;
}

/** A place on the client, with the methods that belong there. */
export abstract class Resource {
  /** The connection all resources of a client share. */
  protected readonly connection: Connection;

  /** Made by the client. */
  constructor(connection: Connection) {
    this.connection = connection;
    // Not shown when a client is printed: it holds nothing a reader could use.
    Object.defineProperty(this, "connection", { enumerable: false });
  }

  /** Sends one operation. `path`: its positional parameters, in path order. */
  protected send<T>(
    operation: Operation,
    path: readonly unknown[],
    params: object | null | undefined,
    options: RequestOptions | undefined,
  ): ApiPromise<T> {
    return this.connection.send<T>(operation, path, params, options, new CallSite(this.send));
  }
}
