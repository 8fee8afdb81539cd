/** The base of every generated resource class. */

import type { Connection } from "./connection";
import { CallSite } from "./failure";
import type { RequestOptions as GeneratedOptions } from "./generated/options";
import type { Operation } from "./operation";
import type { TimeoutAlias } from "./options";
import type { ApiPromise } from "./promise";
import { Stream, type StreamClass } from "./stream";

/** Options of a single call, under their names in other SDKs, too. */
export type RequestOptions = GeneratedOptions & TimeoutAlias;

/** A group of methods on the client. */
export abstract class Resource {
  /** The connection all resources of a client share. */
  protected readonly connection: Connection;

  /** Created by the client. */
  constructor(connection: Connection) {
    this.connection = connection;
    // Not shown when a client is printed: it contains nothing of use to the reader.
    Object.defineProperty(this, "connection", { enumerable: false });
  }

  /** Sends one operation. `path`: its positional parameters, in path order. `stream`: the class of its events. */
  protected send<T>(
    operation: Operation,
    path: readonly unknown[],
    params: object | null | undefined,
    options: RequestOptions | undefined,
    stream: StreamClass = Stream,
  ): ApiPromise<T> {
    return this.connection.send<T>(operation, path, params, options, new CallSite(this.send), stream);
  }
}
