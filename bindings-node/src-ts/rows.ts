/**
 * Batches of events as the core writes them: events that differ from each other in few values are there once, with these
 * values. Each event is made when it is read, an object of its own: most are gone before the next one is made.
 */

import { elements } from "./elements";
import type { Ready } from "./ready";

type Path = readonly (string | number)[];

/** Levels of objects that are copied; events with more are parsed, without a stack that grows with them. */
const MAX_LEVELS = 32;

/** An event; or what is around the values of several events, where these are, and the values of one after the other. */
type Row =
  | readonly [event: unknown]
  | readonly [parts: readonly string[], paths: readonly Path[], ...unknown[]];

/** A member or an item that is not the same in all copies: a value of the row, or an object, which is copied. */
interface Own {
  readonly name: string | number;
  /** Which value of an event it is; -1 for an object. */
  readonly value: number;
  readonly inner: readonly Own[];
}

/** What is known of the last row of a stream: the next one is mostly like it. */
export interface Known {
  template?: Template;
}

/** The events of a batch. */
export class Rows implements Ready {
  readonly #json: string;
  readonly #rows: readonly Row[];
  readonly #known: Known;
  #row = 0;
  /** Number of events of the row that have been read. */
  #taken = 0;
  /** The row, if it is one of several events. */
  #alike: Alike | undefined;
  left: number;

  /** `json`: a batch of the core. `known`: what the batches of a stream share. Errors: SyntaxError. */
  constructor(json: string, known: Known) {
    this.#json = json;
    this.#known = known;
    this.#rows = JSON.parse(json) as Row[];
    this.left = 0;
    for (const row of this.#rows) this.left += countOf(row);
    this.#enter();
  }

  take(): unknown {
    const event =
      this.#alike === undefined ? (this.#rows[this.#row] as Row)[0] : this.#alike.event(this.#taken);
    this.left -= 1;
    this.#taken += 1;
    if (this.#taken >= (this.#alike?.count ?? 1)) {
      this.#row += 1;
      this.#taken = 0;
      this.#enter();
    }
    return event;
  }

  documents(): readonly string[] {
    const documents: string[] = [];
    // From the text: numbers keep all their digits.
    for (const [index, row] of elements(this.#json).entries()) {
      if (index < this.#row) continue;
      const [first, , ...values] = elements(row);
      const alike = this.#rows[index] as Row;
      if (!isAlike(alike)) documents.push(first as string);
      else {
        const [parts, paths] = alike;
        for (let at = 0; at < values.length; at += paths.length) {
          documents.push(joined(parts, values.slice(at, at + paths.length)));
        }
      }
    }
    const unread = documents.slice(this.#taken);
    this.#row = this.#rows.length;
    this.#taken = 0;
    this.left = 0;
    return unread;
  }

  #enter(): void {
    const row = this.#rows[this.#row];
    if (row === undefined || !isAlike(row)) {
      this.#alike = undefined;
      return;
    }
    let template = this.#known.template;
    if (template === undefined || !isOf(row, template)) {
      template = new Template(row);
      this.#known.template = template;
    }
    this.#alike = new Alike(row, template);
  }
}

type AlikeRow = Exclude<Row, readonly [unknown]>;

function isAlike(row: Row): row is AlikeRow {
  return row.length > 1;
}

function countOf(row: Row): number {
  return isAlike(row) ? (row.length - 2) / row[1].length : 1;
}

/** The event of which those of a row are copies. */
class Template {
  readonly parts: readonly string[];
  readonly event: object;
  /** What a copy has of its own; `undefined` if events have to be parsed. */
  readonly own: readonly Own[] | undefined;

  constructor(row: AlikeRow) {
    const [parts, paths] = row;
    this.parts = parts;
    this.event = parsed(row, 2) as object;
    this.own = ownOf(this.event, paths, row.slice(2));
  }
}

/** Whether the events of a row are copies of an event: what is constant in them says where the values are, too. */
function isOf([parts]: AlikeRow, template: Template): boolean {
  return (
    parts.length === template.parts.length && parts.every((part, index) => part === template.parts[index])
  );
}

/** Events that differ in few values. */
class Alike {
  readonly count: number;
  readonly #row: AlikeRow;
  readonly #template: Template;

  constructor(row: AlikeRow, template: Template) {
    this.count = countOf(row);
    this.#row = row;
    this.#template = template;
  }

  event(index: number): unknown {
    const { event, own } = this.#template;
    const start = 2 + index * this.#row[1].length;
    return own === undefined ? parsed(this.#row, start) : copy(event, own, this.#row, start);
  }
}

/** The event whose values begin at `start` of a row. */
function parsed(row: AlikeRow, start: number): unknown {
  const values = row.slice(start, start + row[1].length).map((value) => JSON.stringify(value));
  return JSON.parse(joined(row[0], values));
}

/** A document: its constant parts with values between them. */
function joined(parts: readonly string[], values: readonly string[]): string {
  return parts.map((part, index) => part + (values[index] ?? "")).join("");
}

/**
 * What copies of an event have of their own. `undefined` if the values are not all where the paths say: of two members
 * with one name, the last one counts, and a member called `__proto__` cannot be assigned. Nor if it is nested deep.
 */
function ownOf(
  event: object,
  paths: readonly Path[],
  values: readonly unknown[],
): readonly Own[] | undefined {
  let found = 0;
  const within = (holder: object, places: readonly number[], depth: number): Own[] => {
    const own: Own[] = [];
    if (depth >= MAX_LEVELS) {
      found = Number.NaN;
      return own;
    }
    for (const [key, member] of Object.entries(holder)) {
      const name = Array.isArray(holder) ? Number(key) : key;
      const here = places.filter((place) => paths[place]?.[depth] === name);
      const [value] = here;
      if (value !== undefined && here.length === 1 && paths[value]?.length === depth + 1) {
        if (name !== "__proto__" && member === values[value]) found += 1;
        own.push({ name, value, inner: [] });
      } else if (typeof member === "object" && member !== null) {
        if (name === "__proto__") found = Number.NaN;
        own.push({ name, value: -1, inner: within(member, here, depth + 1) });
      }
    }
    return own;
  };
  const places = paths.map((_, place) => place);
  const own = within(event, places, 0);
  return found === paths.length ? own : undefined;
}

/** A copy of an event, with the values that begin at `start` of a row. */
function copy(original: object, own: readonly Own[], row: readonly unknown[], start: number): object {
  const made = (Array.isArray(original) ? original.slice() : { ...original }) as Record<
    string | number,
    unknown
  >;
  for (const { name, value, inner } of own) {
    made[name] = value < 0 ? copy(made[name] as object, inner, row, start) : row[start + value];
  }
  return made;
}
