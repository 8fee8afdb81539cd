/** The client: options in, resources out. */

import { Connection } from "./connection";
import { CallSite } from "./failure";
import type { CallDefaults, ClientOptions } from "./generated/options";
import { explainMissing } from "./missing";
import type { ClientAliases, TimeoutAlias } from "./options";
import { Resources } from "./resources";

const { version: VERSION } = require("../package.json") as { version: string };

/**
 * A client of one gateway. It has a connection pool, so create one client and share it.
 *
 * Errors: `ConfigurationError` if an option is missing or malformed; TypeError for an unknown option.
 *
 * @example
 * ```js
 * import { Client } from "gatewright";
 *
 * const client = new Client({ maxRetries: 4, timeoutMs: 60_000 }); // GATEWRIGHT_BASE_URL, GATEWRIGHT_API_KEY
 * for (const model of await client.models.list()) console.log(model.id);
 * ```
 */
export class Client extends Resources {
  constructor(options?: ClientOptions & ClientAliases);
  /** @internal */
  constructor(connection: Connection);
  constructor(given: (ClientOptions & ClientAliases) | Connection = {}) {
    super(given instanceof Connection ? given : Connection.open(given, userAgent(), new CallSite(Client)));
  }

  /**
   * A client with other default options for its calls, which shares this client's connections. Missing
   * options keep their values; headers, query parameters and body members are merged.
   *
   * Errors: `ConfigurationError` if an option is malformed.
   *
   * @example
   * ```js
   * import { Client } from "gatewright";
   *
   * const patient = new Client().withOptions({ timeoutMs: 1_800_000, maxRetries: 5 });
   * console.log((await patient.models.list()).data.length);
   * ```
   */
  withOptions(options: CallDefaults & TimeoutAlias): Client {
    return new Client(this.connection.withOptions(options, new CallSite(this.withOptions)));
  }

  /** The base URL of the gateway, without a path. */
  get baseUrl(): string {
    return this.connection.baseUrl;
  }
}

explainMissing();

function userAgent(): string {
  const { bun, node } = process.versions;
  return `gatewright-node/${VERSION} ${bun === undefined ? `node/${node}` : `bun/${bun}`}`;
}
