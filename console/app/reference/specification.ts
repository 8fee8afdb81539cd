// The specification behind the reference, loaded when the reference is first opened.
import url from "../../../spec/generated/openapi-3.2.json?url";

export interface Schema {
  $ref?: string;
  description?: string;
  type?: string | string[];
  enum?: unknown[];
  const?: unknown;
  default?: unknown;
  format?: string;
  minimum?: number;
  maximum?: number;
  minLength?: number;
  maxLength?: number;
  minItems?: number;
  maxItems?: number;
  minProperties?: number;
  maxProperties?: number;
  pattern?: string;
  /** The media type and schema of the document in a string. */
  contentMediaType?: string;
  contentSchema?: Schema;
  required?: string[];
  properties?: Record<string, Schema>;
  items?: Schema;
  oneOf?: Schema[];
  anyOf?: Schema[];
  allOf?: Schema[];
  not?: Schema;
  additionalProperties?: Schema | boolean;
  "x-extensible-enum"?: unknown[];
}

export interface Media {
  schema?: Schema;
  itemSchema?: Schema;
  example?: unknown;
}

export interface Parameter {
  $ref?: string;
  name: string;
  in: string;
  required?: boolean;
  description?: string;
  example?: unknown;
  schema: Schema;
}

export interface Operation {
  operationId: string;
  summary: string;
  description?: string;
  tags: string[];
  parameters?: Parameter[];
  requestBody?: { content: Record<string, Media> };
  responses: Record<string, { $ref?: string; description?: string; content?: Record<string, Media> }>;
  "x-resource": string;
  "x-method": string;
}

export interface Listed {
  method: string;
  path: string;
  operation: Operation;
}

export interface Specification {
  info: { title: string; version: string; description: string };
  tags: { name: string; description: string }[];
  paths: Record<string, Record<string, Operation>>;
  components: Record<string, Record<string, unknown>>;
}

export async function load(signal: AbortSignal): Promise<Specification> {
  const response = await fetch(url, { signal, credentials: "omit" });
  if (!response.ok) throw new Error(`Can't load the specification: status ${response.status}.`);
  return (await response.json()) as Specification;
}

/** The operations, in the order of the specification. */
export function operations(specification: Specification): Listed[] {
  return Object.entries(specification.paths).flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(([, operation]) => typeof operation.operationId === "string")
      .map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
  );
}

/** The target of a reference; any other value unchanged. */
export function resolved<T extends { $ref?: string }>(specification: Specification, value: T): T {
  if (!value.$ref) return value;
  const [kind, name] = value.$ref.split("/").slice(-2);
  const found = specification.components[kind ?? ""]?.[name ?? ""];
  return found ? { ...(found as T), ...withoutReference(value) } : value;
}

function withoutReference<T extends { $ref?: string }>({ $ref: _, ...rest }: T): Omit<T, "$ref"> {
  return rest;
}

/** The name of a reference's target. */
export const refName = (schema: Schema): string | null => schema.$ref?.split("/").at(-1) ?? null;
