/**
 * What the events of a message add up to so far, as the core adds them up (`core/src/stream/accumulate/messages.rs`): members
 * that don't fit are dropped, and nothing fails. An event costs as much as its own text, however much has arrived before.
 */

import { operations } from "./generated/operations";
import type { Message, MessageBlock } from "./generated/types";
import { type Cut, JsonPrefix, valueOfCut } from "./json-prefix";
import { isObject, type Members, put } from "./members";
import { keepKnown, Merger } from "./merging";
import { completer } from "./result";

/** The block that a piece begins if the event of the block did not arrive. */
const BLOCK_OF_DELTA: ReadonlyMap<string, string> = new Map([
  ["input_json_delta", "tool_use"],
  ["signature_delta", "thinking"],
  ["citations_delta", "text"],
]);

/** The message: one object, which grows. */
export class MessageSoFar {
  #message: Members | undefined;
  /** By `index`, which need not arrive in order. */
  readonly #blocks = new Map<number, Block>();
  /** The documents of the blocks. */
  #content: Members[] = [];
  /** The highest index. */
  #last = -1;
  #isOver = false;
  readonly #merger = new Merger();

  /** The message so far; `undefined` before it has begun. */
  get message(): Message | undefined {
    return this.#message as Message | undefined;
  }

  /** Begins the message; returns its blocks, which a server that does not stream sends at once. */
  begin(event: object): readonly Block[] {
    const message = objectIn(event, "message");
    if (message === undefined) return [];
    const given = message["content"];
    const blocks = (Array.isArray(given) ? given : [])
      .filter(isObject)
      .map((block) => new Block(block, this.#merger));
    this.#content = blocks.map(({ members }) => members);
    this.#blocks.clear();
    for (const [index, block] of blocks.entries()) this.#blocks.set(index, block);
    this.#last = blocks.length - 1;
    this.#isOver = false;
    this.#begin({ ...message });
    return blocks;
  }

  #begin(message: Members): Members {
    this.#message = message;
    put(message, "content", this.#content);
    completer(operations.create_message)?.({ message });
    return message;
  }

  /** Adds a block. */
  beginBlock(event: object): void {
    const block = objectIn(event, "content_block");
    if (block !== undefined) this.#add(indexOf(event) ?? this.#last + 1, new Block(block, this.#merger));
  }

  /** Adds a piece to its block, which it begins if it is not known; returns the block. */
  add(event: object, delta: Members): Block {
    const index = indexOf(event) ?? Math.max(this.#last, 0);
    const block = this.#blocks.get(index) ?? this.#add(index, new Block({}, this.#merger));
    block.add(delta);
    return block;
  }

  /** Ends a block; returns its document. A block that is not known has no members, and is not added. */
  endBlock(event: object): MessageBlock {
    const block = this.#blocks.get(indexOf(event) ?? this.#last) ?? new Block({}, this.#merger);
    block.end();
    return block.members as unknown as MessageBlock;
  }

  #add(index: number, block: Block): Block {
    const message = this.#message ?? this.#begin({});
    this.#blocks.set(index, block);
    if (index > this.#last) {
      this.#last = index;
      this.#content.push(block.members);
    } else {
      // Blocks almost always arrive in order. Moving those behind it, each time, would take longer with each of them.
      const get = () => this.#sorted(message);
      Object.defineProperty(message, "content", { get, enumerable: true, configurable: true });
    }
    return block;
  }

  #sorted(message: Members): Members[] {
    const content = this.#content;
    content.length = 0;
    const inOrder = [...this.#blocks].sort(([one], [other]) => one - other);
    for (const [, { members }] of inOrder) content.push(members);
    put(message, "content", content);
    return content;
  }

  /** Adds what is known at the end. A usage repeats only what has changed. */
  settle(event: object): void {
    const delta = objectIn(event, "delta");
    const usage = objectIn(event, "usage");
    const message = this.#message ?? this.#begin({});
    // Its blocks are the content of a message, whatever else calls itself so.
    const { content: _, ...known } = delta ?? {};
    keepKnown(message, known);
    const before = message["usage"];
    if (usage !== undefined && isObject(before)) {
      keepKnown(this.#merger.owned(message, "usage", before), usage);
    } else if (usage !== undefined) {
      put(message, "usage", usage);
    }
    const { type: _type, delta: _delta, usage: _usage, content: _content, ...rest } = event as Members;
    keepKnown(message, rest);
  }

  /** Ends every block; returns the message. */
  end(): Message {
    // Once: a server may repeat the event.
    if (!this.#isOver) for (const block of this.#blocks.values()) block.end();
    this.#isOver = true;
    return (this.#message ?? this.#begin({})) as unknown as Message;
  }
}

/** The index of an event's block; `undefined` if it has none, or one that cannot be one. */
function indexOf(event: object): number | undefined {
  const index = (event as Members)["index"];
  return Number.isSafeInteger(index) && (index as number) >= 0 ? (index as number) : undefined;
}

/** A member that is an object. */
export function objectIn(holder: object, name: string): Members | undefined {
  const value = (holder as Members)[name];
  return isObject(value) ? value : undefined;
}

/** A member that is a text; empty for any other value. */
export function textIn(holder: Members, name: string): string {
  const value = holder[name];
  return typeof value === "string" ? value : "";
}

/** A block of the content. */
export class Block {
  /** The block as it would be without streaming; of an open call, `input` is the input so far. */
  readonly members: Members;
  /** Whether neither the event of the block nor a piece has arrived. */
  #isBlank: boolean;
  /** The JSON of the input of a call. */
  #input = "";
  readonly #prefix = new JsonPrefix();
  /** Whether the input has arrived as JSON, blanks aside: then no other counts. */
  #hasInput = false;
  /** Whether `input` is parsed when it is read. */
  #isInputLive = false;
  #hasEnded = false;
  readonly #merger: Merger;

  constructor(members: Members, merger: Merger) {
    this.members = { ...members };
    this.#merger = merger;
    this.#isBlank = Object.keys(members).length === 0;
    this.#complete();
  }

  get citations(): readonly unknown[] {
    const citations = this.members["citations"];
    return Array.isArray(citations) ? citations : [];
  }

  /** The JSON of the input so far, and where to cut it. */
  get input(): { readonly text: string; readonly cut: Cut } {
    return { text: this.#input, cut: this.#prefix.cut() };
  }

  /** A text so far. */
  text(name: string): string {
    return textIn(this.members, name);
  }

  /** Adds a piece. */
  add(delta: Members): void {
    const kind = textIn(delta, "type");
    if (this.#isBlank) {
      this.#isBlank = false;
      put(this.members, "type", blockOf(kind));
      this.#complete();
    }
    const { type: _, ...rest } = delta;
    if (this.#hasInput) delete rest["input"];
    switch (kind) {
      case "input_json_delta":
        this.#addInput(textIn(delta, "partial_json"));
        return;
      case "citations_delta":
        if (delta["citation"] != null) this.#cite(delta["citation"]);
        return;
      case "signature_delta":
        // It arrives whole.
        keepKnown(this.members, rest);
        return;
      default:
        this.#merger.merge(this.members, rest);
    }
  }

  /** A call has an input. */
  #complete(): void {
    if (this.members["type"] === "tool_use") this.members["input"] ??= {};
  }

  #addInput(piece: string): void {
    this.#input += piece;
    this.#prefix.feed(piece);
    this.#hasInput ||= piece.trim() !== "";
    if (!this.#hasInput || this.#isInputLive) return;
    this.#isInputLive = true;
    const get = () =>
      this.#hasEnded ? wholeValue(this.#input) : (valueOfCut(this.#input, this.#prefix.cut()) ?? {});
    Object.defineProperty(this.members, "input", { get, enumerable: true, configurable: true });
  }

  #cite(citation: unknown): void {
    const citations = this.members["citations"];
    if (Array.isArray(citations)) this.#merger.owned(this.members, "citations", citations).push(citation);
    else put(this.members, "citations", [citation]);
  }

  /** Ends the block: a text of an input that is truncated or not JSON stays as it arrived. */
  end(): void {
    // Once: a server may go on with a block that it has ended, and end it again. Then the input is parsed when it is read.
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    if (!this.#hasInput) return;
    this.#isInputLive = false;
    put(this.members, "input", wholeValue(this.#input));
  }
}

/** The kind of a block by that of its piece. */
function blockOf(kind: string): string {
  let block = kind;
  while (block.endsWith("_delta")) block = block.slice(0, -"_delta".length);
  return BLOCK_OF_DELTA.get(kind) ?? block;
}

/** The value of a text, itself if it is not JSON. */
function wholeValue(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
