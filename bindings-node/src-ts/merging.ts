/** Merges pieces of a document as the core does (`core/src/stream/accumulate.rs`). */

import { isObject, type Members, put } from "./members";

/** Members that name something: they are replaced, not appended to. */
const NAMES: readonly string[] = ["format", "id", "model", "name", "object", "provider", "role", "type"];
/** How many entries of a list are searched for the one that a piece belongs to. */
const MAX_ENTRIES_SEARCHED = 64;

/**
 * Merges pieces into what it owns: lists and objects grow in place, so that a piece costs as much as its own text. Those that
 * arrive belong to their event, which stays as it is: they are copied, once, before something is merged into them.
 */
export class Merger {
  readonly #owned = new WeakSet<object>();

  /**
   * Merges members. Text is appended to text, lists to lists, and objects are merged; any other value replaces the earlier
   * one. Null never does, and a list or an object never replaces text.
   */
  merge(target: Members, piece: Members): void {
    // A list that grows, not a recursion: the server decides how deep members are nested.
    const pairs: [Members, Members][] = [[target, piece]];
    for (const [into, from] of pairs) {
      for (const [name, value] of Object.entries(from)) {
        if (!Object.hasOwn(into, name)) put(into, name, value);
        else if (value !== null) this.#mergeMember(into, name, value, pairs);
      }
    }
  }

  #mergeMember(into: Members, name: string, value: unknown, pairs: [Members, Members][]): void {
    const before = into[name];
    if (typeof before === "string" && typeof value === "string") {
      if (!NAMES.includes(name)) put(into, name, before + value);
      else if (value !== "") put(into, name, value);
    } else if (typeof before === "string" && typeof value === "object") {
      // Text that has arrived stays.
    } else if (Array.isArray(before) && Array.isArray(value)) {
      this.#extend(this.owned(into, name, before), value, pairs);
    } else if (isObject(before) && isObject(value)) {
      pairs.push([this.owned(into, name, before), value]);
    } else {
      put(into, name, value);
    }
  }

  /** Appends to a list. An entry with an `index` is a piece of the nearest one with the same. */
  #extend(list: unknown[], more: readonly unknown[], pairs: [Members, Members][]): void {
    for (const value of more) {
      const at = placeOf(list, value);
      if (at === undefined) list.push(value);
      else pairs.push([this.owned(list, at, list[at] as Members), value as Members]);
    }
  }

  /** A member, or an item, to change in place: itself if it is owned, else a copy that replaces it. */
  owned<T extends object>(holder: object, name: string | number, value: T): T {
    if (this.#owned.has(value)) return value;
    const copy = (Array.isArray(value) ? [...value] : { ...value }) as T;
    this.#owned.add(copy);
    put(holder, name, copy);
    return copy;
  }
}

function placeOf(list: readonly unknown[], value: unknown): number | undefined {
  const index = indexOf(value);
  if (index === undefined) return undefined;
  for (let at = list.length - 1; at >= 0 && at >= list.length - MAX_ENTRIES_SEARCHED; at -= 1) {
    if (indexOf(list[at]) === index) return at;
  }
  return undefined;
}

function indexOf(entry: unknown): number | undefined {
  const index = isObject(entry) ? entry["index"] : undefined;
  return Number.isSafeInteger(index) && (index as number) >= 0 ? (index as number) : undefined;
}

/** Replaces members by newer ones that have a value. */
export function keepKnown(members: Members, newer: Members): void {
  for (const [name, value] of Object.entries(newer)) if (value != null) put(members, name, value);
}
