// A request as code: for the three clients and for curl, of the same operation and the same body.
import operations from "virtual:operations";
import type { Prepared } from "./conversation.ts";
import { address } from "./run.ts";

export const LANGUAGES = ["Python", "Node", "Rust", "curl"] as const;
export type Language = (typeof LANGUAGES)[number];

/** Longest text that code shows whole: an image would take a thousand lines. */
const LONGEST_TEXT = 2000;

/** What an operation makes: a stream, a document, or a task. */
type Form = "stream" | "document";

/** The code of a request. `origin`: the address of the gateway. */
export function code(prepared: Prepared, language: Language, origin: string): string {
  const operation = operations[prepared.operation];
  if (!operation) throw new Error(`The specification has no operation ${prepared.operation}.`);
  const form: Form = operation.streams || prepared.body["stream"] === true ? "stream" : "document";
  const body = shortened(prepared.body) as Record<string, unknown>;
  switch (language) {
    case "curl":
      return curl(operation.method, `${origin}${address(prepared)}`, body, form);
    case "Python":
      return python(operation, { ...prepared.path, ...body }, form);
    case "Node":
      return node(operation, { ...prepared.path, ...body }, form);
    case "Rust":
      return rust(operation, prepared.path, body, form);
  }
}

/** Whether code shows a text in part. */
export function isShortened(prepared: Prepared): boolean {
  return JSON.stringify(shortened(prepared.body)) !== JSON.stringify(prepared.body);
}

function shortened(value: unknown): unknown {
  if (typeof value === "string" && value.length > LONGEST_TEXT) return `${value.slice(0, 40)}…`;
  if (Array.isArray(value)) return value.map(shortened);
  if (value !== null && typeof value === "object") {
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, shortened(member)]));
  }
  return value;
}

function curl(method: string, url: string, body: Record<string, unknown>, form: Form): string {
  const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;
  const lines = [
    `curl ${form === "stream" ? "--no-buffer " : ""}--request ${method} ${quoted(url)}`,
    `--header "authorization: Bearer $GATEWRIGHT_API_KEY"`,
    "--header 'content-type: application/json'",
    `--data ${quoted(JSON.stringify(body, null, 2))}`,
  ];
  return `${lines.join(" \\\n  ")}\n`;
}

interface Called {
  resource: string;
  name: string;
}

function python(operation: Called, members: Record<string, unknown>, form: Form): string {
  const call = `client.${operation.resource}.${operation.name}(\n${entries(members, PYTHON, 1, "=")})`;
  const end =
    form === "stream"
      ? `stream = ${call}\nfor text in stream.text():\n    print(text, end="", flush=True)\nprint()\n`
      : `answer = ${call}\nprint(answer)\n`;
  return `from gatewright import Client\n\nclient = Client()\n${end}`;
}

function node(operation: Called, members: Record<string, unknown>, form: Form): string {
  const name = operation.name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
  const call = `await client.${operation.resource}.${name}({\n${entries(members, SCRIPT, 1, ": ")}});`;
  const end =
    form === "stream"
      ? `const stream = ${call}\nfor await (const text of stream.text()) process.stdout.write(text);\nconsole.log();\n`
      : `const answer = ${call}\nconsole.log(answer);\n`;
  return `import { Client } from "gatewright";\n\nconst client = new Client();\n${end}`;
}

function rust(
  operation: Called & { body: string | null; streams: boolean },
  path: Record<string, string>,
  body: Record<string, unknown>,
  form: Form,
): string {
  // Whether to stream is said by the method.
  const { stream: _, ...rest } = body;
  const type = operation.body ?? "serde_json::Value";
  const json = JSON.stringify(rest, null, 4).replaceAll("\n", "\n    ");
  const resource = operation.resource
    .split(".")
    .map((part) => `.${part}()`)
    .join("");
  const name = form === "stream" && !operation.streams ? "stream" : operation.name;
  const given = [...Object.values(path).map((value) => JSON.stringify(value)), "&request"].join(", ");
  const call = `client${resource}.${name}(${given}).await?`;
  const streams = form === "stream";
  return `${streams ? "use futures_util::TryStreamExt;\n" : ""}use gatewright::Client;
use gatewright::types::${type};
use serde_json::json;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = Client::from_env()?;
    let request: ${type} = serde_json::from_value(json!(${json}))?;
${
  streams
    ? `    let mut text = ${call}.text();
    while let Some(piece) = text.try_next().await? {
        print!("{piece}");
    }
    println!();`
    : `    let answer = ${call};
    println!("{answer:#?}");`
}
    Ok(())
}
`;
}

/** How a language writes values. */
interface Dialect {
  none: string;
  yes: string;
  no: string;
  indent: string;
  key: (name: string) => string;
}

const PYTHON: Dialect = { none: "None", yes: "True", no: "False", indent: "    ", key: text };
const SCRIPT: Dialect = {
  none: "null",
  yes: "true",
  no: "false",
  indent: "  ",
  key: (name) => (/^[A-Za-z_$][\w$]*$/.test(name) ? name : text(name)),
};

/** Strings of JSON are strings of Python and of JavaScript. */
function text(value: string): string {
  return JSON.stringify(value);
}

function entries(members: Record<string, unknown>, dialect: Dialect, depth: number, between: string): string {
  const indent = dialect.indent.repeat(depth);
  return Object.entries(members)
    .map(([name, value]) => {
      const key = between === "=" ? name : dialect.key(name);
      return `${indent}${key}${between}${literal(value, dialect, depth)},\n`;
    })
    .join("");
}

function literal(value: unknown, dialect: Dialect, depth: number): string {
  if (value === null || value === undefined) return dialect.none;
  if (typeof value === "boolean") return value ? dialect.yes : dialect.no;
  if (typeof value === "string") return text(value);
  if (typeof value !== "object") return String(value);
  const indent = dialect.indent.repeat(depth);
  if (Array.isArray(value)) {
    if (value.length === 0) return "[]";
    const items = value.map((item) => `${indent}${dialect.indent}${literal(item, dialect, depth + 1)},\n`);
    return `[\n${items.join("")}${indent}]`;
  }
  const members = entries(value as Record<string, unknown>, dialect, depth + 1, ": ");
  return members === "" ? "{}" : `{\n${members}${indent}}`;
}
