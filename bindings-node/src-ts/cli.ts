/** The `gatewright` program, run inside the Node process. Also used by `bin/gatewright.js`. */

import { createRequire } from "node:module";
import { dirname, join } from "node:path";

import { engine } from "./engine";
import { CallSite, failure } from "./failure";
import { platformName, serverPackage } from "./platform";

/**
 * Runs the program with the arguments after its name; returns its exit code. Blocks until it is done; signals have
 * their default meaning from then on. Errors: `InternalError`.
 */
export function runProgram(args: string[]): number {
  const code = engine.runProgram(args, serverFolders());
  if (typeof code === "string") throw failure(code, new CallSite(runProgram));
  return code;
}

/** Where the package of the server has its program, if it is installed. */
function serverFolders(): string[] {
  try {
    // The package of this platform is a dependency of the server's, which not every installer puts beside this one.
    const server = createRequire(require.resolve("@gatewright/server/package.json"));
    return [join(dirname(server.resolve(`${serverPackage(platformName())}/package.json`)), "bin")];
  } catch {
    return [];
  }
}
