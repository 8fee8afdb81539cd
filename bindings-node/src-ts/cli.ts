/** The `gatewright` program, run inside the Node process. Also used by `bin/gatewright.js`. */

import { engine } from "./engine";
import { CallSite, failure } from "./failure";

/**
 * Runs the program with the arguments after its name; returns its exit code. Blocks until it is done; signals have
 * their default meaning from then on. Errors: `InternalError`.
 */
export function runProgram(args: string[]): number {
  const code = engine.runProgram(args);
  if (typeof code === "string") throw failure(code, new CallSite(runProgram));
  return code;
}
