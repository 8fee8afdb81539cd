/** The resources of a client: the generated ones, replaced in part by those with hand-written methods. */

import { ClientResources } from "./generated/resources";
import { Images } from "./images";
import { Videos } from "./videos";
import * as webhooks from "./webhooks";

/** All resources of a client; `Client` adds the constructor. */
export class Resources extends ClientResources {
  override readonly videos: Videos = new Videos(this.connection);
  override readonly images: Images = new Images(this.connection);
  /** The same as the functions of `webhooks`. */
  readonly webhooks: typeof webhooks = webhooks;
}
