// A schema as a tree of members. Nested levels are rendered when opened, because schemas are recursive.
import { useState } from "preact/hooks";
import { refName, resolved, type Schema, type Specification } from "./specification.ts";

export function Members(props: { specification: Specification; schema: Schema }) {
  const schema = resolved(props.specification, props.schema);
  const parts = alternatives(schema);
  const members = Object.entries(schema.properties ?? {});
  // A document in a string and a schema with a single alternative get no level of their own.
  const [only, ...others] = parts;
  if (members.length === 0 && schema.contentSchema)
    return <Members {...props} schema={schema.contentSchema} />;
  if (members.length === 0 && only && others.length === 0) return <Members {...props} schema={only} />;
  return (
    <>
      {members.length > 0 && (
        <ul class="members">
          {members.map(([name, member]) => (
            <Member
              key={name}
              name={name}
              schema={member}
              required={schema.required?.includes(name) ?? false}
              specification={props.specification}
            />
          ))}
        </ul>
      )}
      {members.length === 0 && schema.items && (
        <ul class="members">
          <Member name="each" schema={schema.items} specification={props.specification} />
        </ul>
      )}
      {members.length === 0 && parts.length > 0 && (
        <ul class="members">
          {parts.map((part, place) => (
            <Member
              key={place}
              name={formName(part) ?? `option ${place + 1}`}
              schema={part}
              isForm
              specification={props.specification}
            />
          ))}
        </ul>
      )}
    </>
  );
}

function Member(props: {
  name: string;
  schema: Schema;
  required?: boolean;
  /** Whether it is one of several alternatives, whose name already says its kind. */
  isForm?: boolean;
  specification: Specification;
}) {
  const { specification } = props;
  const schema = resolved(specification, props.schema);
  // The events of a stream are strings that contain documents, which is what readers look for.
  const [open, setOpen] = useState(holdsDocument(schema));
  const line = (
    <>
      <code class="name">{props.name}</code>
      {props.isForm ? (
        <Tag schema={schema} />
      ) : (
        <span class="soft"> {kind(specification, props.schema)}</span>
      )}
      {props.required && <span class="required"> required</span>}
    </>
  );
  const words = (
    <>
      {schema.description && <p>{schema.description}</p>}
      <Facts schema={schema} />
    </>
  );
  if (!hasInside(specification, schema)) {
    return (
      <li>
        {line}
        {words}
      </li>
    );
  }
  return (
    <li>
      <details open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>{line}</summary>
        {open && <Members specification={specification} schema={schema.items ?? schema} />}
      </details>
      {words}
    </li>
  );
}

/** The alternatives of a value, without null, which its kind shows. */
function alternatives(schema: Schema): Schema[] {
  return (schema.oneOf ?? schema.anyOf ?? schema.allOf ?? []).filter(({ type }) => type !== "null");
}

function holdsDocument(schema: Schema): boolean {
  return schema.contentSchema !== undefined || alternatives(schema).some((part) => part.contentSchema);
}

function hasInside(specification: Specification, schema: Schema): boolean {
  if (schema.properties || schema.contentSchema) return true;
  if (schema.items) return hasInside(specification, resolved(specification, schema.items));
  const [only, ...others] = alternatives(schema);
  if (only && others.length === 0) return hasInside(specification, resolved(specification, only));
  return others.length > 0;
}

/** The name of an alternative. */
function formName(schema: Schema): string | null {
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.contentSchema) return `${refName(schema.contentSchema) ?? "document"} as JSON`;
  if (schema.properties?.["type"]?.not) return "another type";
  return refName(schema) ?? (typeof schema.type === "string" ? schema.type : null);
}

/** The `type` that distinguishes an alternative from the others. */
function Tag({ schema }: { schema: Schema }) {
  const type = schema.properties?.["type"]?.const;
  return type === undefined ? null : <span class="soft"> type {JSON.stringify(type)}</span>;
}

/** The type of a value as text. */
export function kind(specification: Specification, schema: Schema): string {
  const name = refName(schema);
  const found = resolved(specification, schema);
  const types = [found.type ?? []].flat();
  if (found.items) return [`list of ${kind(specification, found.items)}`, ...nullable(types)].join(" or ");
  if (found.contentSchema) return `${kind(specification, found.contentSchema)} as a JSON string`;
  if (name) return name;
  const parts = found.oneOf ?? found.anyOf;
  if (parts && parts.length <= 3) return parts.map((part) => kind(specification, part)).join(" or ");
  if (types.length > 0) return types.map((type) => formatted(type, found.format)).join(" or ");
  if (parts) return "one of several";
  return found.const === undefined ? "any" : JSON.stringify(found.const);
}

const nullable = (types: string[]): string[] => types.filter((type) => type === "null");

const formatted = (type: string, format: string | undefined): string =>
  format !== undefined && type !== "null" ? `${type} (${format})` : type;

/** Constraints on a value besides its type: enum, default, bounds. */
export function Facts({ schema }: { schema: Schema }) {
  const facts: string[] = [];
  const open = schema["x-extensible-enum"];
  const list = (values: unknown[]) => values.map((value) => JSON.stringify(value)).join(", ");
  if (schema.enum) facts.push(`one of ${list(schema.enum)}`);
  else if (open) facts.push(`such as ${list(open)}`);
  if (schema.const !== undefined) facts.push(`always ${JSON.stringify(schema.const)}`);
  if (schema.default !== undefined) facts.push(`default ${JSON.stringify(schema.default)}`);
  facts.push(
    ...range("", schema.minimum, schema.maximum),
    ...range("length: ", schema.minLength, schema.maxLength),
    ...range("items: ", schema.minItems, schema.maxItems),
    ...range("members: ", schema.minProperties, schema.maxProperties),
  );
  if (schema.pattern !== undefined) facts.push(`pattern ${schema.pattern}`);
  return facts.length > 0 ? <p class="facts">{facts.join("; ")}</p> : null;
}

/** `1 to 100`, `at least 1` or `at most 100`. */
function range(of: string, least: number | undefined, most: number | undefined): string[] {
  if (least !== undefined && most !== undefined) return [`${of}${least} to ${most}`];
  if (least !== undefined) return [`${of}at least ${least}`];
  return most === undefined ? [] : [`${of}at most ${most}`];
}
