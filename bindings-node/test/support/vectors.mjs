// The vectors that all three languages read; tests/vectors/README.md describes them.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

// Set in the environment when the installed package is tested outside the repository.
const FOLDER =
  process.env.GATEWRIGHT_VECTORS ?? fileURLToPath(new URL("../../../tests/vectors", import.meta.url));

/** A file below the folder of vectors, parsed. */
export function readVectors(path) {
  return JSON.parse(readFileSync(join(FOLDER, path), "utf8"));
}

/** Names of the JSON files of a topic. */
export function vectorFiles(topic) {
  return readdirSync(join(FOLDER, topic)).filter((name) => name.endsWith(".json"));
}
