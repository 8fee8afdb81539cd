// Markdown as elements. No markup is ever parsed: HTML in a text is shown as text, and images are links.
import type { MarkedToken, Token, Tokens } from "marked";
import type { ComponentChildren } from "preact";
import { memo } from "preact/compat";
import { useRef } from "preact/hooks";
import { grown, lexed, NO_BLOCKS } from "./blocks.ts";
import { Copy } from "./parts.tsx";

/** How deeply elements may be nested. What is nested more deeply is shown as text. */
const MAX_DEPTH = 24;

/** A text in Markdown. While it is `growing`, only its last block is rendered again. */
export function Markdown(props: { text: string; growing: boolean }) {
  const text = props.text.includes("\r") ? props.text.replace(/\r\n?/g, "\n") : props.text;
  const blocks = useRef(NO_BLOCKS);
  if (props.growing) {
    blocks.current = grown(blocks.current, text);
    const { settled, last } = blocks.current;
    return <Blocks tokens={[...settled, ...last]} />;
  }
  return <Complete text={text} />;
}

/** Read as a whole, since links may refer to addresses at its end. */
const Complete = memo(({ text }: { text: string }) => <Blocks tokens={lexed(text)} />);

const Blocks = ({ tokens }: { tokens: Token[] }) => (
  <div class="markdown">
    {tokens.map((token, place) => (
      <Block key={place} token={token} />
    ))}
  </div>
);

const Block = memo(({ token }: { token: Token }) => <>{element(token, 0)}</>);

const elements = (tokens: Token[] | undefined, depth: number): ComponentChildren =>
  tokens?.map((token) => element(token, depth + 1));

function element(some: Token, depth: number): ComponentChildren {
  if (depth > MAX_DEPTH) return some.raw;
  // Others come only from extensions, of which there are none.
  const token = some as MarkedToken;
  switch (token.type) {
    case "space":
    case "def":
      return null;
    case "heading":
      // All of one level, since an answer may begin with any.
      return <h3 class={`depth${token.depth}`}>{elements(token.tokens, depth)}</h3>;
    case "paragraph":
      return <p>{elements(token.tokens, depth)}</p>;
    case "blockquote":
      return <blockquote>{elements(token.tokens, depth)}</blockquote>;
    case "code":
      return <CodeBlock language={token.lang?.match(/^\S+/)?.[0] ?? ""} text={token.text} />;
    case "hr":
      return <hr />;
    case "list": {
      const items = token.items.map((item, place) => <li key={place}>{elements(item.tokens, depth)}</li>);
      return token.ordered ? <ol start={Number(token.start)}>{items}</ol> : <ul>{items}</ul>;
    }
    case "checkbox":
      return token.checked ? "☑ " : "☐ ";
    case "table":
      return <MarkdownTable table={token} depth={depth} />;
    case "text":
      if ("tokens" in token && token.tokens) return elements(token.tokens, depth);
      return unescaped(token.text);
    case "escape":
      return token.text;
    case "strong":
      return <strong>{elements(token.tokens, depth)}</strong>;
    case "em":
      return <em>{elements(token.tokens, depth)}</em>;
    case "del":
      return <del>{elements(token.tokens, depth)}</del>;
    case "codespan":
      return <code>{token.text}</code>;
    case "br":
      return <br />;
    case "link":
      return <Link href={token.href}>{elements(token.tokens, depth)}</Link>;
    case "image":
      // The page loads nothing from other origins.
      return <Link href={token.href}>{token.text || token.href}</Link>;
    default:
      return some.raw;
  }
}

/** Only addresses of the web become links. */
function Link(props: { href: string; children: ComponentChildren }) {
  if (!/^https?:\/\//i.test(props.href)) return <>{props.children}</>;
  return (
    <a href={props.href} rel="noreferrer noopener" target="_blank">
      {props.children}
    </a>
  );
}

function CodeBlock(props: { language: string; text: string }) {
  return (
    <div class="code-block">
      <div class="row">
        <span class="soft">{props.language}</span>
        <Copy text={props.text} label="Copy code" />
      </div>
      <pre tabIndex={0} role="group" aria-label={props.language ? `Code in ${props.language}` : "Code"}>
        <code>{props.text}</code>
      </pre>
    </div>
  );
}

function MarkdownTable({ table, depth }: { table: Tokens.Table; depth: number }) {
  const side = (place: number) => table.align[place] ?? undefined;
  return (
    <div class="table" role="group" aria-label="Table" tabIndex={0}>
      <table>
        <thead>
          <tr>
            {table.header.map((cell, place) => (
              <th key={place} scope="col" class={side(place)}>
                {elements(cell.tokens, depth)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {table.rows.map((cells, row) => (
            <tr key={row}>
              {cells.map((cell, place) => (
                <td key={place} class={side(place)}>
                  {elements(cell.tokens, depth)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

const NAMED: Record<string, string> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", nbsp: "\u00a0" };

/** A text with the common character references of HTML as characters. */
function unescaped(text: string): string {
  return text.replace(/&(?:#x([\da-f]{1,6})|#(\d{1,7})|([a-z]+));/gi, (raw, hex, decimal, name) => {
    if (name) return NAMED[name] ?? raw;
    const code = hex ? Number.parseInt(hex, 16) : Number(decimal);
    return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : raw;
  });
}
