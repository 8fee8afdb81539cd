// The blocks of a Markdown text that grows: only the last one is read again when text is added.
import { Lexer, type Token } from "marked";

/** Maximum length of a block to read as Markdown, in characters. A longer one is shown as it is: some texts take quadratic time. */
const MAX_BLOCK = 20_000;

/** The blocks of a text. */
export interface Blocks {
  text: string;
  /** Those that more text can't change. They stay the same objects. */
  settled: readonly Token[];
  /** Where the last block begins. */
  end: number;
  last: readonly Token[];
}

export const NO_BLOCKS: Blocks = { text: "", settled: [], end: 0, last: [] };

/** The blocks of `text`. Reads only what follows the settled blocks of `before`, if `text` continues its text. */
export function grown(before: Blocks, text: string): Blocks {
  if (text === before.text) return before;
  const { settled, end } = text.startsWith(before.text) ? before : NO_BLOCKS;
  const tokens = lexed(text.slice(end));
  // Not the blank lines at the end: a list may continue after them.
  const open = tokens.findLastIndex((token) => token.type !== "space");
  const done = tokens.slice(0, Math.max(open, 0));
  return {
    text,
    settled: done.length > 0 ? [...settled, ...done] : settled,
    end: end + lengthOf(done),
    last: tokens.slice(done.length),
  };
}

const lengthOf = (tokens: Token[]): number => tokens.reduce((sum, token) => sum + token.raw.length, 0);

/** The blocks of a text whose lines end with `\n`. */
export function lexed(text: string): Token[] {
  try {
    const lexer = new Lexer({ gfm: true });
    lexer.blockTokens(text, lexer.tokens);
    for (const { src, tokens } of lexer.inlineQueue) {
      if (src.length > MAX_BLOCK) tokens.push(plain(src));
      else lexer.inlineTokens(src, tokens);
    }
    if (lengthOf(lexer.tokens) === text.length) return lexer.tokens;
  } catch {
    // It is nested too deeply.
  }
  return [plain(text)];
}

const plain = (text: string): Token => ({ type: "text", raw: text, text, escaped: false });
