// Text: a conversation with one model, or with two models side by side.
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { currency, models } from "../session.ts";
import { Files } from "../ui/files.tsx";
import { duration, money, whole } from "../ui/format.ts";
import { Markdown } from "../ui/markdown.tsx";
import { Badge, Choice, Copy, Field, Line, Problem, Submit } from "../ui/parts.tsx";
import { Tabs } from "../ui/tabs.tsx";
import { IMAGE_TYPES, MAX_FILE_BYTES, MAX_FILES, MAX_TYPED, pasted, readAttachment } from "./attachments.ts";
import { CodeView } from "./code-view.tsx";
import {
  type Attachment,
  EXAMPLE_TOOLS,
  type Prepared,
  readTools,
  type ToolCall,
  type ToolResult,
  type Turn,
} from "./conversation.ts";
import { Conversations } from "./conversations.tsx";
import { cost } from "./cost.ts";
import { PROTOCOLS } from "./protocols.ts";
import type { Answer } from "./run.ts";
import * as state from "./state.ts";

/** Whether the keyboard is likely on the screen: Enter then begins a new line, as elsewhere on such devices. */
const IS_TOUCHED = matchMedia("(pointer: coarse)").matches;

export function Chat() {
  const count = state.paneCount.value;
  return (
    <Tabs
      label="Protocol"
      tabs={PROTOCOLS.map(({ id, title }) => ({ value: id, label: title }))}
      value={state.protocol.value.id}
      onChange={state.chooseProtocol}
    >
      <div class="playground">
        <div class="talk">
          <div class={count > 1 ? "panes two" : "panes"}>
            {Array.from({ length: count }, (_, place) => (
              <Conversation key={place} place={place} />
            ))}
          </div>
          <Composer />
        </div>
        <div class="talk">
          <SettingsForm />
          <Conversations />
        </div>
      </div>
      <Code />
    </Tabs>
  );
}

function Conversation({ place }: { place: number }) {
  const pane = state.panes.value[place];
  return pane ? <Transcript pane={pane} place={place} /> : null;
}

/** Why there is no model to ask. */
function whyNone(): string {
  if (models("text").length > 0) {
    return `None of your key's text models is available over the ${state.protocol.value.title} protocol. Choose another protocol above.`;
  }
  return "Your key can use no text model: the gateway has none, or the key's scope leaves them out. The models page lists what it can use.";
}

function Transcript({ pane, place }: { pane: state.Pane; place: number }) {
  const log = useRef<HTMLDivElement>(null);
  // Whether the end of the log is in view: someone who reads further up isn't moved.
  const isAtEnd = useRef(true);
  const served = state.served(state.protocol.value);
  const length = pane.answer?.turn.text.length ?? 0;
  useLayoutEffect(() => {
    isAtEnd.current = true;
  }, [pane.turns.length]);
  useLayoutEffect(() => {
    const element = log.current;
    if (element && isAtEnd.current) element.scrollTop = element.scrollHeight;
  }, [pane.turns.length, length]);
  const running = pane.running !== null;
  // The buttons go away, so focus the log, where the answer appears.
  const ask = (act: () => void) => () => {
    log.current?.focus();
    act();
  };
  // The same elements as long as the turns are the same: while an answer arrives, nothing else is compared.
  const turns = useMemo(
    () =>
      pane.turns.map((turn, index) => {
        if (running) return <Said key={index} turn={turn} />;
        const isLast = index === pane.turns.length - 1;
        return turn.role === "user" ? (
          <Said
            key={index}
            turn={turn}
            onEdit={(text) => ask(() => state.edit(place, index, text))()}
            onCancel={() => log.current?.focus()}
          />
        ) : (
          <Said key={index} turn={turn} {...(isLast ? { onRetry: ask(() => state.retry(place)) } : {})} />
        );
      }),
    [pane.turns, running],
  );
  const last = pane.turns.at(-1);
  const name = place === 0 ? "Model" : "Second model";
  return (
    <section class="pane" aria-label={place === 0 ? "Conversation" : "Second conversation"}>
      <div class="row">
        <Field label={name} class="inline">
          {(id) => (
            <select
              id={id}
              value={state.modelOf(place)}
              onChange={(event) => state.chooseModel(place, event.currentTarget.value)}
            >
              {served.map((model) => (
                <option key={model.id} value={model.id}>
                  {model.id}
                </option>
              ))}
            </select>
          )}
        </Field>
      </div>
      <div
        class="turns"
        ref={log}
        tabIndex={0}
        role="log"
        aria-label="Transcript"
        aria-busy={pane.running !== null}
        onScroll={({ currentTarget: { scrollHeight, scrollTop, clientHeight } }) => {
          isAtEnd.current = scrollHeight - scrollTop - clientHeight < 40;
        }}
      >
        {pane.turns.length === 0 && (
          <p class="empty">{served.length > 0 ? "Ask something below." : whyNone()}</p>
        )}
        {turns}
        {pane.running && pane.answer && <Said turn={pane.answer.turn} growing />}
        {pane.running && !pane.answer && <p class="soft waiting">Waiting for a response…</p>}
        {pane.failed && (
          <div class="failed">
            <Said turn={pane.failed.turn} />
            {pane.failed.partial && <Said turn={pane.failed.partial} />}
          </div>
        )}
        {pane.stopped && <p class="soft">You stopped the response.</p>}
        <Problem error={pane.error} reveal />
        {pane.failed && (
          <div class="row">
            <p class="soft">This message is not part of the conversation.</p>
            <button type="button" class="button small" onClick={ask(() => state.retry(place))}>
              Retry
            </button>
          </div>
        )}
      </div>
      {last && last.role === "assistant" && last.calls.length > 0 && !pane.running && (
        <Results
          key={pane.turns.length}
          calls={last.calls}
          outputs={pane.failed?.turn.results.map((result) => result.output) ?? []}
          onResults={(results) => ask(() => state.sendResults(place, results))()}
        />
      )}
      <Facts answer={pane.answer} />
    </section>
  );
}

function Said(props: {
  turn: Turn;
  /** Whether it is an answer that is arriving. */
  growing?: boolean;
  onEdit?: (text: string) => void;
  onCancel?: () => void;
  onRetry?: () => void;
}) {
  const { turn, growing = false, onEdit, onRetry } = props;
  const [raw, setRaw] = useState(false);
  const [isEditing, setEditing] = useState(false);
  if (turn.results.length > 0) {
    return (
      <article class="turn user">
        <h2>Results</h2>
        {turn.results.map((result) => (
          <pre key={result.id}>{`${result.name}: ${result.output}`}</pre>
        ))}
      </article>
    );
  }
  const isAnswer = turn.role === "assistant";
  if (isEditing) {
    const stop = (act: (() => void) | undefined) => {
      setEditing(false);
      act?.();
    };
    return (
      <Edit
        text={turn.text}
        onSend={(text) => stop(() => onEdit?.(text))}
        onCancel={() => stop(props.onCancel)}
      />
    );
  }
  return (
    <article class={`turn ${turn.role}`}>
      <h2>{isAnswer ? "Model" : "You"}</h2>
      {turn.files.map((file) => (
        <Attached key={file.name} file={file} />
      ))}
      <Reasoning turn={turn} growing={growing} />
      {turn.text &&
        (isAnswer && !raw ? (
          <Markdown text={turn.text} growing={growing} />
        ) : (
          <p class="text">{turn.text}</p>
        ))}
      {turn.calls.map((call) => (
        <pre key={call.id}>{`${call.name}(${call.arguments})`}</pre>
      ))}
      {!growing && (
        <div class="actions">
          {isAnswer && turn.text && (
            <>
              <Copy text={turn.text} label="Copy answer" />
              <button type="button" class="button small" aria-pressed={raw} onClick={() => setRaw(!raw)}>
                Raw text
              </button>
            </>
          )}
          {onRetry && (
            <button type="button" class="button small" onClick={onRetry}>
              Retry
            </button>
          )}
          {onEdit && (
            <button type="button" class="button small" onClick={() => setEditing(true)}>
              Edit
            </button>
          )}
        </div>
      )}
    </article>
  );
}

/** An image, or the name of another file. */
function Attached({ file }: { file: Attachment }) {
  if (!IMAGE_TYPES.includes(file.type)) return <p class="attached">{file.name}</p>;
  return <img src={`data:${file.type};base64,${file.base64}`} alt={file.name} />;
}

/** The model's reasoning: open until the answer begins. */
function Reasoning({ turn, growing }: { turn: Turn; growing: boolean }) {
  const text = turn.thoughts.map((thought) => thought.text).join("\n\n");
  if (text.trim() === "") return null;
  return (
    <details class="reasoning" open={growing && turn.text === ""}>
      <summary>Reasoning</summary>
      <p class="text">{text}</p>
    </details>
  );
}

/** A form for another text of a message. */
function Edit(props: { text: string; onSend: (text: string) => void; onCancel: () => void }) {
  const [text, setText] = useState(props.text);
  const field = useRef<HTMLTextAreaElement>(null);
  useLayoutEffect(() => field.current?.focus(), []);
  const submit = (event: Event) => {
    event.preventDefault();
    if (text.trim() !== "") props.onSend(text);
  };
  return (
    <form class="turn user edit" onSubmit={submit}>
      <Field label="Edited message" hint="What follows it in the conversation is removed.">
        {(id, hint) => (
          <textarea
            id={id}
            ref={field}
            rows={3}
            aria-describedby={hint}
            value={text}
            onInput={(event) => setText(event.currentTarget.value)}
            onKeyDown={(event) => {
              if (event.key === "Escape") props.onCancel();
            }}
          />
        )}
      </Field>
      <div class="actions">
        <button type="button" class="button" onClick={props.onCancel}>
          Cancel
        </button>
        <Submit words="Send edited" off={text.trim() === ""} />
      </div>
    </form>
  );
}

/** A form for the results of the called tools. */
function Results(props: {
  calls: ToolCall[];
  /** What was typed before, if sending it failed. */
  outputs: string[];
  onResults: (results: ToolResult[]) => void;
}) {
  const { calls, onResults } = props;
  const [outputs, setOutputs] = useState<string[]>(calls.map((_, index) => props.outputs[index] ?? ""));
  const submit = (event: Event) => {
    event.preventDefault();
    onResults(calls.map(({ id, name }, index) => ({ id, name, output: outputs[index] ?? "" })));
  };
  return (
    <form class="results" onSubmit={submit}>
      {calls.map((call, index) => (
        <Line
          key={call.id}
          label={`Result of ${call.name}`}
          value={outputs[index] ?? ""}
          onInput={(value) => setOutputs(outputs.map((other, at) => (at === index ? value : other)))}
        />
      ))}
      <button type="submit" class="button">
        {calls.length === 1 ? "Send the result" : "Send the results"}
      </button>
    </form>
  );
}

function Facts({ answer }: { answer: Answer | null }) {
  if (!answer) return null;
  const rate =
    answer.output !== null && answer.first !== null && answer.took > answer.first
      ? (answer.output / (answer.took - answer.first)) * 1000
      : null;
  const price = models("text").find(
    ({ id, aliases }) => id === answer.model || aliases.includes(answer.model),
  )?.price;
  const spent = price ? cost(price, answer) : null;
  return (
    <dl class="stats">
      {answer.first !== null && (
        <div>
          <dt>First token</dt>
          <dd>{duration(answer.first)}</dd>
        </div>
      )}
      <div>
        <dt>Total</dt>
        <dd>{duration(answer.took)}</dd>
      </div>
      {answer.input !== null && (
        <div>
          <dt>Input</dt>
          <dd>
            {whole(answer.input)}
            {answer.cached ? ` (${whole(answer.cached)} cached)` : ""}
          </dd>
        </div>
      )}
      {answer.output !== null && (
        <div>
          <dt>Output</dt>
          <dd>
            {whole(answer.output)}
            {answer.reasoning ? ` (${whole(answer.reasoning)} reasoning)` : ""}
          </dd>
        </div>
      )}
      {spent !== null && (
        <div>
          <dt>Cost</dt>
          <dd>{money(spent, currency.value)}</dd>
        </div>
      )}
      {rate !== null && rate < 100_000 && (
        <div>
          <dt>Tokens/s</dt>
          <dd>{whole(Math.round(rate))}</dd>
        </div>
      )}
      {answer.reason !== null && (
        <div>
          <dt>Finish reason</dt>
          <dd>
            <Badge kind="plain">{answer.reason}</Badge>
          </dd>
        </div>
      )}
      {answer.upstream !== null && (
        <div>
          <dt>Upstream</dt>
          <dd>{answer.upstream}</dd>
        </div>
      )}
    </dl>
  );
}

function Composer() {
  const [refused, setRefused] = useState<string | null>(null);
  const message = useRef<HTMLTextAreaElement>(null);
  const running = state.isRunning.value;
  const isEmpty =
    (state.draft.value.trim() === "" && state.files.value.length === 0) || state.modelOf(0) === "";
  const send = (event?: Event) => {
    event?.preventDefault();
    if (!running && !isEmpty) void state.send();
  };
  return (
    <form class="composer card" onSubmit={send}>
      <Field label="Message">
        {(id) => (
          <textarea
            id={id}
            ref={message}
            rows={3}
            placeholder={IS_TOUCHED ? "" : "Enter to send, Shift+Enter for a new line"}
            value={state.draft.value}
            onInput={(event) => {
              state.draft.value = event.currentTarget.value;
            }}
            onPaste={(event) => {
              const text = event.clipboardData?.getData("text/plain") ?? "";
              if (text.length <= MAX_TYPED) return;
              event.preventDefault();
              if (state.files.value.length >= MAX_FILES) {
                setRefused(`The text was not pasted: choose at most ${MAX_FILES} files.`);
                return;
              }
              state.files.value = [...state.files.value, pasted(text, state.files.value.length + 1)];
            }}
            onKeyDown={(event) => {
              const sends = event.key === "Enter" && !event.shiftKey && !event.isComposing && !IS_TOUCHED;
              if (sends) send(event);
            }}
          />
        )}
      </Field>
      {state.files.value.length > 0 && (
        <ul class="thumbnails">
          {state.files.value.map((file, place) => (
            // Keyed by position: after a removal, the next image's button has the focus.
            <li key={place}>
              <Attached file={file} />
              <button
                type="button"
                class="button small"
                onClick={() => {
                  if (place === state.files.value.length - 1) message.current?.focus();
                  state.files.value = state.files.value.filter((other) => other !== file);
                }}
              >
                Remove {file.name}
              </button>
            </li>
          ))}
        </ul>
      )}
      {refused && <Problem error={new Error(refused)} reveal />}
      <div class="row">
        <Files
          label="Add files"
          hint="or drop them here"
          accept={[...state.protocol.value.files]}
          most={MAX_FILES}
          maxBytes={MAX_FILE_BYTES}
          onFiles={async (files) => {
            setRefused(null);
            try {
              const read = await Promise.all(files.map(readAttachment));
              state.files.value = [...state.files.value, ...read].slice(0, MAX_FILES);
            } catch (error) {
              setRefused(String(error));
            }
          }}
          onRefused={setRefused}
        />
        <div class="actions">
          <button type="button" class="button" onClick={state.clear}>
            Clear
          </button>
          <Submit words="Send" off={isEmpty} stop={running ? { words: "Stop", act: state.stop } : null} />
        </div>
      </div>
    </form>
  );
}

function SettingsForm() {
  const form = state.form.value;
  const tools = useRef<HTMLTextAreaElement>(null);
  const { lacks, efforts } = state.protocol.value;
  const set = (name: Exclude<keyof state.Form, "stream">) => (value: string) => {
    state.form.value = { ...state.form.value, [name]: value };
  };
  return (
    <section class="card settings" aria-labelledby="settings">
      <h2 id="settings">Settings</h2>
      <label class="check">
        <input
          type="checkbox"
          checked={state.paneCount.value > 1}
          onChange={(event) => state.compare(event.currentTarget.checked)}
        />
        Two models side by side
      </label>
      <Field label="System prompt">
        {(id) => (
          <textarea
            id={id}
            rows={2}
            value={form.system}
            onInput={(event) => set("system")(event.currentTarget.value)}
          />
        )}
      </Field>
      <div class="pair">
        <Line label="Token limit" type="number" min={1} value={form.maxTokens} onInput={set("maxTokens")} />
        <Line
          label="Temperature"
          type="number"
          min={0}
          max={2}
          step="0.1"
          value={form.temperature}
          onInput={set("temperature")}
        />
      </div>
      <Field label="Tools" hint="A JSON array of tools: name, description, parameters (JSON Schema).">
        {(id, hint) => (
          <textarea
            id={id}
            ref={tools}
            class="mono"
            rows={form.tools === "" ? 2 : 8}
            spellcheck={false}
            aria-describedby={hint}
            value={form.tools}
            onInput={(event) => set("tools")(event.currentTarget.value)}
          />
        )}
      </Field>
      {form.tools === "" && (
        <button
          type="button"
          class="button small"
          onClick={() => {
            // The button goes away, so move the focus.
            tools.current?.focus();
            set("tools")(EXAMPLE_TOOLS);
          }}
        >
          Fill in an example
        </button>
      )}
      <details
        open={state.showsMore.value}
        onToggle={(event) => {
          state.showsMore.value = event.currentTarget.open;
        }}
      >
        <summary>More settings</summary>
        <div class="more">
          <label class="check">
            <input
              type="checkbox"
              checked={form.stream}
              onChange={(event) => {
                state.form.value = { ...state.form.value, stream: event.currentTarget.checked };
              }}
            />
            Stream the answer
          </label>
          <Choice
            label="Reasoning effort"
            value={form.effort}
            options={["", ...new Set([...efforts, ...(form.effort ? [form.effort] : [])])].map(
              (value) => [value, value || "default"] as const,
            )}
            onChange={set("effort")}
          />
          <Choice
            label="Tool choice"
            value={form.toolChoice}
            options={toolChoices(form.tools, form.toolChoice)}
            onChange={set("toolChoice")}
          />
          <div class="pair">
            <Line
              label="Top P"
              type="number"
              min={0}
              max={1}
              step="0.05"
              value={form.topP}
              onInput={set("topP")}
            />
            {!lacks.includes("seed") && (
              <Line label="Seed" type="number" step="1" value={form.seed} onInput={set("seed")} />
            )}
          </div>
          {!lacks.includes("stop") && (
            <Area
              label="Stop sequences"
              hint="One per line."
              rows={2}
              value={form.stop}
              onInput={set("stop")}
            />
          )}
          <Area
            label="JSON schema"
            hint="A JSON Schema that the answer must follow."
            rows={form.schema === "" ? 2 : 8}
            value={form.schema}
            onInput={set("schema")}
          />
        </div>
      </details>
    </section>
  );
}

/** The choices of a tool: words, and the names of the tools as far as they can be read. */
function toolChoices(tools: string, chosen: string): (readonly [value: string, text: string])[] {
  let names: string[] = [];
  try {
    names = readTools(tools).map(({ name }) => name);
  } catch {
    // The problem is shown with the code.
  }
  const values = new Set(["", "auto", "required", "none", ...names, chosen]);
  return [...values].map((value) => [value, value || "default"] as const);
}

/** A text of several lines, in code. */
function Area(props: {
  label: string;
  hint: string;
  rows: number;
  value: string;
  onInput: (value: string) => void;
}) {
  return (
    <Field label={props.label} hint={props.hint}>
      {(id, hint) => (
        <textarea
          id={id}
          class="mono"
          rows={props.rows}
          spellcheck={false}
          aria-describedby={hint}
          value={props.value}
          onInput={(event) => props.onInput(event.currentTarget.value)}
        />
      )}
    </Field>
  );
}

function Code() {
  let prepared: Prepared;
  try {
    prepared = state.prepared();
  } catch (error) {
    return <Problem error={error} />;
  }
  return <CodeView prepared={prepared} />;
}
