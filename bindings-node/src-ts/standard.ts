/** Schemas of other packages: the interfaces of https://standardschema.dev that zod 4.2, valibot and arktype implement. */

/** A schema that validates values. `Output`: what it makes of them. */
export interface StandardSchema<Output = unknown> {
  /** The interface of the schema. */
  readonly "~standard": {
    /** Version of the interface. */
    readonly version: 1;
    /** The package. */
    readonly vendor: string;
    /** The value, or what is wrong with it. */
    readonly validate: (value: unknown) => Validated<Output> | Promise<Validated<Output>>;
    /** For type checkers only. */
    readonly types?: { readonly input: unknown; readonly output: Output } | undefined;
  };
}

/** The value, or what is wrong with it. */
export type Validated<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly Issue[] };

/** A problem and its place. */
export interface Issue {
  /** The problem. */
  readonly message: string;
  /** Names and indexes on the path to it. */
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** A JSON Schema as an object. */
export type JsonSchema = Readonly<Record<string, unknown>>;

/** The schema of a value: a zod 4 schema, another Standard Schema, or a JSON Schema. */
export type Schema = StandardSchema | JsonSchema;

/** The type of the values of a schema; unknown for a JSON Schema. */
export type Parsed<S> = S extends { readonly "~standard": { readonly types?: infer T } }
  ? NonNullable<T> extends { readonly output: infer Output }
    ? Output
    : unknown
  : unknown;

/** Whether a value is a schema of another package. */
export function isStandard(value: unknown): value is StandardSchema {
  // Some are functions.
  const holds = (typeof value === "object" && value !== null) || typeof value === "function";
  return holds && "~standard" in (value as object);
}

/**
 * The JSON Schema of the schema's input. Errors: TypeError if the schema doesn't provide it.
 */
export function jsonSchemaOf(schema: StandardSchema): JsonSchema {
  const standard = schema["~standard"] as StandardSchema["~standard"] & {
    readonly jsonSchema?: { input(options: { target: string }): JsonSchema };
  };
  if (standard.jsonSchema === undefined) {
    const update = standard.vendor === "zod" ? "update zod to 4.2 or later" : `update ${standard.vendor}`;
    throw new TypeError(
      `this schema of ${standard.vendor} cannot tell its JSON Schema: ${update}, or give a JSON Schema`,
    );
  }
  const { $schema: _, ...found } = standard.jsonSchema.input({ target: "draft-2020-12" });
  return found;
}

/** The first problem, with its place: `$.population`. */
export function firstProblem(issues: readonly Issue[]): { path: string; message: string } {
  const [{ message, path = [] } = { message: "it does not fit" }] = issues;
  return { path: jsonPath(path.map((step) => (typeof step === "object" ? step.key : step))), message };
}

/** `$.cities[0].name`. */
function jsonPath(steps: readonly PropertyKey[]): string {
  const written = steps.map((step) => {
    if (typeof step === "number") return `[${step}]`;
    return /^[\p{L}_$][\p{L}\p{N}_$]*$/u.test(String(step))
      ? `.${String(step)}`
      : `[${JSON.stringify(String(step))}]`;
  });
  return `$${written.join("")}`;
}
