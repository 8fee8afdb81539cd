/** Members of events that are made when they are read: a text, a list or a value that grows with the answer. */

import { type Cut, valueOfCut } from "./json-prefix";

/** Adds the value of a text so far to an event, parsed on first access. `none`: the value before one begins. */
export function growing<E extends object, N extends string>(
  event: E,
  name: N,
  text: string,
  cut: Cut,
  none: unknown = null,
): E & { readonly [name in N]: unknown } {
  const get = () => {
    const value = valueOfCut(text, cut) ?? none;
    Object.defineProperty(event, name, { value, configurable: true });
    return value;
  };
  return Object.defineProperty(event, name, { get, configurable: true }) as E & {
    readonly [name in N]: unknown;
  };
}

/** Adds `snapshot` to an event: the elements of a list so far, copied on first access. */
export function growingList<E extends object, T>(
  event: E,
  all: readonly T[],
): E & { readonly snapshot: readonly T[] } {
  const count = all.length;
  const get = () => {
    const value = all.slice(0, count);
    Object.defineProperty(event, "snapshot", { value, configurable: true });
    return value;
  };
  return Object.defineProperty(event, "snapshot", { get, configurable: true }) as E & {
    readonly snapshot: readonly T[];
  };
}
