/** Saves the files that records point to, for `client.images` and `client.videos`. The core fetches and writes them. */

import { fileURLToPath } from "node:url";
import type { EngineSaving } from "./engine";
import { SAVE_OPTIONS, type SaveOptions } from "./generated/options";
import { crossing } from "./options";

/** The arguments for saving a record, in the engine's format. Errors: TypeError if the path is invalid. */
export function engineSaving(
  kind: EngineSaving["kind"],
  record: object,
  path: string | URL,
  options: SaveOptions,
): EngineSaving {
  return {
    kind,
    record: JSON.stringify(record),
    path: pathOf(path),
    options: crossing(options, SAVE_OPTIONS),
  };
}

function pathOf(path: unknown): string {
  if (typeof path === "string") return path;
  if (path instanceof URL) return fileURLToPath(path);
  throw new TypeError(
    `save: path must be a string or a file: URL, not ${path === null ? "null" : typeof path}`,
  );
}
