// Sends a request from the reference and shows the raw response.
import { useEffect, useRef, useState } from "preact/hooks";
import { ask } from "../api.ts";
import { callerKey } from "../session.ts";
import { bytes, duration } from "../ui/format.ts";
import { Badge, Field, Line, Problem, Submit } from "../ui/parts.tsx";
import type { Listed, Parameter } from "./specification.ts";

/** Maximum number of characters of a response that are shown. */
const MOST_SHOWN = 200_000;

interface Answered {
  status: number;
  type: string;
  requestId: string | null;
  text: string;
  length: number;
  took: number;
  done: boolean;
}

export function Try({ listed, parameters }: { listed: Listed; parameters: Parameter[] }) {
  const media = listed.operation.requestBody?.content["application/json"];
  const [values, setValues] = useState<Record<string, string>>(() =>
    Object.fromEntries(parameters.map((each) => [each.name, example(each)])),
  );
  const [body, setBody] = useState(() => (media ? JSON.stringify(media.example ?? {}, null, 2) : ""));
  const [answered, setAnswered] = useState<Answered | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [running, setRunning] = useState(false);
  const controller = useRef<AbortController | null>(null);
  useEffect(() => () => controller.current?.abort(), []);
  const key = callerKey.value;

  const send = async (event: Event) => {
    event.preventDefault();
    if (running) return;
    const mine = new AbortController();
    controller.current = mine;
    setAnswered(null);
    setError(null);
    let parsed: unknown;
    try {
      parsed = media ? JSON.parse(body) : undefined;
    } catch (failed) {
      setError(new Error(`The body isn't valid JSON: ${failed instanceof Error ? failed.message : failed}`));
      return;
    }
    setRunning(true);
    const started = performance.now();
    try {
      const options = { method: listed.method, body: parsed, signal: mine.signal };
      const response = await ask(key ?? "", address(listed.path, parameters, values), options);
      const answer: Answered = {
        status: response.status,
        type: response.headers.get("content-type") ?? "",
        requestId: response.headers.get("x-request-id"),
        text: "",
        length: 0,
        took: 0,
        done: false,
      };
      const decoder = new TextDecoder();
      for await (const piece of pieces(response)) {
        answer.length += piece.length;
        if (answer.text.length < MOST_SHOWN) answer.text += decoder.decode(piece, { stream: true });
        setAnswered({ ...answer, took: performance.now() - started });
      }
      setAnswered({ ...answer, text: pretty(answer), took: performance.now() - started, done: true });
    } catch (failed) {
      if (!mine.signal.aborted) setError(failed);
    }
    if (controller.current === mine) setRunning(false);
  };

  if (key === undefined)
    return <p class="soft">Sign in with an API key to try it: the admin key can't call operations.</p>;
  return (
    <form class="try" onSubmit={send}>
      {parameters.map((parameter) => (
        <Line
          key={parameter.name}
          label={parameter.name}
          required={parameter.required === true}
          value={values[parameter.name] ?? ""}
          onInput={(value) => setValues({ ...values, [parameter.name]: value })}
        />
      ))}
      {media && (
        <Field label="Body">
          {(id) => (
            <textarea
              id={id}
              class="mono"
              rows={Math.min(body.split("\n").length + 1, 16)}
              spellcheck={false}
              value={body}
              onInput={(event) => setBody(event.currentTarget.value)}
            />
          )}
        </Field>
      )}
      <div class="actions">
        <Submit
          words={`Send ${listed.method}`}
          stop={running ? { words: "Stop", act: () => controller.current?.abort() } : null}
        />
      </div>
      <Problem error={error} />
      {answered && (
        <>
          <p role="status">
            <Badge kind="good">{answered.status}</Badge>{" "}
            <span class="soft">
              {answered.type} · {bytes(answered.length)} · {duration(answered.took)} · {answered.requestId}
            </span>
          </p>
          <pre tabIndex={0} role="region" aria-label="The response">
            {answered.text}
            {answered.text.length >= MOST_SHOWN && "\n…"}
          </pre>
        </>
      )}
    </form>
  );
}

function example(parameter: Parameter): string {
  const value = parameter.example ?? parameter.schema.const ?? "";
  return String(value);
}

function address(path: string, parameters: Parameter[], values: Record<string, string>): string {
  const query = new URLSearchParams();
  let filled = path;
  for (const { name, in: place } of parameters) {
    const value = values[name] ?? "";
    if (place === "path") filled = filled.replace(`{${name}}`, encodeURIComponent(value));
    else if (place === "query" && value !== "") query.set(name, value);
  }
  return query.size > 0 ? `${filled}?${query}` : filled;
}

async function* pieces(response: Response): AsyncGenerator<Uint8Array> {
  const reader = response.body?.getReader();
  if (!reader) return;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    yield value;
  }
}

function pretty(answer: Answered): string {
  if (!answer.type.startsWith("application/json") || answer.length > MOST_SHOWN) return answer.text;
  try {
    return JSON.stringify(JSON.parse(answer.text), null, 2);
  } catch {
    return answer.text;
  }
}
