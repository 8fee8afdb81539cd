/** `client.images`: saves images, in addition to the generated methods. */

import { CallSite } from "./failure";
import type { SaveOptions } from "./generated/options";
import { ImagesResource } from "./generated/resources";
import type { Image } from "./generated/types";

/** `client.images`, with a method that saves. */
export class Images extends ImagesResource {
  /**
   * Saves an image of a response's `data`; returns its size in bytes.
   *
   * Decodes its `b64_json`, or streams its `url` to disk. The data goes to a temporary file, which is renamed
   * at the end, so the file is written completely or not at all. A broken transfer is retried once: from
   * where it broke off if the server confirms that the file is unchanged, else from the start. The API key is
   * not sent. The format is not converted, whatever the extension of the path.
   *
   * Errors: `FileError` for a problem with the disk or with `path`, `InvalidRequestError` if there is neither
   * `b64_json` nor `url`, `DecodeError` if `b64_json` is not base64 or the file is longer than allowed,
   * `APIStatusError` if, for example, the URL has expired (it is valid for one hour), `APIConnectionError`.
   *
   * Source: sections 2.11 and 4 of the specification.
   *
   * @param path A path, or a `file:` URL. A symbolic link is followed.
   *
   * @example
   * ```js
   * import { Client } from "gatewright";
   *
   * const client = new Client();
   * const { data } = await client.images.generate({ model: "image_model_2", prompt: "A boat at sea.", size: "256x256" });
   * console.log(await client.images.save(data[0], "boat.png", { maxBytes: 50_000_000 }), "bytes");
   * ```
   */
  save(image: Image, path: string | URL, options: SaveOptions = {}): Promise<number> {
    return this.connection.save("image", image, path, options, new CallSite(this.save));
  }
}
