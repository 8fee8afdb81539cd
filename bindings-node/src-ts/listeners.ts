/** Functions that are called at events. */

/** A type whose members are listeners. */
export type ListenersOf<L> = { readonly [name in keyof L]: (...given: never[]) => void };

type Listener = (...given: never[]) => void;

export class Listeners {
  readonly #byName = new Map<string, { readonly listener: Listener; readonly isOnce: boolean }[]>();

  /** Whether there is no listener. */
  get isEmpty(): boolean {
    return this.#byName.size === 0;
  }

  add(name: string, listener: Listener, isOnce: boolean): void {
    this.#byName.set(name, [...(this.#byName.get(name) ?? []), { listener, isOnce }]);
  }

  /** Removes a listener; the first one, if it was added several times. */
  remove(name: string, listener: Listener): void {
    const all = this.#byName.get(name) ?? [];
    const at = all.findIndex((entry) => entry.listener === listener);
    if (at < 0) return;
    this.#replace(
      name,
      all.filter((_, place) => place !== at),
    );
  }

  /** Calls the listeners of a name. `given`: makes the arguments, if there is one. Returns whether there was one. */
  emit(name: string, given: () => readonly unknown[]): boolean {
    const all = this.#byName.get(name);
    if (all === undefined) return false;
    if (all.some(({ isOnce }) => isOnce)) {
      this.#replace(
        name,
        all.filter(({ isOnce }) => !isOnce),
      );
    }
    const values = given();
    for (const { listener } of all) (listener as (...given: readonly unknown[]) => void)(...values);
    return true;
  }

  #replace(name: string, listeners: { readonly listener: Listener; readonly isOnce: boolean }[]): void {
    if (listeners.length > 0) this.#byName.set(name, listeners);
    else this.#byName.delete(name);
  }
}
