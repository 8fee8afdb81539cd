// A request as code for the three clients and curl, all with the same operation and body.
import operations from "virtual:operations";
import { CALLS, type Calls } from "./calls.ts";
import type { Prepared } from "./conversation.ts";
import { address } from "./run.ts";

export const LANGUAGES = ["Python", "Node", "Rust", "curl"] as const;
export type Language = (typeof LANGUAGES)[number];

/** Longest string that code shows in full: an image would take a thousand lines. */
const MAX_TEXT_CHARS = 2000;

/** What an operation returns, which decides what the code does: print it as it arrives, print it at the end, or save files. */
type Form = "stream" | "document" | "images" | "video";

const FILES: Record<string, Form> = { create_image: "images", create_video: "video" };
const LOOK = operations["retrieve_video"]?.path.replace(/\{\w+\}/, () => "$id") ?? "";

/** The code for a request. `origin`: the gateway's origin. */
export function code(prepared: Prepared, language: Language, origin: string): string {
  const operation = operations[prepared.operation];
  if (!operation) throw new Error(`The specification has no operation ${prepared.operation}.`);
  const streams = operation.streams || prepared.body["stream"] === true;
  const form = FILES[prepared.operation] ?? (streams ? "stream" : "document");
  const body = shortened(prepared.body) as Record<string, unknown>;
  // A document is printed in full, including tool calls.
  const calls = form === "stream" && "tools" in body ? (CALLS[prepared.operation] ?? null) : null;
  switch (language) {
    case "curl":
      return curl(operation.method, `${origin}${address(prepared)}`, `${origin}${LOOK}`, body, form);
    case "Python":
      return python(operation, { ...prepared.path, ...body }, form, calls);
    case "Node":
      return node(operation, { ...prepared.path, ...body }, form, calls);
    case "Rust":
      return rust(operation, prepared.path, body, form, calls);
  }
}

/** Whether the code truncates a string. */
export function isShortened(prepared: Prepared): boolean {
  const isLong = (value: unknown): boolean =>
    typeof value === "string"
      ? value.length > MAX_TEXT_CHARS
      : value !== null && typeof value === "object" && Object.values(value).some(isLong);
  return isLong(prepared.body);
}

function shortened(value: unknown): unknown {
  if (typeof value === "string" && value.length > MAX_TEXT_CHARS) return `${value.slice(0, 40)}…`;
  if (Array.isArray(value)) return value.map(shortened);
  if (value !== null && typeof value === "object") {
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, shortened(member)]));
  }
  return value;
}

/** A shell word. */
const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
const AUTHORIZATION = '--header "authorization: Bearer $GATEWRIGHT_API_KEY"';

/** `look`: the URL of the created task, in which the shell fills in `$id`. */
function curl(method: string, url: string, look: string, body: Record<string, unknown>, form: Form): string {
  const flags = {
    stream: "--no-buffer ",
    document: "",
    images: "--silent --show-error ",
    video: "--silent --show-error ",
  };
  const call = [
    `curl ${flags[form]}--request ${method} ${quoted(url)}`,
    AUTHORIZATION,
    "--header 'content-type: application/json'",
    `--data ${quoted(JSON.stringify(body, null, 2))}`,
  ].join(" \\\n  ");
  switch (form) {
    case "images":
      return `${call} |
  jq --raw-output 'if .error then error(.error.message) else .data[].b64_json end' |
  while read -r image; do
    number=$((number + 1))
    printf '%s' "$image" | base64 --decode > "image-$number.png"
    echo "image-$number.png: $(wc -c < "image-$number.png") bytes"
  done
`;
    case "video":
      return `id=$(${call} |
  jq --raw-output '.id // error(.error.message)')
while
  sleep 2
  task=$(curl --silent --show-error "${look}" \\
    ${AUTHORIZATION})
  printf '%s' "$task" | jq --exit-status '.status | IN("pending", "processing")' > /dev/null
do :; done
url=$(printf '%s' "$task" | jq --raw-output '.output.url // error(.error.message)')
curl --silent --show-error --fail --output video.mp4 "$url" &&
  echo "video.mp4: $(wc -c < video.mp4) bytes"
`;
    default:
      return `${call}\n`;
  }
}

interface Called {
  resource: string;
  name: string;
  final: { python: string; node: string } | null;
}

function python(
  operation: Called,
  members: Record<string, unknown>,
  form: Form,
  calls: Calls | null,
): string {
  const name = form === "video" ? `${operation.name}_and_wait` : operation.name;
  const call = `client.${operation.resource}.${name}(\n${entries(members, PYTHON, 1, "=")})`;
  const printing =
    calls && operation.final ? `answer = stream.${operation.final.python}()\n${calls.python}` : "";
  return `from gatewright import Client\n\nclient = Client()\n${PYTHON_ENDS[form](call)}${printing}`;
}

const PYTHON_ENDS: Record<Form, (call: string) => string> = {
  stream: (call) => `stream = ${call}
for text in stream.text():
    print(text, end="", flush=True)
print()
`,
  document: (call) => `answer = ${call}
print(answer)
`,
  images: (call) => `images = ${call}
for number, image in enumerate(images.data, start=1):
    size = client.images.save(image, f"image-{number}.png")
    print(f"image-{number}.png: {size} bytes")
`,
  video: (call) => `task = ${call}
size = client.videos.generations.save(task, "video.mp4")
print(f"video.mp4: {size} bytes")
`,
};

function node(operation: Called, members: Record<string, unknown>, form: Form, calls: Calls | null): string {
  const snake = form === "video" ? `${operation.name}_and_wait` : operation.name;
  const name = snake.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
  const call = `await client.${operation.resource}.${name}({\n${entries(members, SCRIPT, 1, ": ")}});`;
  const printing =
    calls && operation.final ? `const answer = await stream.${operation.final.node}();\n${calls.node}` : "";
  return `import { Client } from "gatewright";\n\nconst client = new Client();\n${NODE_ENDS[form](call)}${printing}`;
}

const NODE_ENDS: Record<Form, (call: string) => string> = {
  stream: (call) => `const stream = ${call}
for await (const text of stream.text()) process.stdout.write(text);
console.log();
`,
  document: (call) => `const answer = ${call}
console.log(answer);
`,
  images: (call) => `const { data } = ${call}
for (const [index, image] of data.entries()) {
  const file = \`image-\${index + 1}.png\`;
  const size = await client.images.save(image, file);
  console.log(\`\${file}: \${size} bytes\`);
}
`,
  video: (call) => `const task = ${call}
const size = await client.videos.generations.save(task, "video.mp4");
console.log(\`video.mp4: \${size} bytes\`);
`,
};

function rust(
  operation: Called & { body: string | null; streams: boolean },
  path: Record<string, string>,
  body: Record<string, unknown>,
  form: Form,
  calls: Calls | null,
): string {
  // The method determines whether to stream.
  const { stream: _, ...rest } = body;
  const type = operation.body ?? "serde_json::Value";
  const json = JSON.stringify(rest, null, 4).replaceAll("\n", "\n    ");
  const resource = operation.resource
    .split(".")
    .map((part) => `.${part}()`)
    .join("");
  const name = form === "stream" && !operation.streams ? "stream" : operation.name;
  const given = [...Object.values(path).map((value) => JSON.stringify(value)), "&request"].join(", ");
  const { uses, end } = RUST_ENDS[form];
  const call = `client${resource}.${name}(${given}).await?`;
  // Text alone is a `Stream` of the futures crates. Events, which also contain calls, are read with our own method.
  const isText = form === "stream" && calls === null;
  const crates = ["gatewright", ...(isText ? ["futures-util"] : []), "serde_json", "tokio"];
  return `// cargo add ${crates.join(" ")} -F tokio/macros,tokio/rt-multi-thread
${isText ? "use futures_util::TryStreamExt;\n" : ""}${uses(type)}
use serde_json::json;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = Client::from_env()?;
    let request: ${type} = serde_json::from_value(json!(${json}))?;
${calls ? rustCalls(call, calls) : end(call)}
    Ok(())
}
`;
}

const rustCalls = (call: string, { rust }: Calls): string => `    let mut stream = ${call};
    while let Some(event) = stream.try_next().await? {
        print!("{}", ${rust.text});
    }
    println!();
    let answer = stream.finish().await?;
${rust.calls}`;

const RUST_ENDS: Record<Form, { uses: (type: string) => string; end: (call: string) => string }> = {
  stream: {
    uses: (type) => `use gatewright::Client;\nuse gatewright::types::${type};`,
    end: (call) => `    let mut text = ${call}.text();
    while let Some(piece) = text.try_next().await? {
        print!("{piece}");
    }
    println!();`,
  },
  document: {
    uses: (type) => `use gatewright::Client;\nuse gatewright::types::${type};`,
    end: (call) => `    let answer = ${call};
    println!("{answer:#?}");`,
  },
  images: {
    uses: (type) => `use gatewright::types::${type};\nuse gatewright::{Client, SaveOptions};`,
    end: (call) => `    let answer = ${call};
    for (index, image) in answer.data.iter().enumerate() {
        let file = format!("image-{}.png", index + 1);
        let saved = client.images().save(image, &file, SaveOptions::default()).await?;
        println!("{file}: {} bytes", saved.bytes);
    }`,
  },
  video: {
    uses: (type) => `use gatewright::types::${type};\nuse gatewright::{Client, SaveOptions, WaitOptions};`,
    // The resource is named once: waiting and saving are both its methods.
    end: () => `    let videos = client.videos();
    let task = videos.generations().create_and_wait(&request, WaitOptions::default()).await?;
    let saved = videos.generations().save(&task, "video.mp4", SaveOptions::default()).await?;
    println!("video.mp4: {} bytes", saved.bytes);`,
  },
};

/** How a language writes literals. */
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

/** JSON strings are valid Python and JavaScript strings. */
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
