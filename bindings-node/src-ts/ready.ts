/** Values that have arrived and are not read yet. */

/** Values in order, each read once. */
export interface Ready {
  /** Number of values that are left. */
  readonly left: number;
  /** The next value; there is one. */
  take(): unknown;
  /** The remaining values as documents; none are left afterwards. */
  documents(): readonly string[];
}

/** Nothing. */
export const NOTHING: Ready = { left: 0, take: () => undefined, documents: () => [] };

/** A list of values; only one of documents can be passed on as documents. */
export class Listed implements Ready {
  readonly #values: readonly unknown[];
  #position = 0;

  constructor(values: readonly unknown[]) {
    this.#values = values;
  }

  get left(): number {
    return this.#values.length - this.#position;
  }

  take(): unknown {
    const value = this.#values[this.#position];
    this.#position += 1;
    return value;
  }

  documents(): readonly string[] {
    const documents = this.#values.slice(this.#position) as string[];
    this.#position = this.#values.length;
    return documents;
  }
}
