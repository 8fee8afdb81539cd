// A schema as a tree of members. What is inside is made when it is opened: schemas hold each other.
import { useState } from "preact/hooks";
import { refName, resolved, type Schema, type Specification } from "./specification.ts";

export function Members(props: { specification: Specification; schema: Schema }) {
  const schema = resolved(props.specification, props.schema);
  const parts = schema.oneOf ?? schema.anyOf ?? schema.allOf;
  const members = Object.entries(schema.properties ?? {});
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
          <Member name="each" schema={schema.items} required={false} specification={props.specification} />
        </ul>
      )}
      {members.length === 0 && parts && (
        <ul class="members">
          {parts.map((part, place) => (
            <Member
              key={place}
              name={refName(part) ?? `form ${place + 1}`}
              schema={part}
              required={false}
              specification={props.specification}
            />
          ))}
        </ul>
      )}
    </>
  );
}

function Member(props: { name: string; schema: Schema; required: boolean; specification: Specification }) {
  const [open, setOpen] = useState(false);
  const schema = resolved(props.specification, props.schema);
  const inner = [schema, ...(schema.items ? [resolved(props.specification, schema.items)] : [])].some(
    (each) => each.properties || each.oneOf || each.anyOf || each.allOf,
  );
  const line = (
    <>
      <code class="name">{props.name}</code>{" "}
      <span class="soft">{kind(props.specification, props.schema)}</span>
      {props.required && <span class="required"> required</span>}
    </>
  );
  const words = (
    <>
      {schema.description && <p>{schema.description}</p>}
      <Facts schema={schema} />
    </>
  );
  if (!inner) {
    return (
      <li>
        {line}
        {words}
      </li>
    );
  }
  return (
    <li>
      <details onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>{line}</summary>
        {open && <Members specification={props.specification} schema={schema.items ?? schema} />}
      </details>
      {words}
    </li>
  );
}

function kind(specification: Specification, schema: Schema): string {
  const name = refName(schema);
  const found = resolved(specification, schema);
  const types = [found.type ?? []].flat();
  if (found.items) return `list of ${kind(specification, found.items)}`;
  if (name) return name;
  if (types.length > 0) return types.join(" or ");
  if (found.oneOf || found.anyOf) return "one of several";
  return found.const === undefined ? "any" : "constant";
}

function Facts({ schema }: { schema: Schema }) {
  const facts: string[] = [];
  const values = schema.enum ?? schema["x-extensible-enum"];
  if (values) facts.push(`one of ${values.map((value) => JSON.stringify(value)).join(", ")}`);
  if (schema.const !== undefined) facts.push(`always ${JSON.stringify(schema.const)}`);
  if (schema.default !== undefined) facts.push(`default ${JSON.stringify(schema.default)}`);
  const bounds = [
    ["at least", schema.minimum],
    ["at most", schema.maximum],
    ["length at least", schema.minLength],
    ["length at most", schema.maxLength],
    ["items at least", schema.minItems],
    ["items at most", schema.maxItems],
    ["pattern", schema.pattern],
  ] as const;
  for (const [words, value] of bounds) if (value !== undefined) facts.push(`${words} ${value}`);
  return facts.length > 0 ? <p class="facts">{facts.join("; ")}</p> : null;
}
