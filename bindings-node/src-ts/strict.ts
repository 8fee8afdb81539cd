/** Makes JSON Schemas strict, in the form that providers require of structured output and of strict tools. */

import type { JsonSchema } from "./standard";

/** Maximum nesting of a schema, including copied references. */
const MAX_SCHEMA_DEPTH = 64;
/** Maximum number of schemas within a schema, including copies. */
const MAX_SCHEMA_NODES = 10_000;

type Members = Record<string, unknown>;

/**
 * A copy in which every property is required and no other is allowed; references with siblings are replaced
 * by their targets, and null defaults are removed. Errors: TypeError if it is too large, or has a reference
 * that leads nowhere.
 */
export function strictSchema(schema: JsonSchema): JsonSchema {
  let left = MAX_SCHEMA_NODES;

  function strict(given: unknown, depth: number): unknown {
    if (!isObject(given)) return given;
    left -= 1;
    if (depth > MAX_SCHEMA_DEPTH || left < 0) {
      throw new TypeError(
        `the schema nests deeper than ${MAX_SCHEMA_DEPTH} levels or has more than ${MAX_SCHEMA_NODES} parts; ` +
          "perhaps it refers to itself beside other keywords, such as a description",
      );
    }
    let made: Members = { ...given };
    for (const name of ["$defs", "definitions", "properties"]) {
      const members = made[name];
      if (!isObject(members)) continue;
      made[name] = Object.fromEntries(
        Object.entries(members).map(([key, value]) => [key, strict(value, depth + 1)]),
      );
    }
    if (made["type"] === "object" && !("additionalProperties" in made)) made["additionalProperties"] = false;
    if (isObject(made["properties"])) made["required"] = Object.keys(made["properties"]);
    if ("items" in made) made["items"] = strict(made["items"], depth + 1);
    for (const name of ["anyOf", "allOf"]) {
      const variants = made[name];
      if (Array.isArray(variants)) made[name] = variants.map((variant) => strict(variant, depth + 1));
    }
    const { allOf: parts, ...others } = made;
    if (Array.isArray(parts) && parts.length === 1 && isObject(parts[0])) made = { ...others, ...parts[0] };
    if (made["default"] === null) delete made["default"];
    const { $ref: reference, ...siblings } = made;
    if (typeof reference !== "string" || Object.keys(siblings).length === 0) return made;
    return strict({ ...resolved(schema, reference), ...siblings }, depth + 1);
  }

  return strict(schema, 0) as JsonSchema;
}

/** The target of a reference within a schema. */
function resolved(root: JsonSchema, reference: string): Members {
  let found: unknown = root;
  for (const step of reference.replace(/^#\/?/, "").split("/")) {
    const name = step.replaceAll("~1", "/").replaceAll("~0", "~");
    found = isObject(found) && Object.hasOwn(found, name) ? found[name] : undefined;
  }
  if (!reference.startsWith("#/") || !isObject(found)) {
    throw new TypeError(`the schema refers to ${JSON.stringify(reference)}, which is not in it`);
  }
  return found;
}

function isObject(value: unknown): value is Members {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
