// The program `gatewright serve`, with its simulated provider.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const REPOSITORY = fileURLToPath(new URL("../../..", import.meta.url));
const PROGRAM = process.env.GATEWRIGHT_BIN ?? join(REPOSITORY, "target/debug/gatewright");

/** Starts a gateway at a free port; it is stopped when the test `t` ends. */
export async function startGateway(t) {
  const gateway = spawn(PROGRAM, ["serve", "--json", "--listen", "127.0.0.1:0"], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  t.after(() => gateway.kill());
  const lines = createInterface({ input: gateway.stdout });
  const [line] = await once(lines, "line");
  const { listening, key } = JSON.parse(line);
  return { baseUrl: listening, apiKey: key };
}
