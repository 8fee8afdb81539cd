/** The client: options in, resources out. */

import { Connection } from "./connection";
import { ClientResources } from "./generated/resources";
import { VideosWithWaiting } from "./videos";

/** How a client is made. What is left out comes from the environment or has a default. */
export interface ClientOptions {
  /** Bare host of the gateway; a trailing `/v1` or `/v1beta` is dropped. Default: `GATEWRIGHT_BASE_URL`. */
  baseUrl?: string | undefined;
  /** Key sent as a bearer token. Default: `GATEWRIGHT_API_KEY`. */
  apiKey?: string | undefined;
  /** Bounds a call as a whole, all attempts together, in milliseconds. Default: 600000. */
  timeoutMs?: number | undefined;
  /** Bounds the making of a connection, in milliseconds. Default: 5000. */
  connectTimeoutMs?: number | undefined;
  /** Bounds the silence within an answer, in milliseconds. */
  idleTimeoutMs?: number | undefined;
  /** Attempts after the first one. Default: 2. */
  maxRetries?: number | undefined;
}

/**
 * A client of one gateway. Holds a pool of connections: make one and share it.
 *
 * Errors: `ConfigurationError` if an option is missing or malformed.
 */
export class Client extends ClientResources {
  override readonly videos: VideosWithWaiting = new VideosWithWaiting(this.connection);

  constructor(options: ClientOptions = {}) {
    const given = Object.entries({
      ...options,
      baseUrl: options.baseUrl ?? process.env["GATEWRIGHT_BASE_URL"],
      apiKey: options.apiKey ?? process.env["GATEWRIGHT_API_KEY"],
    }).filter(([, value]) => value !== undefined && value !== null);
    super(new Connection(Object.fromEntries(given), Client));
  }

  /** The bare host requests go to. */
  get baseUrl(): string {
    return this.connection.baseUrl;
  }
}
