// The playground's conversations, which last while the page is open and the user is signed in.
import { effect, signal } from "@preact/signals";
import { isSignedIn, keys, models } from "../session.ts";
import {
  type Picture,
  type Prepared,
  readTools,
  type Settings,
  said,
  type ToolResult,
  type Turn,
} from "./conversation.ts";
import { PROTOCOLS, type Protocol } from "./protocols.ts";
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
}

/** The texts in the settings form. */
export interface Form {
  system: string;
  maxTokens: string;
  temperature: string;
  tools: string;
}

const BLANK: Form = { system: "", maxTokens: "", temperature: "", tools: "" };
const EMPTY: Pane = { model: "", turns: [], answer: null, running: null, stopped: false, error: null };

export const protocol = signal<Protocol>(PROTOCOLS[0] as Protocol);
export const panes = signal<Pane[]>([EMPTY]);
export const form = signal<Form>(BLANK);
export const draft = signal("");
export const pictures = signal<Picture[]>([]);

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
  pictures.value = [];
});

/** The model of a pane: the chosen one if the protocol serves it, otherwise one that it does. */
export function modelOf(place: number): string {
  const known = served(protocol.value);
  const chosen = panes.value[place]?.model;
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

export function clear(): void {
  stop();
  panes.value = panes.value.map((pane) => ({ ...EMPTY, model: pane.model }));
}

/** The settings. Throws an error that says what is wrong with them. */
export function settings(): Settings {
  const { system, maxTokens, temperature, tools } = form.value;
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
    tools: readTools(tools),
  };
}

/** The request that a pane would send now. Throws an error that says what is wrong with the settings. */
export function prepared(place: number): Prepared {
  const turns = panes.value[place]?.turns ?? [];
  const next = draft.value !== "" || pictures.value.length > 0 || turns.length === 0;
  const all = next ? [...turns, said(draft.value || "Say hello.", pictures.value)] : withoutLastAnswer(turns);
  return protocol.value.prepare(modelOf(place), all, settings());
}

function withoutLastAnswer(turns: Turn[]): Turn[] {
  return turns.at(-1)?.role === "assistant" ? turns.slice(0, -1) : turns;
}

/** Sends the draft to all panes. */
export function send(): void {
  const turn = said(draft.value, pictures.value);
  draft.value = "";
  pictures.value = [];
  panes.value.forEach((_, place) => {
    void answer(place, turn);
  });
}

/** Sends the results of tool calls. */
export function sendResults(place: number, results: ToolResult[]): void {
  void answer(place, { ...said(""), results });
}

async function answer(place: number, turn: Turn): Promise<void> {
  const pane = panes.value[place];
  const key = keys.value.client;
  if (!pane || key === undefined || pane.running) return;
  const running = new AbortController();
  const isOurs = () => panes.value[place]?.running === running;
  const turns = [...pane.turns, turn];
  change(place, { turns, answer: null, running, stopped: false, error: null });
  let last: Answer | null = null;
  try {
    const request = protocol.value.prepare(modelOf(place), turns, settings());
    last = await run(key, protocol.value, request, running.signal, (so_far) => {
      last = so_far;
      if (isOurs()) change(place, { answer: so_far });
    });
    if (isOurs()) change(place, { turns: [...turns, last.turn], answer: last, running: null });
  } catch (error) {
    if (!isOurs()) return;
    // Keep the partial answer, and make it part of the conversation if it has any text.
    const so_far: Answer | null = last;
    const kept =
      so_far !== null && so_far.turn.text !== "" ? [...turns, { ...so_far.turn, calls: [] }] : turns;
    const stopped = running.signal.aborted;
    change(place, { turns: kept, running: null, stopped, error: stopped ? null : error });
  }
}

export function stop(): void {
  for (const pane of panes.value) pane.running?.abort();
}
