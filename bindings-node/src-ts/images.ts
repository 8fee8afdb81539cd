/** `client.images`: saving images (specification 2.11), beside the generated methods. */

import { CallSite } from "./failure";
import type { SaveOptions } from "./files";
import { ImagesResource } from "./generated/resources";
import type { Image } from "./generated/types";

/** `client.images`, with a method that saves. */
export class Images extends ImagesResource {
  /**
   * Saves an image of an answer's `data`, in whichever form it came; gives its size in bytes.
   *
   * Its `b64_json` is decoded, its `url` streamed to disk. The file is there whole or not at all: it is written beside
   * its place and renamed at the end. A transfer that breaks off is taken up again once, where it stopped if the server
   * can tell that the file is still the same. The key is not sent. The image is stored as it is, whatever the path ends
   * in.
   *
   * Errors: `FileError` for trouble with the disk or with what is at `path`, `InvalidRequestError` where there is neither
   * `b64_json` nor `url`, `DecodeError` where `b64_json` is not base64 or the file longer than allowed, `APIStatusError`
   * where the address has expired (8: one hour), say, `APIConnectionError`.
   *
   * Source: specification 2.11, 4.
   *
   * @param path A path, or a `file:` URL. A symbolic link is followed.
   */
  save(image: Image, path: string | URL, options: SaveOptions = {}): Promise<number> {
    return this.connection.save("image", image, path, options, new CallSite(this.save));
  }
}
