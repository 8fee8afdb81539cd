// Text: a conversation with one model, or with two models side by side.
import { useEffect, useRef, useState } from "preact/hooks";
import { Files } from "../ui/files.tsx";
import { duration, whole } from "../ui/format.ts";
import { Badge, Field, Line, Problem, Submit } from "../ui/parts.tsx";
import { Tabs } from "../ui/tabs.tsx";
import { CodeView } from "./code-view.tsx";
import { EXAMPLE_TOOLS, type Prepared, type ToolCall, type ToolResult, type Turn } from "./conversation.ts";
import { LONGEST_PICTURE, MOST_PICTURES, PICTURE_TYPES, readPicture } from "./pictures.ts";
import { PROTOCOLS } from "./protocols.ts";
import type { Answer } from "./run.ts";
import * as state from "./state.ts";

export function Chat() {
  const panes = state.panes.value;
  return (
    <Tabs
      label="Protocol"
      tabs={PROTOCOLS.map(({ id, title }) => ({ value: id, label: title }))}
      value={state.protocol.value.id}
      onChange={state.chooseProtocol}
    >
      <div class="playground">
        <div class="talk">
          <div class={panes.length > 1 ? "panes two" : "panes"}>
            {panes.map((pane, place) => (
              <Conversation key={place} pane={pane} place={place} />
            ))}
          </div>
          <Composer />
        </div>
        <SettingsForm />
      </div>
      <Code />
    </Tabs>
  );
}

function Conversation({ pane, place }: { pane: state.Pane; place: number }) {
  const log = useRef<HTMLDivElement>(null);
  const served = state.served(state.protocol.value);
  const length = pane.answer?.turn.text.length ?? 0;
  useEffect(() => {
    const frame = log.current;
    if (frame) frame.scrollTop = frame.scrollHeight;
  }, [pane.turns.length, length]);
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
      >
        {pane.turns.length === 0 && <p class="empty">Ask something below.</p>}
        {pane.turns.map((turn, index) => (
          <Said key={index} turn={turn} />
        ))}
        {pane.running && pane.answer && <Said turn={pane.answer.turn} />}
        {pane.running && !pane.answer && <p class="soft waiting">Waiting for a response…</p>}
        {pane.stopped && <p class="soft">You stopped the response.</p>}
        <Problem error={pane.error} />
      </div>
      {last && last.role === "assistant" && last.calls.length > 0 && !pane.running && (
        <Results
          key={pane.turns.length}
          calls={last.calls}
          onResults={(results) => {
            // The form goes away, so focus the log, where the answer appears.
            log.current?.focus();
            state.sendResults(place, results);
          }}
        />
      )}
      <Facts answer={pane.answer} />
    </section>
  );
}

function Said({ turn }: { turn: Turn }) {
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
  return (
    <article class={`turn ${turn.role}`}>
      <h2>{turn.role === "user" ? "You" : "Model"}</h2>
      {turn.pictures.map((picture) => (
        <img key={picture.name} src={`data:${picture.type};base64,${picture.base64}`} alt={picture.name} />
      ))}
      {turn.text && <p class="text">{turn.text}</p>}
      {turn.calls.map((call) => (
        <pre key={call.id}>{`${call.name}(${call.arguments})`}</pre>
      ))}
    </article>
  );
}

/** A form for the results of the called tools. */
function Results({ calls, onResults }: { calls: ToolCall[]; onResults: (results: ToolResult[]) => void }) {
  const [outputs, setOutputs] = useState<string[]>(calls.map(() => ""));
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
          <dd>{whole(answer.output)}</dd>
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
  const running = state.panes.value.some((pane) => pane.running !== null);
  const isEmpty = state.draft.value.trim() === "" && state.pictures.value.length === 0;
  const send = (event?: Event) => {
    event?.preventDefault();
    if (!running && !isEmpty) state.send();
  };
  return (
    <form class="composer card" onSubmit={send}>
      <Field label="Message">
        {(id) => (
          <textarea
            id={id}
            ref={message}
            rows={3}
            placeholder="Enter to send, Shift+Enter for a new line"
            value={state.draft.value}
            onInput={(event) => {
              state.draft.value = event.currentTarget.value;
            }}
            onKeyDown={(event) => {
              if (event.key === "Enter" && !event.shiftKey && !event.isComposing) send(event);
            }}
          />
        )}
      </Field>
      {state.pictures.value.length > 0 && (
        <ul class="thumbnails">
          {state.pictures.value.map((picture, place) => (
            // Keyed by position: after a removal, the next image's button has the focus.
            <li key={place}>
              <img src={`data:${picture.type};base64,${picture.base64}`} alt={picture.name} />
              <button
                type="button"
                class="button small"
                onClick={() => {
                  if (place === state.pictures.value.length - 1) message.current?.focus();
                  state.pictures.value = state.pictures.value.filter((other) => other !== picture);
                }}
              >
                Remove {picture.name}
              </button>
            </li>
          ))}
        </ul>
      )}
      {refused && <Problem error={new Error(refused)} />}
      <div class="row">
        <Files
          label="Add images"
          hint="or drop them here"
          accept={PICTURE_TYPES}
          most={MOST_PICTURES}
          maxBytes={LONGEST_PICTURE}
          onFiles={async (files) => {
            setRefused(null);
            try {
              const read = await Promise.all(files.map(readPicture));
              state.pictures.value = [...state.pictures.value, ...read].slice(0, MOST_PICTURES);
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
  const set = (name: keyof state.Form) => (value: string) => {
    state.form.value = { ...state.form.value, [name]: value };
  };
  return (
    <section class="card settings" aria-labelledby="settings">
      <h2 id="settings">Settings</h2>
      <label class="check">
        <input
          type="checkbox"
          checked={state.panes.value.length > 1}
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
    </section>
  );
}

function Code() {
  let prepared: Prepared;
  try {
    prepared = state.prepared(0);
  } catch (error) {
    return <Problem error={error} />;
  }
  return <CodeView prepared={prepared} />;
}
