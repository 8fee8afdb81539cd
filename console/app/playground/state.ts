// The playground's conversations.
import { computed, effect, signal } from "@preact/signals";
import { callerKey, isSignedIn, models } from "../session.ts";
import {
  type Attachment,
  type Prepared,
  readSchema,
  readTools,
  type Settings,
  type ToolResult,
  type Turn,
  userTurn,
} from "./conversation.ts";
import * as history from "./history.ts";
import { preferred } from "./preferred.ts";
import { PROTOCOLS, type Protocol, prepare } from "./protocols.ts";
import { type Answer, run } from "./run.ts";

/** A model and the conversation with it. */
export interface Pane {
  model: string;
  turns: Turn[];
  /** The answer in progress, or the last one. */
  answer: Answer | null;
  /** Set while an answer is in progress. */
  running: AbortController | null;
  stopped: boolean;
  error: unknown;
  /** The message that got no answer. It is not part of the conversation. */
  failed: Failed | null;
}

interface Failed {
  /** The turns that it follows. */
  before: Turn[];
  turn: Turn;
  /** The part of the answer that arrived. */
  partial: Turn | null;
}

/** The texts in the settings form. */
export interface Form {
  system: string;
  maxTokens: string;
  temperature: string;
  topP: string;
  /** One per line. */
  stop: string;
  seed: string;
  effort: string;
  schema: string;
  tools: string;
  toolChoice: string;
  stream: boolean;
}

const BLANK: Form = {
  system: "",
  maxTokens: "",
  temperature: "",
  topP: "",
  stop: "",
  seed: "",
  effort: "",
  schema: "",
  tools: "",
  toolChoice: "",
  stream: true,
};
const EMPTY: Pane = {
  model: "",
  turns: [],
  answer: null,
  running: null,
  stopped: false,
  error: null,
  failed: null,
};

export const protocol = signal<Protocol>(PROTOCOLS[0] as Protocol);
export const panes = signal<Pane[]>([EMPTY]);
export const form = signal<Form>(BLANK);
/** Whether the further settings are shown: they stay when the protocol changes. */
export const showsMore = signal(false);
export const draft = signal("");
export const files = signal<Attachment[]>([]);

/** The number of panes. A component that shows no answers reads this, so that it isn't rendered while one arrives. */
export const paneCount = computed(() => panes.value.length);
/** Whether any answer is in progress. */
export const isRunning = computed(() => panes.value.some((pane) => pane.running !== null));
/** Whether the conversation is empty. */
export const isEmpty = computed(() => panes.value.every((pane) => pane.turns.length === 0 && !pane.failed));
/** The turns of the first pane, for the code view. */
const firstTurns = computed(() => panes.value[0]?.turns ?? []);

/** The models that the chosen protocol serves. */
export const served = (chosen: Protocol) =>
  models("text").filter((model) => model.protocols.includes(chosen.id));

// On sign-out, clear everything: the next user must not see it.
effect(() => {
  if (isSignedIn.value) return;
  for (const pane of panes.peek()) pane.running?.abort();
  panes.value = [EMPTY];
  form.value = BLANK;
  draft.value = "";
  files.value = [];
});

// A model that the user chose to try elsewhere.
effect(() => {
  const model = preferred.value.text;
  if (model === undefined) return;
  panes.value = panes.peek().map((pane, place) => (place === 0 ? { ...pane, model } : pane));
});

const chosenModels = [0, 1].map((place) => computed(() => panes.value[place]?.model));

/** The model of a pane: the chosen one if the protocol serves it, otherwise one that it does. */
export function modelOf(place: number): string {
  const known = served(protocol.value);
  const chosen = chosenModels[place]?.value;
  return known.find((model) => model.id === chosen)?.id ?? known[Math.min(place, known.length - 1)]?.id ?? "";
}

function change(place: number, changes: Partial<Pane>): void {
  panes.value = panes.value.map((pane, index) => (index === place ? { ...pane, ...changes } : pane));
}

export const chooseModel = (place: number, model: string): void => change(place, { model });

export function chooseProtocol(id: string): void {
  protocol.value = PROTOCOLS.find((known) => known.id === id) ?? protocol.value;
}

export function compare(two: boolean): void {
  for (const pane of panes.value.slice(1)) pane.running?.abort();
  panes.value = two ? [...panes.value.slice(0, 1), EMPTY] : panes.value.slice(0, 1);
}

/** Removes the conversation. */
export function clear(): void {
  history.remove(history.current.value);
  begin();
}

/** Begins a new conversation. */
export function begin(): void {
  stop();
  history.turnTo(null);
  panes.value = panes.value.map((pane) => ({ ...EMPTY, model: pane.model }));
}

/** Shows a stored conversation. */
export function open(id: string, saved: history.Saved): void {
  stop();
  history.turnTo(id);
  show(saved);
}

function show(saved: history.Saved): void {
  chooseProtocol(saved.protocol);
  form.value = { ...BLANK, ...saved.form };
  panes.value = saved.panes.slice(0, 2).map(({ model, turns }) => ({ ...EMPTY, model, turns }));
}

history.restoring(show);

/** The conversation in the form in which it is stored and exported. */
export function conversation(): Omit<history.Saved, "saved"> {
  const saved = panes.value.map((_, place) => ({
    model: modelOf(place),
    turns: panes.value[place]?.turns ?? [],
  }));
  return { protocol: protocol.value.id, form: { ...form.value }, panes: saved };
}

/** The settings. Throws an error that says what is wrong with them. */
export function settings(): Settings {
  const { system, maxTokens, temperature, topP, stop, seed, effort, schema, tools, toolChoice, stream } =
    form.value;
  const { lacks } = protocol.value;
  const number = (name: string, typed: string): number | null => {
    if (typed.trim() === "") return null;
    const value = Number(typed);
    if (!Number.isFinite(value)) throw new Error(`${name} is not a number.`);
    return value;
  };
  return {
    system,
    maxTokens: number("The token limit", maxTokens),
    temperature: number("The temperature", temperature),
    topP: number("Top P", topP),
    stop: lacks.includes("stop") ? [] : stop.split("\n").filter((line) => line !== ""),
    seed: lacks.includes("seed") ? null : number("The seed", seed),
    effort,
    schema: readSchema(schema),
    tools: readTools(tools),
    toolChoice,
    stream,
  };
}

/** The request that the first pane would send now. Throws an error that says what is wrong with the settings. */
export function prepared(): Prepared {
  const turns = firstTurns.value;
  const next = draft.value !== "" || files.value.length > 0 || turns.length === 0;
  const all = next
    ? [...turns, userTurn(draft.value || "Say hello.", files.value)]
    : withoutLastAnswer(turns);
  return prepare(protocol.value, modelOf(0), all, settings());
}

function withoutLastAnswer(turns: Turn[]): Turn[] {
  return turns.at(-1)?.role === "assistant" ? turns.slice(0, -1) : turns;
}

/** Sends the draft to all panes. If all of them fail, it is the draft again. */
export async function send(): Promise<void> {
  const turn = userTurn(draft.value, files.value);
  draft.value = "";
  files.value = [];
  const answered = await Promise.all(panes.value.map((pane, place) => answer(place, pane.turns, turn)));
  if (answered.some((each) => each) || draft.value !== "" || files.value.length > 0) return;
  if (!isSignedIn.value) return;
  draft.value = turn.text;
  files.value = turn.files;
}

/** Sends the results of tool calls. */
export function sendResults(place: number, results: ToolResult[]): void {
  void answer(place, panes.value[place]?.turns ?? [], { ...userTurn(""), results });
}

/** Sends the message that failed, or else the last one, once more. */
export function retry(place: number): void {
  const pane = panes.value[place];
  if (!pane) return;
  if (pane.failed) {
    // It is also the draft, unless that was changed.
    if (draft.value === pane.failed.turn.text && files.value === pane.failed.turn.files) {
      draft.value = "";
      files.value = [];
    }
    void answer(place, pane.failed.before, pane.failed.turn);
    return;
  }
  const last = pane.turns.findLastIndex((turn) => turn.role === "user");
  const turn = pane.turns[last];
  if (turn) void answer(place, pane.turns.slice(0, last), turn);
}

/** Replaces the text of a message, and all that follows it. */
export function edit(place: number, index: number, text: string): void {
  const turns = panes.value[place]?.turns ?? [];
  const turn = turns[index];
  if (turn) void answer(place, turns.slice(0, index), { ...turn, text });
}

/** Asks for the answer to a turn that follows `before`. Returns whether there is one, or a part of one that the user stopped. */
async function answer(place: number, before: Turn[], turn: Turn): Promise<boolean> {
  const pane = panes.value[place];
  const key = callerKey.value;
  if (!pane || key === undefined || pane.running) return false;
  const running = new AbortController();
  const isOurs = () => panes.value[place]?.running === running;
  const turns = [...before, turn];
  change(place, { turns, answer: null, running, stopped: false, error: null, failed: null });
  let last: Answer | null = null;
  // Hundreds of parts may arrive within a frame; what is shown is the latest state. In a hidden tab there are no frames, and
  // only the end is shown.
  let frame = 0;
  const show = () => {
    frame = 0;
    if (isOurs()) change(place, { answer: last });
  };
  const end = (changes: Partial<Pane>) => {
    change(place, { ...changes, running: null });
    history.save(conversation());
  };
  try {
    const model = modelOf(place);
    const request = prepare(protocol.value, model, turns, settings());
    last = await run(key, protocol.value, model, request, running.signal, (so_far) => {
      last = so_far;
      frame ||= requestAnimationFrame(show);
    });
    if (isOurs()) end({ turns: [...turns, last.turn], answer: last });
    return true;
  } catch (error) {
    if (!isOurs()) return true;
    const so_far: Answer | null = last;
    const stopped = running.signal.aborted;
    const partial =
      so_far !== null && so_far.turn.text !== "" ? { ...so_far.turn, thoughts: [], calls: [] } : null;
    if (stopped && partial) {
      end({ turns: [...turns, partial], answer: so_far, stopped });
      return true;
    }
    // What failed isn't sent again with the next message. The answer that it was to replace stays.
    const failed = pane.turns.includes(turn) ? null : { before, turn, partial };
    end({ turns: pane.turns, answer: so_far, stopped, error: stopped ? null : error, failed });
    return false;
  } finally {
    cancelAnimationFrame(frame);
  }
}

export function stop(): void {
  for (const pane of panes.value) pane.running?.abort();
}
