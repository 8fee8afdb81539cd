/** What the events of a message add up to so far. */

import { operations } from "./generated/operations";
import type {
  Message,
  MessageBlock,
  MessageBlockDelta,
  MessageBlockStartEvent,
  MessageDeltaEvent,
} from "./generated/types";
import { type Cut, JsonPrefix, valueOfCut } from "./json-prefix";
import { completer } from "./result";

type Members = Record<string, unknown>;

/** The block that a piece begins if the event of the block did not arrive. */
const BLOCK_OF_DELTA: Readonly<Record<string, string>> = {
  input_json_delta: "tool_use",
  signature_delta: "thinking",
  citations_delta: "text",
};
/** Members of unknown blocks that are replaced, not appended to. */
const NAMES = ["format", "id", "model", "name", "object", "provider", "role", "type"];

/** The message: one object, which grows. */
export class MessageSoFar {
  #message: Members | undefined;
  /** By `index`, which need not arrive in order. */
  readonly #blocks = new Map<number, Block>();
  /** The indices of the content's blocks, in order. */
  #order: number[] = [];

  /** The message so far; `undefined` before it has begun. */
  get message(): Message | undefined {
    return this.#message as Message | undefined;
  }

  /** Begins the message; returns its blocks, which a server that does not stream sends at once. */
  begin(message: Message): readonly Block[] {
    this.#message = { ...message, content: [] };
    completer(operations.create_message)?.({ message: this.#message });
    for (const [index, block] of (message.content ?? []).entries()) this.#add(index, new Block({ ...block }));
    return [...this.#blocks.values()];
  }

  /** Adds a block. */
  beginBlock({ index = (this.#order.at(-1) ?? -1) + 1, content_block: block }: MessageBlockStartEvent): void {
    this.#add(index, new Block({ ...block }));
  }

  /** The block of a piece, or of the end of a block. */
  block({ index = this.#order.at(-1) ?? 0 }: { readonly index?: number }): Block {
    return this.#blocks.get(index) ?? this.#add(index, new Block({}));
  }

  #add(index: number, block: Block): Block {
    this.#message ??= { content: [] };
    const content = this.#message["content"] as unknown[];
    // Blocks almost always arrive in order.
    let at = this.#order.length;
    while (at > 0 && (this.#order[at - 1] as number) >= index) at -= 1;
    const isKnown = this.#blocks.has(index);
    this.#order.splice(at, isKnown ? 1 : 0, index);
    content.splice(at, isKnown ? 1 : 0, block.members);
    this.#blocks.set(index, block);
    return block;
  }

  /** Adds what is known at the end. A usage repeats only what has changed. */
  settle({ type: _, delta, usage, ...rest }: MessageDeltaEvent): void {
    this.#message ??= { content: [] };
    putKnown(this.#message, { ...delta });
    if (usage != null) {
      const known = { ...(this.#message["usage"] as Members | null | undefined) };
      putKnown(known, { ...usage });
      this.#message["usage"] = known;
    }
    putKnown(this.#message, rest);
  }

  /** Ends every block. */
  end(): void {
    for (const block of this.#blocks.values()) block.end();
  }
}

/** A block of the content. */
export class Block {
  /** The block as it would be without streaming; of an open call, `input` is the input so far. */
  readonly members: Members;
  /** The JSON of the input of a call. Empty if the input arrived as an object. */
  #input = "";
  readonly #prefix = new JsonPrefix();
  /** A list of our own, which grows. */
  #citations: unknown[] | undefined;

  constructor(members: Members) {
    this.members = members;
    this.#complete();
  }

  get document(): MessageBlock {
    return this.members as unknown as MessageBlock;
  }

  get citations(): readonly unknown[] {
    return this.#citations ?? [];
  }

  /** The JSON of the input so far, and where to cut it. */
  get input(): { readonly text: string; readonly cut: Cut } {
    return { text: this.#input, cut: this.#prefix.cut() };
  }

  /** Adds a piece. */
  add({ type: kind, ...delta }: MessageBlockDelta): void {
    if (Object.keys(this.members).length === 0) {
      this.members["type"] = BLOCK_OF_DELTA[kind] ?? kind.replace(/_delta$/, "");
      this.#complete();
    }
    const members: Members = delta;
    switch (kind) {
      case "input_json_delta":
        this.#addInput(String(members["partial_json"] ?? ""));
        return;
      case "citations_delta":
        this.#cite(members["citation"]);
        return;
      case "signature_delta":
        // It arrives whole.
        putKnown(this.members, members);
        return;
      default:
        for (const [name, value] of Object.entries(members)) this.#merge(name, value);
    }
  }

  /** A call has an input. */
  #complete(): void {
    if (this.members["type"] === "tool_use") this.members["input"] ??= {};
  }

  #addInput(piece: string): void {
    if (piece !== "" && this.#input === "") {
      // Parsed when it is read.
      const get = () => valueOfCut(this.#input, this.#prefix.cut()) ?? {};
      Object.defineProperty(this.members, "input", { get, enumerable: true, configurable: true });
    }
    this.#input += piece;
    this.#prefix.feed(piece);
  }

  #cite(citation: unknown): void {
    if (this.#citations === undefined) {
      const given = this.members["citations"];
      this.#citations = Array.isArray(given) ? [...given] : [];
      this.members["citations"] = this.#citations;
    }
    if (citation != null) this.#citations.push(citation);
  }

  #merge(name: string, value: unknown): void {
    const before = this.members[name];
    const isText = typeof value === "string" && (before == null || typeof before === "string");
    if (isText && !NAMES.includes(name)) {
      put(this.members, name, `${before ?? ""}${value}`);
    } else if (Array.isArray(before) && Array.isArray(value)) {
      put(this.members, name, [...before, ...value]);
    } else if (isObject(before) && isObject(value)) {
      put(this.members, name, { ...before, ...value });
    } else if (before === undefined || (value != null && value !== "")) {
      put(this.members, name, value);
    }
  }

  /** Ends the block: a text of an input that is truncated or not JSON stays as it arrived. */
  end(): void {
    const text = this.#input;
    if (text === "") return;
    this.#input = "";
    let input: unknown = text;
    try {
      input = text.trim() === "" ? {} : JSON.parse(text);
    } catch {
      // It stays a text.
    }
    put(this.members, "input", input);
  }
}

function isObject(value: unknown): value is Members {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Sets a member, whatever its name: `__proto__` is one like any other. */
function put(members: Members, name: string, value: unknown): void {
  Object.defineProperty(members, name, { value, enumerable: true, configurable: true, writable: true });
}

/** Replaces members by newer ones that have a value. */
function putKnown(members: Members, newer: Members): void {
  for (const [name, value] of Object.entries(newer)) if (value != null) put(members, name, value);
}
