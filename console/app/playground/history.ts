// Conversations that survive a reload: in the browser's storage, by the id of the key that they were held with. Signing out
// removes all.
import { computed, effect, signal } from "@preact/signals";
import { about, isRestoring, isSignedIn } from "../session.ts";
import { keep, remember, remembered, stored } from "../storage.ts";
import type { Turn } from "./conversation.ts";

/** Maximum number of conversations; the oldest are removed. */
const MAX_CONVERSATIONS = 20;
/** Maximum length of a conversation, in characters of JSON, and of all of them. Browsers keep about five million characters. */
const MAX_LENGTH = 1_000_000;
const MAX_TOTAL = 3_000_000;
/** Maximum length of a title, in characters. */
const MAX_TITLE = 60;

const PREFIX = "gatewright.conversation.";
/** Where a tab remembers which conversation it shows. */
const CURRENT = "gatewright.conversation";

/** A stored conversation. */
export interface Saved {
  /** Milliseconds since 1970. */
  saved: number;
  protocol: string;
  form: Record<string, unknown>;
  panes: { model: string; turns: Turn[] }[];
}

/** The id of the key whose conversations are shown. */
const owner = computed(() => about.value?.key ?? null);
const changes = signal(0);
/** The conversation that this tab shows. */
export const current = signal(remembered(CURRENT) ?? newId());
/** Whether the conversation of this tab is too long to be stored. */
export const isTooLong = signal(false);

/** The conversations of the key, newest first. */
export const conversations = computed(() => {
  changes.value;
  return owner.value === null ? [] : all(`${PREFIX}${owner.value}.`);
});

function newId(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(8)), (byte) =>
    byte.toString(16).padStart(2, "0"),
  ).join("");
}

function all(prefix: string): { id: string; length: number; title: string; saved: Saved }[] {
  const found = [...stored(prefix)].flatMap(([id, text]) => {
    const saved = read(text);
    return saved ? [{ id, length: text.length, title: title(saved), saved }] : [];
  });
  return found.sort((one, other) => other.saved.saved - one.saved.saved);
}

/** Another release of the page may have written something else. */
function read(text: string): Saved | null {
  try {
    const { saved, protocol, form, panes } = JSON.parse(text) as Saved;
    const isTurn = (turn: Turn) => [turn.files, turn.thoughts, turn.calls, turn.results].every(Array.isArray);
    if (typeof saved !== "number" || !panes.every(({ turns }) => turns.every(isTurn))) return null;
    return { saved, protocol, form: form ?? {}, panes };
  } catch {
    return null;
  }
}

function title({ panes }: Saved): string {
  const text =
    panes[0]?.turns
      .find((turn) => turn.text)
      ?.text.trim()
      .replace(/\s+/g, " ") ?? "";
  return text.length > MAX_TITLE ? `${text.slice(0, MAX_TITLE)}…` : text || "Without text";
}

/** Stores the conversation of this tab, and removes the oldest ones beyond the bounds. */
export function save(conversation: Omit<Saved, "saved">): void {
  if (owner.value === null) return;
  const prefix = `${PREFIX}${owner.value}.`;
  const text = JSON.stringify({ saved: Date.now(), ...conversation });
  isTooLong.value = text.length > MAX_LENGTH;
  if (isTooLong.value) return;
  let total = text.length;
  for (const [place, { id, length }] of all(prefix)
    .filter(({ id }) => id !== current.value)
    .entries()) {
    total += length;
    if (place + 1 >= MAX_CONVERSATIONS || total > MAX_TOTAL) keep(prefix + id, null);
  }
  if (keep(prefix + current.value, text)) remember(CURRENT, current.value);
  else isTooLong.value = true;
  changes.value += 1;
}

/** Removes a conversation. */
export function remove(id: string): void {
  keep(`${PREFIX}${owner.value}.${id}`, null);
  changes.value += 1;
}

/** Gives this tab another conversation: a stored one, or a new one. */
export function turnTo(id: string | null): void {
  current.value = id ?? newId();
  isTooLong.value = false;
  remember(CURRENT, id);
}

// On sign-out, remove everything: the next user must not see it. A page that restores its keys isn't signed in yet.
let wasSignedIn = false;
effect(() => {
  const isIn = isSignedIn.value;
  if (wasSignedIn && !isIn && !isRestoring.value) {
    for (const id of stored(PREFIX).keys()) keep(PREFIX + id, null);
    turnTo(null);
  }
  wasSignedIn = isIn;
});

addEventListener("storage", () => {
  changes.value += 1;
});

/** Calls `show` with the conversation that this tab had before it was reloaded, once the key is known. */
export function restoring(show: (saved: Saved) => void): void {
  let isDone = false;
  effect(() => {
    if (isDone || owner.value === null) return;
    isDone = true;
    const found = conversations.peek().find(({ id }) => id === current.peek());
    if (found) show(found.saved);
  });
}
