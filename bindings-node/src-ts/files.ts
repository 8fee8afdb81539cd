/** Saves the files that records point to, for `client.images` and `client.videos`. The core fetches and writes them. */

import { fileURLToPath } from "node:url";
import type { EngineSaving } from "./engine";
import { SAVE_OPTIONS, type SaveOptions } from "./generated/options";
import { engineOptions } from "./options";

/** The arguments for saving a record, in the engine's format. Errors: TypeError if the path is invalid. */
export function engineSaving(
  kind: EngineSaving["kind"],
  record: object,
  path: string | URL,
  options: SaveOptions,
): EngineSaving {
  return {
    kind,
    ...((kind === "image" && contentsOf(record)) || { record: JSON.stringify(record) }),
    path: pathOf(path),
    options: engineOptions("save", options, SAVE_OPTIONS),
  };
}

/**
 * What counts of an image, as it is: its data may be long. Of an image whose members are not what they should be, nothing: by
 * its JSON the core says what is wrong.
 */
function contentsOf(image: unknown): Pick<EngineSaving, "url" | "b64Json"> | undefined {
  if (typeof image !== "object" || image === null || Array.isArray(image)) return undefined;
  const { url, b64_json } = image as Record<"url" | "b64_json", unknown>;
  if (!isTextOrAbsent(url) || !isTextOrAbsent(b64_json)) return undefined;
  return { url: url ?? undefined, b64Json: b64_json ?? undefined };
}

function isTextOrAbsent(value: unknown): value is string | null | undefined {
  return value === undefined || value === null || typeof value === "string";
}

function pathOf(path: unknown): string {
  if (typeof path === "string") return path;
  if (path instanceof URL) return fileURLToPath(path);
  throw new TypeError(
    `save: path must be a string or a file: URL, not ${path === null ? "null" : typeof path}`,
  );
}
