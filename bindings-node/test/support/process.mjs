// Runs programs in separate processes, to test how a process ends.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

/** Why a test is skipped on Deno; false on other runtimes. */
export const notOnDeno = (why) => process.versions.deno !== undefined && why;

/** Every program here finishes long before; one that does not would hang. */
const TIME_LIMIT_MS = 15_000;

/**
 * Runs a module's source and gives its exit code, signal, output (both streams) and duration. An unhandled rejection
 * ends it with an error, whatever the runtime's default. `GATEWRIGHT_API_KEY` is set.
 */
export async function runModule(source, environment = {}) {
  const started = performance.now();
  const child = spawn(process.execPath, argumentsFor(source), {
    cwd: fileURLToPath(new URL("..", import.meta.url)),
    env: { ...process.env, GATEWRIGHT_API_KEY: "sk-test", ...environment },
    stdio: ["pipe", "pipe", "pipe"],
    timeout: TIME_LIMIT_MS,
  });
  child.stdin.end(process.versions.deno === undefined ? "" : source);
  let output = "";
  child.stdout.on("data", (data) => (output += data));
  child.stderr.on("data", (data) => (output += data));
  const [code, signal] = await once(child, "close");
  return { code, signal, output, durationMs: performance.now() - started };
}

/** The arguments with which this runtime runs a module's source; Deno reads it from standard input. */
function argumentsFor(source) {
  const { bun, deno } = process.versions;
  if (deno !== undefined) return ["run", "--allow-all", "--no-lock", "-"];
  return [
    ...(bun === undefined ? ["--unhandled-rejections=strict"] : []),
    "--input-type=module",
    "--eval",
    source,
  ];
}
