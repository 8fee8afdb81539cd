// The operations as the page knows them, read from the specification at build time: each operation's path and its name in the
// clients. So the code in the playground can't differ from the clients.
import { readFileSync } from "node:fs";
import type { Plugin } from "vite";

const SPECIFICATION = new URL("../spec/generated/openapi-3.2.json", import.meta.url);
const NAME = "virtual:operations";

/** An operation of the specification. */
export interface Operation {
  method: string;
  path: string;
  /** Its resource in the clients: `chat.completions`. */
  resource: string;
  /** Its name there, in snake case. */
  name: string;
  /** The schema of its body. */
  body: string | null;
  /** Whether its response is always a stream. */
  streams: boolean;
  /** The stream methods that read to the end and return the whole answer; `null` if it can't stream. */
  final: Final | null;
}

interface Final {
  python: string;
  node: string;
}

interface Described {
  operationId: string;
  "x-resource": string;
  "x-method": string;
  "x-stream"?: { always?: boolean; final?: Final };
  requestBody?: { content: Record<string, { schema: { $ref?: string } }> };
}

function read(): Record<string, Operation> {
  const document = JSON.parse(readFileSync(SPECIFICATION, "utf8"));
  const operations: Record<string, Operation> = {};
  for (const [path, methods] of Object.entries<Record<string, Described>>(document.paths)) {
    for (const [method, described] of Object.entries(methods)) {
      if (typeof described.operationId !== "string") continue;
      const schema = described.requestBody?.content["application/json"]?.schema.$ref;
      operations[described.operationId] = {
        method: method.toUpperCase(),
        path,
        resource: described["x-resource"],
        name: described["x-method"],
        body: schema?.split("/").at(-1) ?? null,
        streams: described["x-stream"]?.always === true,
        final: described["x-stream"]?.final ?? null,
      };
    }
  }
  return operations;
}

/** Provides `virtual:operations`, built from the specification. */
export function operations(): Plugin {
  return {
    name: "operations",
    resolveId: (id) => (id === NAME ? `\0${NAME}` : null),
    load: (id) => (id === `\0${NAME}` ? `export default ${JSON.stringify(read())};` : null),
  };
}
