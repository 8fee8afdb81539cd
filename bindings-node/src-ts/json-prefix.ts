/** Closes the beginning of a JSON document, to parse a growing answer. */

// The bounds of a document whose beginning is parsed, which are the core's. Beyond them it is parsed only as a whole.

/** Maximum length, in bytes of UTF-8. */
const MAX_PREFIX_BYTES = 8 * 1024 * 1024;
/** Maximum nesting. */
const MAX_PREFIX_DEPTH = 128;
/** Maximum number of values, members and items at every depth included. */
const MAX_PREFIX_VALUES = 100_000;
/** Maximum length of a number or a word. */
const MAX_PREFIX_WORD = 1024;

const TEXT = /[^"\\]*/y;
const SCALAR = /[-+.0-9a-zA-Z]*/y;
const SPACE = /[ \t\r\n]*/y;

/** How much of a text to take, and the text that closes it; nothing if it has no value. */
export interface Cut {
  readonly end: number;
  readonly tail: string;
}

/**
 * The next part: a value, the first of an array, a name, the first of an object, a colon, the part after a
 * value, the end; or the rest of a text, of a name's text, of a scalar.
 */
type State =
  | "value"
  | "first"
  | "name"
  | "first name"
  | "colon"
  | "after"
  | "end"
  | "text"
  | "name text"
  | "scalar";

/**
 * A growing document. Each character is read once, however often the value is requested.
 *
 * An open string counts as far as it goes; a number, `true`, `false` and `null` count once the next character
 * shows that they are complete; a name without a value does not count.
 */
export class JsonPrefix {
  readonly #closers: ("}" | "]")[] = [];
  #state: State = "value";
  /** How much of the document is complete but for its closers. */
  #complete = 0;
  #length = 0;
  #bytes = 0;
  #values = 0;
  /** The length of the scalar so far. */
  #word = 0;
  /** An escape that continues in the next text. */
  #pending = "";
  #broken = false;

  /** Adds text to the document. */
  feed(text: string): void {
    if (this.#broken || text === "") return;
    const all = this.#pending + text;
    const start = this.#length - this.#pending.length;
    this.#pending = "";
    this.#length += text.length;
    this.#bytes += Buffer.byteLength(text);
    this.#broken = this.#bytes > MAX_PREFIX_BYTES;
    for (let at = 0; at < all.length && !this.#broken; ) {
      const reached = this.#step(all, at, start);
      if (reached === undefined) {
        this.#pending = all.slice(at);
        return;
      }
      at = reached;
    }
  }

  /** Where to cut the document now. */
  cut(): Cut {
    if (this.#broken) return { end: 0, tail: "" };
    const tail = [...this.#closers].reverse().join("");
    if (this.#state === "text") return { end: this.#length - this.#pending.length, tail: `"${tail}` };
    return { end: this.#complete, tail };
  }

  /** Reads one token; returns where the next begins, if that is known yet. */
  #step(text: string, from: number, start: number): number | undefined {
    const state = this.#state;
    if (state === "text" || state === "name text") return this.#inText(text, from, start);
    if (state === "scalar") {
      const end = endOf(SCALAR, text, from);
      this.#word += end - from;
      if (this.#word > MAX_PREFIX_WORD) {
        this.#broken = true;
      } else if (end < text.length) {
        this.#valueBegins();
        this.#valueEnds(start + end);
      }
      return end;
    }
    const at = endOf(SPACE, text, from);
    if (at === text.length) return at;
    const one = text.charAt(at);
    const isValue = state === "value" || state === "first";
    if (one === '"' && (isValue || state === "name" || state === "first name")) {
      this.#state = isValue ? "text" : "name text";
      if (isValue) this.#valueBegins();
    } else if ((one === "{" || one === "[") && isValue) {
      this.#closers.push(one === "{" ? "}" : "]");
      this.#state = one === "{" ? "first name" : "first";
      this.#complete = start + at + 1;
      this.#valueBegins();
      this.#broken ||= this.#closers.length > MAX_PREFIX_DEPTH;
    } else if (
      one === this.#closers.at(-1) &&
      (state === "after" || (state === "first" && one === "]") || (state === "first name" && one === "}"))
    ) {
      this.#closers.pop();
      this.#valueEnds(start + at + 1);
    } else if (one === "," && state === "after") {
      this.#state = this.#closers.at(-1) === "}" ? "name" : "value";
    } else if (one === ":" && state === "colon") {
      this.#state = "value";
    } else if (isValue && /[-tfn0-9]/.test(one)) {
      this.#state = "scalar";
      this.#word = 1;
    } else {
      this.#broken = true;
    }
    return at + 1;
  }

  #inText(text: string, at: number, start: number): number | undefined {
    const end = endOf(TEXT, text, at);
    if (end > at || end === text.length) return end;
    if (text.charAt(end) === '"') {
      if (this.#state === "name text") this.#state = "colon";
      else this.#valueEnds(start + end + 1);
      return end + 1;
    }
    const size = escapeSize(text, end);
    return size === undefined || end + size > text.length ? undefined : end + size;
  }

  #valueBegins(): void {
    this.#values += 1;
    this.#broken = this.#values > MAX_PREFIX_VALUES;
  }

  #valueEnds(end: number): void {
    this.#complete = end;
    this.#state = this.#closers.length > 0 ? "after" : "end";
  }
}

/** The value of a text after it was cut and closed; null if it has no value. */
export function valueOfCut(text: string, { end, tail }: Cut): unknown {
  if (end === 0 && tail === "") return null;
  try {
    return JSON.parse(text.slice(0, end) + tail);
  } catch {
    return null;
  }
}

/** The size of an escape, or of both halves of a surrogate pair; `undefined` if it is not complete. */
function escapeSize(text: string, at: number): number | undefined {
  if (text.charAt(at + 1) !== "u") return 2;
  if (!/^d[89ab]$/i.test(text.slice(at + 2, at + 4))) return 6;
  const after = text.slice(at + 6, at + 8);
  if (after === "" || after === "\\") return undefined;
  return after === "\\u" ? 12 : 6;
}

function endOf(pattern: RegExp, text: string, at: number): number {
  pattern.lastIndex = at;
  pattern.test(text);
  return pattern.lastIndex;
}
