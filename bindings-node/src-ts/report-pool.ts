/** Threads that validate documents. They belong to the core, which limits how far documents run ahead of results. */

import { type EngineJudged, type EnginePool, type EngineValidator, engine } from "./engine";
import { CallSite, failure } from "./failure";

/** The output for a document, nothing if it is clean, and its number. */
export interface Fetched {
  readonly number: number;
  readonly made: EngineJudged | undefined;
}

export class ReportPool {
  readonly #pool: EnginePool;

  /**
   * `ordered`: whether to return results in the order of the documents. Errors: the system cannot create a
   * thread.
   */
  constructor(validator: EngineValidator, ordered: boolean) {
    const made = engine.EnginePool.create(validator, ordered);
    if (typeof made === "string") throw failure(made, new CallSite(ReportPool));
    this.#pool = made;
  }

  /** Submits a document, or the path of one; returns whether there is room for another before a result is fetched. */
  submit(number: number, document: Uint8Array | string): boolean {
    return this.#pool.submit(number, document);
  }

  /** Adds the next bytes of lines, after `advance` has reported that the previous ones are consumed. */
  feed(bytes: Uint8Array): void {
    this.#pool.feed(bytes);
  }

  /** Submits complete lines, and the last one at the end of the input; returns whether there was room for all. */
  advance(ended: boolean): boolean {
    return this.#pool.advance(ended);
  }

  /** The next result; `undefined` if none is pending. Errors: `InternalError`. */
  async fetch(): Promise<Fetched | undefined> {
    const { error, number, made } = await this.#pool.fetch();
    if (error !== undefined) throw failure(error, new CallSite(this.fetch));
    return number === undefined ? undefined : { number, made };
  }

  /** Ends the threads; discards documents that are not validated yet. */
  close(): void {
    this.#pool.close();
  }
}
