/** The resources of a client: the generated ones, replaced in part by those with hand-written methods. */

import { Chat } from "./chat";
import { ClientResources } from "./generated/resources";
import { Images } from "./images";
import { Messages } from "./messages";
import { Native } from "./native";
import { Responses } from "./responses";
import { Videos } from "./videos";
import * as webhooks from "./webhooks";

/** All resources of a client; `Client` adds the constructor. */
export class Resources extends ClientResources {
  override readonly chat: Chat = new Chat(this.connection);
  override readonly responses: Responses = new Responses(this.connection);
  override readonly messages: Messages = new Messages(this.connection);
  override readonly native: Native = new Native(this.connection);
  override readonly videos: Videos = new Videos(this.connection);
  override readonly images: Images = new Images(this.connection);
  /** The same as the functions of `webhooks`. */
  readonly webhooks: typeof webhooks = webhooks;
}
