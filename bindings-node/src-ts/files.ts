/** Saving what records point to, for `client.images` and `client.videos`. Fetching and writing are the core's. */

import { fileURLToPath } from "node:url";

import type { NativeSaving } from "./native";

/** How a file is saved. */
export interface SaveOptions {
  /** Whether a file that is there is replaced. Default: `true`. */
  overwrite?: boolean | undefined;
  /** Bounds the file, in bytes. Default: 4 GiB. */
  maxBytes?: number | undefined;
  /** Bounds all of it, in milliseconds. Default: none; the client's `connectTimeoutMs` and `idleTimeoutMs` hold. */
  timeoutMs?: number | undefined;
  /** Aborting it ends the transfer at once; nothing is left behind. */
  signal?: AbortSignal | undefined;
}

/** The saving of a record as it crosses over. Errors: TypeError where the path is none. */
export function nativeSaving(
  kind: NativeSaving["kind"],
  record: object,
  path: string | URL,
  { overwrite, maxBytes, timeoutMs }: SaveOptions,
): NativeSaving {
  const saving: NativeSaving = { kind, record: JSON.stringify(record), path: pathOf(path) };
  if (overwrite !== undefined) saving.overwrite = overwrite;
  if (maxBytes !== undefined) saving.maxBytes = maxBytes;
  if (timeoutMs !== undefined) saving.timeoutMs = timeoutMs;
  return saving;
}

function pathOf(path: unknown): string {
  if (typeof path === "string") return path;
  if (path instanceof URL) return fileURLToPath(path);
  throw new TypeError(
    `save: path must be a string or a file: URL, not ${path === null ? "null" : typeof path}`,
  );
}
