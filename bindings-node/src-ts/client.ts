/** The client: options in, resources out. */

import { Connection } from "./connection";
import { ClientResources } from "./generated/resources";
import { VideosWithWaiting } from "./videos";

const { version: VERSION } = require("../package.json") as { version: string };

/** How a client is made. What is left out comes from the environment or has a default. */
export interface ClientOptions {
  /**
   * Bare host of the gateway; a trailing `/v1` or `/v1beta` is dropped. Default: `GATEWRIGHT_BASE_URL`, else
   * `http://127.0.0.1:8080`.
   */
  baseUrl?: string | undefined;
  /** Key sent as a bearer token. Default: `GATEWRIGHT_API_KEY`. */
  apiKey?: string | undefined;
  /**
   * Bounds a call as a whole, all attempts and pauses together; of a stream, until its head has arrived.
   * Milliseconds. Default: 600000.
   */
  timeoutMs?: number | undefined;
  /** Bounds the making of a connection. Milliseconds. Default: 5000. */
  connectTimeoutMs?: number | undefined;
  /** Bounds the time without a byte of an answer that has begun. Milliseconds. Default: 120000. */
  idleTimeoutMs?: number | undefined;
  /** Bounds the time without an event of a stream; keep-alive comments do not count. Milliseconds. Default: 600000. */
  eventTimeoutMs?: number | undefined;
  /** Attempts after the first one. Default: 2. */
  maxRetries?: number | undefined;
  /** Whether requests for models of the catalog are checked against their limits before they are sent. Default: `false`. */
  validate?: boolean | undefined;
}

/**
 * A client of one gateway. Holds a pool of connections: make one and share it.
 *
 * Errors: `ConfigurationError` if an option is missing or malformed.
 */
export class Client extends ClientResources {
  override readonly videos: VideosWithWaiting = new VideosWithWaiting(this.connection);

  constructor(options: ClientOptions = {}) {
    // The core reads the environment and knows the defaults: only what was given goes over.
    const given = Object.entries(options).filter(([, value]) => value !== undefined && value !== null);
    const userAgent = `gatewright-node/${VERSION} node/${process.versions.node}`;
    super(new Connection({ ...Object.fromEntries(given), userAgent }, Client));
  }

  /** The bare host requests go to. */
  get baseUrl(): string {
    return this.connection.baseUrl;
  }
}
