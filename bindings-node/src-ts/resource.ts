/** What every generated resource class is built on. */

import type { Connection } from "./connection";
import { CallSite } from "./failure";
import type { Operation } from "./generated/operations";
import type { RequestOptions } from "./options";
import type { ApiPromise } from "./promise";
import { Stream, type StreamClass } from "./stream";

export type { RequestOptions };

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

  /** Sends one operation. `path`: its positional parameters, in path order. `stream`: what its events come as. */
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
