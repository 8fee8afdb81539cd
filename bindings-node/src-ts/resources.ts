/** What hangs on a client: the generated resources, and those with methods written by hand in their place. */

import { ClientResources } from "./generated/resources";
import { Images } from "./images";
import { Videos } from "./videos";
import * as webhooks from "./webhooks";

/** Everything a client offers; `Client` adds how it is made. */
export class Resources extends ClientResources {
  override readonly videos: Videos = new Videos(this.connection);
  override readonly images: Images = new Images(this.connection);
  /** The same as the functions of `webhooks`. */
  readonly webhooks: typeof webhooks = webhooks;
}
